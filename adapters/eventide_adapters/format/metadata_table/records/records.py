"""The records of Hudi's metadata table: their keys, and their values as Avro without a header.

    partition of the table   record key                                                            type   value
    files                    a partition path; "." for the only one of an unpartitioned table       2     its files
                             "__all_partitions__"                                                   1     all of those paths
    column_stats             hash64(column) + hash64(partition) + md5(file name)                    3     a column's range
    bloom_filters            hash64(partition) + md5(file name)                                     4     a bloom filter
    record_index             a record key                                                           5     its file group
    partition_stats          hash64(column) + hash64(partition)                                     6     a column's range
    secondary_index_<name>   a value + "$" + a record key                                           7     if it is deleted
    expr_index_<name>        as in column_stats, or as in bloom_filters                             3, 4  same, of a function
                             hash64(column) + hash64("__partition_stat__") + hash64(partition)      6     a function's range

Each part of a hashed key is base64. Java's hash of a record's key selects the record's file group. In an HFile, the field
`key` of a value is empty, because the entry already has the key.

Values are decoded without their logical types, so that a copied value is written unchanged. A value of a union of records
is decoded as (name, record).
"""

import hashlib
import io
import re
import struct
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import fastavro
import xxhash
from fastavro.schema import SchemaParseException

from eventide_adapters.format.timeline.container import checked
from eventide_core.errors import RecordDecodeError
from eventide_core.table.files.bucket import java_hash
from eventide_core.table.schema.avro_schema import AvroSchema

ALL_PARTITIONS_KEY: Final = "__all_partitions__"
_UNPARTITIONED: Final = "."
_ALL_PARTITIONS_TYPE: Final = 1
_FILES_TYPE: Final = 2
_COLUMN_STATS_TYPE: Final = 3
_BLOOM_FILTER_TYPE: Final = 4
_RECORD_INDEX_TYPE: Final = 5
_PARTITION_STATS_TYPE: Final = 6
_SECONDARY_INDEX_TYPE: Final = 7
_NO_NUMBER: Final = -1  # the number of a file id that has none
_UUID_AND_NUMBER: Final = re.compile(r"(?P<uuid>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})(-(?P<number>\d+))?")
_HASH_SEED: Final = 0xFFFFFFFFDABADABA  # Hudi's int 0xdabadaba, widened with its sign
_MISFITS = (
    EOFError,
    IndexError,
    KeyError,
    OverflowError,
    TypeError,
    ValueError,
    MemoryError,
    RecursionError,
    struct.error,
    SchemaParseException,
)

Value = dict[str, Any]


def files_key(partition: str) -> str:
    """The key in `files` of a partition's record."""
    return partition or _UNPARTITIONED


def partition_of(key: str) -> str:
    """The partition that a key in `files` belongs to."""
    return "" if key == _UNPARTITIONED else key


def column_stats_key(column: str, partition: str, file_name: str) -> str:
    return _hash64(column) + _hash64(files_key(partition)) + _md5(file_name)


def partition_stats_key(column: str, partition: str) -> str:
    return _hash64(column) + _hash64(files_key(partition))


def bloom_filter_key(partition: str, file_name: str) -> str:
    return _hash64(files_key(partition)) + _md5(file_name)


def file_group_number(key: str, file_groups: int) -> int:
    """The number of the file group, in its partition, that contains the record."""
    code = java_hash(key)
    return abs(code - (1 << 32) if code >= 1 << 31 else code) % file_groups


def decode_value(data: bytes, schema: AvroSchema, place: str) -> Value:
    """Decodes a value with the schema of its block or file. Raises RecordDecodeError."""
    stream = io.BytesIO(data)
    try:
        value: Any = fastavro.schemaless_reader(
            stream, schema.derived(_parsed), None, return_record_name=True, return_record_name_override=True
        )
    except _MISFITS as error:
        raise RecordDecodeError(f"{place}: a record of the metadata table cannot be decoded: {error!r}") from error
    if stream.tell() != len(data) or not isinstance(value, dict):
        raise RecordDecodeError(f"{place}: a record of the metadata table does not end where its last field does")
    return value


def record_name(decoded: tuple[str, Value]) -> str:
    """The name of the record in a decoded value of a union, without its namespace."""
    return decoded[0].rpartition(".")[2]


def encode_value(value: Value, schema: AvroSchema) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(
        stream, schema.derived(_parsed), {**dict.fromkeys(schema.field_names), "key": "", **value}
    )
    return stream.getvalue()


def files_value(added: Mapping[str, int], removed: tuple[str, ...]) -> Value:
    """A change of a partition's files: the added names with their sizes, and the removed names."""
    entries = {name: {"size": size, "isDeleted": False} for name, size in added.items()}
    entries |= {name: {"size": 0, "isDeleted": True} for name in removed}
    return {"type": _FILES_TYPE, "filesystemMetadata": entries}


def all_partitions_value(keys: Iterable[str]) -> Value:
    """The partitions that have files, by their keys in `files`."""
    return {
        "type": _ALL_PARTITIONS_TYPE,
        "filesystemMetadata": {key: {"size": 0, "isDeleted": False} for key in keys},
    }


def merged_files(versions: Iterable[Value]) -> dict[str, int]:
    """The files of a partition. A removal removes a name. Of two sizes, the greater one counts (an appended log file)."""
    files: dict[str, int] = {}
    for version in versions:
        for name, info in (version["filesystemMetadata"] or {}).items():
            if info["isDeleted"]:
                files.pop(name, None)
            else:
                files[name] = max(files.get(name, 0), info["size"])
    return files


def column_stats_value(stats: Value) -> Value:
    return {"type": _COLUMN_STATS_TYPE, "ColumnStatsMetadata": stats}


def partition_stats_value(stats: Value) -> Value:
    return {"type": _PARTITION_STATS_TYPE, "ColumnStatsMetadata": stats}


def secondary_index_value(*, is_deleted: bool) -> Value:
    return {"type": _SECONDARY_INDEX_TYPE, "SecondaryIndexMetadata": {"isDeleted": is_deleted}}


def record_index_value(partition: str, file_id: str, instant_ms: int) -> Value:
    """The file group of a key. A file id that is a UUID, mostly with a number after it, is in binary; any other is text."""
    parts = _UUID_AND_NUMBER.fullmatch(file_id)
    if parts is None:
        place: Value = {
            "fileIdHighBits": -1,
            "fileIdLowBits": -1,
            "fileIndex": -1,
            "fileId": file_id,
            "fileIdEncoding": 1,
        }
    else:
        high, low = struct.unpack(">qq", bytes.fromhex(parts["uuid"].replace("-", "")))
        number = _NO_NUMBER if parts["number"] is None else int(parts["number"])
        place = {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": number, "fileId": "", "fileIdEncoding": 0}
    info = {"partitionName": partition, "instantTime": instant_ms, **place}
    return {"type": _RECORD_INDEX_TYPE, "recordIndexMetadata": info}


def record_index_place(value: Value) -> tuple[str, str]:
    """The partition and file ID in a value of `record_index_value`. Raises KeyError or TypeError for any other value."""
    info = value["recordIndexMetadata"]
    if info.get("fileIdEncoding") == 1:
        return info["partitionName"], info["fileId"]
    uuid = str(UUID(bytes=struct.pack(">qq", info["fileIdHighBits"], info["fileIdLowBits"])))
    number = info["fileIndex"]
    return info["partitionName"], uuid if number == _NO_NUMBER else f"{uuid}-{number}"


def bloom_filter_value(type_code: str, instant: str, bloom_filter: bytes) -> Value:
    entry = {"type": type_code, "timestamp": instant, "bloomFilter": bloom_filter, "isDeleted": False}
    return {"type": _BLOOM_FILTER_TYPE, "BloomFilterMetadata": entry}


def removed_bloom_filter_value(instant: str) -> Value:
    entry = {"type": "", "timestamp": instant, "bloomFilter": b"", "isDeleted": True}
    return {"type": _BLOOM_FILTER_TYPE, "BloomFilterMetadata": entry}


def _parsed(schema: AvroSchema) -> Any:
    return checked(_without_logical_types(schema.parsed))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    return schema


def _hash64(text: str) -> str:
    return b64encode(xxhash.xxh64_digest(text.encode(), _HASH_SEED)).decode()


def _md5(text: str) -> str:
    return b64encode(hashlib.md5(text.encode(), usedforsecurity=False).digest()).decode()

"""Hudi's metadata table of a small table: creates it, updates it as a writer does, and lists its content.

The listing is independent of the code under test: it reads the timeline, the log blocks, and their HFiles directly. It
supports only a metadata table with the partition `files` alone, in one file group that was never compacted.
"""

import io
import json
import re
import struct
import zlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import fastavro

from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, encode_hfile
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.ports import Storage
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata

Listing = dict[str, dict[str, int]]

METADATA_PREFIX: Final = ".hoodie/metadata/"
_PROPERTIES: Final = ".hoodie/hoodie.properties"
_BEGINNING: Final = "00000000000000010"  # the instant at which Hudi lists the existing files
_FILE_INFO: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieMetadataFileInfo",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
_SCHEMA: Final[dict[str, Any]] = {
    "type": "record",
    "name": "HoodieMetadataRecord",
    "fields": [
        {"name": "key", "type": "string"},
        {"name": "type", "type": "int"},
        {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": _FILE_INFO}]},
    ],
}
_PARSED: Final = fastavro.parse_schema(_SCHEMA)
_BLOCK: Final = struct.Struct(">6sqii")
_HFILE_BLOCK: Final = struct.Struct(">8siiqbii")


def begin_metadata_table(storage: Storage, version: int) -> None:
    """Creates the metadata table of an empty table, as Hudi's first write does."""
    entries = [(b"__all_partitions__", _value(1, {}))]
    style = HFileStyle.NATIVE if version >= 8 else HFileStyle.HBASE
    schema = AvroSchema.of(json.dumps(_SCHEMA))
    content = encode_hfile(entries, schema, style)
    header = {HeaderKey.INSTANT_TIME: _BEGINNING, HeaderKey.SCHEMA: schema.text}
    log = f"{METADATA_PREFIX}files/.files-0000-0_{_BEGINNING}.log.1_0-0-0"
    storage.put(log, encode_block(BlockType.HFILE_DATA, header, content))
    storage.put(f"{METADATA_PREFIX}{_PROPERTIES}", f"hoodie.table.version={version}\n".encode())
    name = f"timeline/{_BEGINNING}_{_BEGINNING}.deltacommit" if version >= 8 else f"{_BEGINNING}.deltacommit"
    commit = CommitMetadata({}, {}, "BULK_INSERT")
    storage.put(f"{METADATA_PREFIX}.hoodie/{name}", HudiMetadataCodec().encode_commit(commit, version))
    storage.put(_PROPERTIES, storage.read(_PROPERTIES) + b"hoodie.table.metadata.partitions=files\n")


def check_metadata_listing(files: Mapping[str, MemoryFile], uncommitted: Collection[str]) -> None:
    """Checks that the metadata table lists exactly the committed files, with their sizes."""
    expected: Listing = {}
    for path, file in files.items():
        partition, _, name = path.rpartition("/")
        if not path.startswith(".hoodie/") and path not in uncommitted and not name.startswith(".hoodie_partition"):
            source = file if file.link_target is None else files[file.link_target]
            expected.setdefault(partition, {})[name] = len(source.data)
    listing = listed(files)
    assert listing == expected, f"the metadata table lists {listing}, but committed are {expected}"


def listed(files: Mapping[str, MemoryFile]) -> Listing:
    """The files of each partition that a reader who lists by the metadata table finds."""
    counting = _instants(files, METADATA_PREFIX, "completed") - _instants(files, "", "pending")
    listing: Listing = {}
    for path in sorted(filter(_is_log, files), key=_reader_order):
        for instant, content in _hfile_blocks(files[path].data):
            if instant in counting:
                for key, changes in _records(content):
                    partition = listing.setdefault(key, {})
                    for name, info in changes.items():
                        if info["isDeleted"]:
                            partition.pop(name, None)
                        else:
                            partition[name] = info["size"]
    partitions = set(listing.pop("__all_partitions__"))
    assert partitions == listing.keys(), f"partitions {partitions} are known, but {set(listing)} have files"
    return listing


def _value(kind: int, changes: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, _PARSED, {"key": "", "type": kind, "filesystemMetadata": changes})
    return stream.getvalue()


def _instants(files: Mapping[str, MemoryFile], prefix: str, which: str) -> set[str]:
    """The requested times of a timeline's pending or completed actions."""
    pattern = re.compile(re.escape(prefix) + r"\.hoodie/(?:timeline/)?(\d{17})(?:_\d{17})?((?:\.[a-z]+)+)")
    names = [match.groups() for match in map(pattern.fullmatch, files) if match is not None]
    completed = {time for time, ending in names if not ending.endswith((".requested", ".inflight"))}
    return completed if which == "completed" else {time for time, _ in names} - completed


def _is_log(path: str) -> bool:
    return path.startswith(f"{METADATA_PREFIX}files/.files-0000-0_")


def _reader_order(path: str) -> tuple[str, int, str]:
    instant, version, token = re.findall(r"_(\d+)\.log\.(\d+)_(.+)$", path)[0]
    return instant, int(version), token


def _hfile_blocks(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The instant and the content of each block of a log file."""
    at = 0
    while at < len(data):
        magic, size, _, kind = _BLOCK.unpack_from(data, at)
        assert (magic, kind) == (b"#HUDI#", 4)
        here = at + _BLOCK.size
        headers: dict[int, str] = {}
        (count,) = struct.unpack_from(">i", data, here)
        here += 4
        for _ in range(count):
            key, length = struct.unpack_from(">ii", data, here)
            headers[key] = data[here + 8 : here + 8 + length].decode()
            here += 8 + length
        (length,) = struct.unpack_from(">q", data, here)
        yield headers[0], data[here + 8 : here + 8 + length]
        at += 14 + size


def _records(hfile: bytes) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The key and the changes of each entry in the single data block."""
    magic, _, _, _, _, _, with_header = _HFILE_BLOCK.unpack_from(hfile, 0)
    assert magic == b"DATABLK*"
    data = zlib.decompress(hfile[_HFILE_BLOCK.size : with_header], wbits=31)
    at = 0
    while at < len(data):
        key_length, value_length = struct.unpack_from(">ii", data, at)
        (row_length,) = struct.unpack_from(">h", data, at + 8)
        key = data[at + 10 : at + 10 + row_length].decode()
        start = at + 8 + key_length
        value: Any = fastavro.schemaless_reader(io.BytesIO(data[start : start + value_length]), _PARSED, None)
        yield key, value["filesystemMetadata"] or {}
        at = start + value_length + 1

"""Writes log files in Hudi's format with struct and fastavro alone, independent of the code under test."""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

COMMAND, DELETE, AVRO, HFILE, PARQUET, CDC = 0, 1, 3, 4, 5, 6
INSTANT_TIME, TARGET_INSTANT_TIME, SCHEMA, COMMAND_BLOCK_TYPE, COMPACTED_BLOCK_TIMES, IS_PARTIAL = 0, 1, 2, 3, 4, 7

META_FIELDS = [
    {"name": f"_hoodie_{name}", "type": ["null", "string"], "default": None}
    for name in ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
]


def table_schema(*fields: Mapping[str, Any]) -> str:
    """An Avro schema of a table's own fields."""
    return json.dumps({"type": "record", "name": "trips_record", "namespace": "hoodie.trips", "fields": list(fields)})


def written_schema(schema: str) -> str:
    """The same schema with Hudi's meta fields first."""
    parsed = json.loads(schema)
    return json.dumps({**parsed, "fields": META_FIELDS + parsed["fields"]})


def with_meta(row: Mapping[str, Any], key: str, instant: str) -> dict[str, Any]:
    """A record with the meta fields that Hudi adds."""
    return {
        "_hoodie_commit_time": instant,
        "_hoodie_commit_seqno": f"{instant}_0_1",
        "_hoodie_record_key": key,
        "_hoodie_partition_path": "part=a",
        "_hoodie_file_name": "f-0",
        **row,
    }


def block(kind: int, header: Mapping[int, str], content: bytes) -> bytes:
    """One block with an empty footer."""
    head = struct.pack(">i", len(header))
    for key, value in header.items():
        head += struct.pack(">ii", key, len(value.encode())) + value.encode()
    body = struct.pack(">ii", 1, kind) + head + struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    return b"#HUDI#" + struct.pack(">q", len(body) + 8) + body + struct.pack(">q", len(body) + 14)


def avro_content(schema: str, records: Sequence[Any], *, version: int = 3) -> bytes:
    """The content of an Avro data block."""
    parsed = fastavro.parse_schema(json.loads(schema))
    parts = [struct.pack(">ii", version, len(records))]
    for record in records:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, parsed, record)
        parts += [struct.pack(">i", body.tell()), body.getvalue()]
    return b"".join(parts)


def avro_block(instant: str, schema: str, records: Sequence[Any]) -> bytes:
    return block(AVRO, {INSTANT_TIME: instant, SCHEMA: schema}, avro_content(schema, records))


def parquet_block(instant: str, schema: str, table: pa.Table) -> bytes:
    content = io.BytesIO()
    pq.write_table(table, content)
    return block(PARQUET, {INSTANT_TIME: instant, SCHEMA: schema}, content.getvalue())


def parse_blocks(data: bytes) -> list[tuple[int, dict[int, str], bytes]]:
    """The type, header, and content of each block of an intact log file."""
    blocks, position = [], 0
    while position < len(data):
        size, _, kind, count = struct.unpack_from(">qiii", data, position + 6)
        end, position, header = position + 14 + size, position + 26, {}
        for _ in range(count):
            key, length = struct.unpack_from(">ii", data, position)
            header[key] = data[position + 8 : position + 8 + length].decode()
            position += 8 + length
        (length,) = struct.unpack_from(">q", data, position)
        blocks.append((kind, header, data[position + 8 : position + 8 + length]))
        position = end
    return blocks


def read_records(kind: int, header: Mapping[int, str], content: bytes) -> list[Any]:
    """The records of a data block, as fastavro or Parquet's own reader returns them."""
    if kind == PARQUET:
        return pq.read_table(io.BytesIO(content)).to_pylist()
    parsed, position, records = fastavro.parse_schema(json.loads(header[SCHEMA])), 8, []
    while position < len(content):
        (length,) = struct.unpack_from(">i", content, position)
        records.append(
            fastavro.schemaless_reader(io.BytesIO(content[position + 4 : position + 4 + length]), parsed, None)
        )
        position += 4 + length
    return records


def rollback_block(instant: str, target: str) -> bytes:
    return block(COMMAND, {INSTANT_TIME: instant, TARGET_INSTANT_TIME: target, COMMAND_BLOCK_TYPE: "0"}, b"")


def delete_block(instant: str, deletes: Sequence[tuple[str, tuple[str, Any] | None]]) -> bytes:
    """A DELETE block. `deletes` are keys, each with the wrapper and the value of its ordering value."""
    return block(DELETE, {INSTANT_TIME: instant}, delete_content(deletes))


def delete_content(deletes: Sequence[tuple[str, tuple[str, Any] | None]]) -> bytes:
    """The content of a DELETE block of version 3, with the schema in the class files of Hudi 1.1.1."""
    records = [
        {
            "recordKey": key,
            "partitionPath": "part=a",
            "orderingVal": None
            if ordering is None
            else (f"org.apache.hudi.avro.model.{ordering[0]}", _wrapped(*ordering)),
        }
        for key, ordering in deletes
    ]
    body = io.BytesIO()
    fastavro.schemaless_writer(body, _DELETES, {"deleteRecordList": records})
    return struct.pack(">ii", 3, body.tell()) + body.getvalue()


def _wrapped(wrapper: str, value: Any) -> Any:
    return {"wrappedValues": value} if wrapper == "ArrayWrapper" else {"value": value}


def _wrapper(name: str, avro_type: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": "value", "type": avro_type}]}


_WRAPPERS = {
    "BooleanWrapper": "boolean",
    "IntWrapper": "int",
    "LongWrapper": "long",
    "FloatWrapper": "float",
    "DoubleWrapper": "double",
    "BytesWrapper": "bytes",
    "StringWrapper": "string",
    "DateWrapper": "int",
    "DecimalWrapper": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15},
    "TimeMicrosWrapper": {"type": "long", "logicalType": "time-micros"},
    "TimestampMicrosWrapper": "long",
}
_ARRAY_ITEMS = ["null", *_WRAPPERS, _wrapper("LocalDateWrapper", "int")]
_ARRAY = {
    "type": "record",
    "name": "ArrayWrapper",
    "fields": [{"name": "wrappedValues", "type": ["null", {"type": "array", "items": _ARRAY_ITEMS}]}],
}
_DELETES = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieDeleteRecordList",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            {
                "name": "deleteRecordList",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "HoodieDeleteRecord",
                        "fields": [
                            {"name": "recordKey", "type": ["null", "string"]},
                            {"name": "partitionPath", "type": ["null", "string"]},
                            {
                                "name": "orderingVal",
                                "type": ["null", *(_wrapper(n, t) for n, t in _WRAPPERS.items()), _ARRAY],
                            },
                        ],
                    },
                },
            }
        ],
    }
)

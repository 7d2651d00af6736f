"""Handmade slices: base files and log files of a small table, written without the code under test."""

import io
import json
import struct
from collections.abc import Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

META = (
    "_hoodie_commit_time",
    "_hoodie_commit_seqno",
    "_hoodie_record_key",
    "_hoodie_partition_path",
    "_hoodie_file_name",
)
_FIELDS = {"id": "string", "ts": "long", "val": "string"}
SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "trip",
        "fields": [{"name": n, "type": ["null", t], "default": None} for n, t in _FIELDS.items()],
    }
)
_WITH_META = json.dumps(
    {
        "type": "record",
        "name": "trip",
        "fields": [
            {"name": n, "type": ["null", t], "default": None}
            for n, t in {**dict.fromkeys(META, "string"), **_FIELDS}.items()
        ],
    }
)


def row(key: str, ts: int | None, val: str, instant: str, file_name: str) -> dict[str, Any]:
    """A record of the table as Hudi stores it."""
    meta = (instant, f"{instant}_0_{key}", key, "part=a", file_name)
    return {**dict(zip(META, meta, strict=True)), "id": key, "ts": ts, "val": val}


def base_file(rows: Sequence[dict[str, Any]]) -> bytes:
    """A Parquet file without Hudi's footer."""
    types: dict[str, pa.DataType] = {name: pa.string() for name in (*META, "id", "ts", "val")}
    types["ts"] = pa.int64()
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(types)), sink)
    return sink.getvalue()


def data_block(instant: str, rows: Sequence[dict[str, Any]]) -> bytes:
    """An Avro data block."""
    content = struct.pack(">ii", 3, len(rows))
    for record in rows:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(_WITH_META)), record)
        content += struct.pack(">i", body.tell()) + body.getvalue()
    return _block(3, {0: instant, 2: _WITH_META}, content)


def delete_block(instant: str, deletes: Sequence[tuple[str, int | None]]) -> bytes:
    """A DELETE block of (key, ordering value). None is a delete in natural order, as Hudi writes it."""
    wrapper = {
        name: {
            "type": "record",
            "name": name,
            "namespace": "org.apache.hudi.avro.model",
            "fields": [{"name": "value", "type": kind}],
        }
        for name, kind in (("IntWrapper", "int"), ("LongWrapper", "long"))
    }
    # Only two branches are written, at their positions in Hudi's union of wrappers.
    body = io.BytesIO()
    _varint(body, len(deletes))
    for key, ordering in deletes:
        for text in (key, "part=a"):
            _varint(body, 1)
            _varint(body, len(text.encode()))
            body.write(text.encode())
        name = "IntWrapper" if ordering is None else "LongWrapper"
        _varint(body, _BRANCHES[name])
        fastavro.schemaless_writer(body, fastavro.parse_schema(wrapper[name]), {"value": ordering or 0})
    if deletes:
        _varint(body, 0)
    return _block(1, {0: instant}, struct.pack(">ii", 3, body.tell()) + body.getvalue())


# In HoodieDeleteRecord.avsc: null, BooleanWrapper, IntWrapper, LongWrapper, ...
_BRANCHES = {"IntWrapper": 2, "LongWrapper": 3}


def _varint(sink: io.BytesIO, value: int) -> None:
    zigzag = value << 1
    while zigzag > 0x7F:
        sink.write(bytes([zigzag & 0x7F | 0x80]))
        zigzag >>= 7
    sink.write(bytes([zigzag]))


def _block(kind: int, header: dict[int, str], content: bytes) -> bytes:
    entries = b"".join(struct.pack(">ii", key, len(value.encode())) + value.encode() for key, value in header.items())
    body = struct.pack(">iii", 1, kind, len(header)) + entries + struct.pack(">q", len(content)) + content
    body += struct.pack(">i", 0)
    size = len(body) + 8
    return b"#HUDI#" + struct.pack(">q", size) + body + struct.pack(">q", size + 6)

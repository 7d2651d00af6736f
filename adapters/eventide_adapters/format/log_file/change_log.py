"""The content of a change log (`.cdc`): one CDC block, as HoodieCDCLogger writes it.

    content := i32 version=3  i32 record count  (i32 length  record)...

    OP_KEY_ONLY          op  record_key
    DATA_BEFORE          op  record_key  before
    DATA_BEFORE_AFTER    op  ts_ms  before  after

`before` and `after` are rows without Hudi's meta fields, each null where there is no such row.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.avro.encode import Piece, can_encode, laid_out, pieces_of
from eventide_adapters.format.avro.schema import AvroField, arrow_schema, record_fields
from eventide_adapters.format.log_file.writer import CONTENT_VERSION, encode_one_by_one
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.records.schema import RECORD_KEY, AvroSchema
from eventide_core.table.records.supplemental_logging import SupplementalLogging

_CHUNK_ROWS: Final = 8192
_COLUMNS: Final = {
    SupplementalLogging.OP_KEY_ONLY: ("op", "record_key"),
    SupplementalLogging.DATA_BEFORE: ("op", "record_key", "before"),
    SupplementalLogging.DATA_BEFORE_AFTER: ("op", "ts_ms", "before", "after"),
}
_TEXTS: Final = ("op", "record_key", "ts_ms")


@dataclass(frozen=True, slots=True)
class _Image:
    """The rows before or after the changes, and which changes have one."""

    rows: pa.Table
    is_there: npt.NDArray[np.bool_]


def encode_change_log(
    instant: str,
    schema: AvroSchema,
    logging: SupplementalLogging,
    updates: tuple[pa.Table, pa.Table],
    inserts: pa.Table,
    deletes: pa.Table,
) -> bytes:
    """The whole file. `updates` are the rows before and after, in the same order; `schema` is the table's.

    Raises UnsupportedTableError for a value that its field cannot hold.
    """
    before, after = updates
    counts = len(before), len(inserts), len(deletes)
    keys = [_keys(table) for table in (before, inserts, deletes)]
    texts: dict[str, Any] = {
        "op": pa.array(np.repeat(["u", "i", "d"], counts), pa.string()),
        "record_key": pa.concat_arrays(keys),
        "ts_ms": pa.array([instant] * sum(counts), pa.string()),
    }
    columns = arrow_schema(schema)
    images = {
        "before": _Image(_plain((before, deletes), columns), np.repeat([True, False, True], counts)),
        "after": _Image(_plain((after, inserts), columns), np.repeat([True, True, False], counts)),
    }
    fields = record_fields(schema)
    written = _schema(schema, logging)
    if can_encode(fields):
        body = _by_columns(_COLUMNS[logging], texts, images, fields, record_fields(written)[0])
    else:
        body = _by_record(_COLUMNS[logging], texts, images, written)
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: written.text}
    return encode_block(BlockType.CDC_DATA, header, struct.pack(">ii", CONTENT_VERSION, sum(counts)) + body)


def _keys(table: pa.Table) -> Any:
    return table.column(RECORD_KEY).cast(pa.string()).combine_chunks()


def _plain(tables: Sequence[pa.Table], columns: pa.Schema) -> pa.Table:
    """The rows without meta fields, and without dictionaries."""
    return pa.concat_tables([table.select(columns.names).cast(columns) for table in tables]).combine_chunks()


def _schema(schema: AvroSchema, logging: SupplementalLogging) -> AvroSchema:
    if logging is SupplementalLogging.OP_KEY_ONLY:
        text = ["string", "null"]
        fields: list[dict[str, Any]] = [{"name": name, "type": text} for name in _COLUMNS[logging]]
        return AvroSchema.of_json({"type": "record", "name": "Record", "fields": fields})
    row = dict[str, Any](schema.parsed)
    namespace = row.pop("namespace", None)  # the same for both
    types: dict[str, Any] = {"before": ["null", row], "after": ["null", row["name"]]}  # the name of the type of before
    fields = [
        {"name": name, "type": types.get(name, ["null", "string"]), "doc": "", "default": None}
        for name in _COLUMNS[logging]
    ]
    return AvroSchema.of_json(
        {"type": "record", "name": "CDC", **({"namespace": namespace} if namespace else {}), "fields": fields}
    )


def _by_columns(
    names: Sequence[str],
    texts: Mapping[str, Any],
    images: Mapping[str, _Image],
    fields: Sequence[AvroField],
    text: AvroField,
) -> bytes:
    count = len(texts["op"])
    begun = dict.fromkeys(images, 0)
    chunks: list[Any] = []
    for begin in range(0, count, _CHUNK_ROWS):
        end = min(begin + _CHUNK_ROWS, count)
        pieces: list[Piece] = []
        for name in names:
            if name in _TEXTS:
                pieces += pieces_of(texts[name].slice(begin, end - begin), text)
                continue
            is_there = images[name].is_there[begin:end]
            of_chunk = int(np.count_nonzero(is_there))
            rows = images[name].rows.slice(begun[name], of_chunk)
            begun[name] += of_chunk
            pieces += _image_pieces(rows, is_there, fields)
        chunks.append(laid_out(pieces, end - begin))
    return np.concatenate(chunks).tobytes() if chunks else b""


def _image_pieces(rows: pa.Table, is_there: npt.NDArray[np.bool_], fields: Sequence[AvroField]) -> Iterator[Piece]:
    """The branch of the union, then the row's fields where there is a row."""
    yield np.ones(len(is_there), np.int64), np.where(is_there, 2, 0).astype(np.uint8)
    for field in fields:
        for lengths, data in pieces_of(rows.column(field.name).combine_chunks(), field):
            spread = np.zeros(len(is_there), np.int64)
            spread[is_there] = lengths
            yield spread, data


def _by_record(
    names: Sequence[str], texts: Mapping[str, Any], images: Mapping[str, _Image], written: AvroSchema
) -> bytes:
    columns: list[Iterator[Any]] = []
    for name in names:
        if name in _TEXTS:
            columns.append(iter(texts[name].to_pylist()))
            continue
        rows = iter(images[name].rows.to_pylist(maps_as_pydicts="strict"))
        columns.append(iter([next(rows) if is_there else None for is_there in images[name].is_there]))
    return encode_one_by_one(written, (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)))

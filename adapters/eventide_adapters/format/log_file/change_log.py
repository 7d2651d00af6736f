"""The content of a change log (`.cdc`): one CDC block, as HoodieCDCLogger writes it.

    content := i32 version=3  i32 record count  (i32 length  record)...

    OP_KEY_ONLY          op  record_key
    DATA_BEFORE          op  record_key  before
    DATA_BEFORE_AFTER    op  ts_ms  before  after

`before` and `after` are rows without Hudi's meta fields, each null where there is no such row.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.avro.schema import arrow_schema
from eventide_adapters.format.log_file.writer import avro_content
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.records.schema import RECORD_KEY, AvroSchema
from eventide_core.table.records.supplemental_logging import SupplementalLogging

_COLUMNS: Final = {
    SupplementalLogging.OP_KEY_ONLY: ("op", "record_key"),
    SupplementalLogging.DATA_BEFORE: ("op", "record_key", "before"),
    SupplementalLogging.DATA_BEFORE_AFTER: ("op", "ts_ms", "before", "after"),
}


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
    written = _schema(schema, logging)
    columns: dict[str, Any] = {
        "op": pa.array(np.repeat(["u", "i", "d"], counts), pa.string()),
        "record_key": pa.concat_arrays([_keys(table) for table in (before, inserts, deletes)]),
        "ts_ms": pa.array([instant] * sum(counts), pa.string()),
        "before": _images((before, len(inserts), deletes), arrow_schema(schema)),
        "after": _images((after, inserts, len(deletes)), arrow_schema(schema)),
    }
    records = pa.table([columns[name] for name in _COLUMNS[logging]], schema=arrow_schema(written))
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: written.text}
    return encode_block(BlockType.CDC_DATA, header, avro_content(written, records))


def _keys(table: pa.Table) -> Any:
    return table.column(RECORD_KEY).cast(pa.string()).combine_chunks()


def _images(parts: Sequence[pa.Table | int], columns: pa.Schema) -> Any:
    """The rows without meta fields, and without dictionaries; null for each row of which there is only a number."""
    kind: Any = pa.struct(columns)
    chunks: list[Any] = []
    for part in parts:
        if isinstance(part, int):
            chunks.append(pa.nulls(part, kind))
        else:
            chunks += part.select(columns.names).cast(columns).to_struct_array().chunks
    return pa.chunked_array(chunks, kind)


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

"""Writes the data blocks of a log file, as Hudi's append handle writes them, and change logs.

    Avro      content := i32 version=3  i32 record count  (i32 length  record)...
    Parquet   content := a Parquet file

The records have Hudi's meta fields. The schema is in the block's header; on request, it includes the range of the
records' event times.
"""

import io
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.avro.encode import encode_records
from eventide_adapters.format.encoding.avro.event_time_properties import with_event_times
from eventide_adapters.format.encoding.avro.schema import arrow_schema, record_fields
from eventide_adapters.format.encoding.parquet.output import ParquetOutput, avro_footer
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.supplemental_logging import SupplementalLogging
from eventide_core.table.schema.avro_schema import RECORD_KEY, AvroSchema

_CONTENT_VERSION = 3
_CHANGE_COLUMNS: Final = {
    SupplementalLogging.OP_KEY_ONLY: ("op", "record_key"),
    SupplementalLogging.DATA_BEFORE: ("op", "record_key", "before"),
    SupplementalLogging.DATA_BEFORE_AFTER: ("op", "ts_ms", "before", "after"),
}


def encode_data_block(
    instant: str, schema: AvroSchema, records: pa.Table, event_times: tuple[str, EventTimeRange] | None = None
) -> bytes:
    """A whole Avro block of that instant.

    `records` have the meta columns; `schema` is the table's Avro schema without them. `event_times`, if given, is a
    field and its range, which go into the schema in the header. Raises UnsupportedTableError for a value that its field
    cannot hold, and for unions of several types.
    """
    content = avro_content(schema.with_meta_fields(), records)
    return encode_block(BlockType.AVRO_DATA, _header(instant, schema, event_times), content)


def encode_parquet_block(
    instant: str,
    schema: AvroSchema,
    records: pa.Table,
    event_times: tuple[str, EventTimeRange] | None = None,
    *,
    codec: str,
    marks_local_times: bool = True,
) -> bytes:
    """A whole Parquet block, like `encode_data_block`. `codec` is a config.ParquetCodec.

    Without `marks_local_times`, local timestamps are stored as plain numbers.
    """
    sink = io.BytesIO()
    output = ParquetOutput(sink, schema, codec, marks_local_times=marks_local_times)
    output.write(records)
    output.close(avro_footer(schema))
    return encode_block(BlockType.PARQUET_DATA, _header(instant, schema, event_times), sink.getvalue())


def _header(instant: str, schema: AvroSchema, event_times: tuple[str, EventTimeRange] | None) -> dict[HeaderKey, str]:
    full_schema = schema.with_meta_fields()
    written = full_schema if event_times is None else with_event_times(full_schema, *event_times)
    return {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: written.text}


def avro_content(schema: AvroSchema, records: pa.Table) -> bytes:
    """The content of an Avro block. Raises UnsupportedTableError for a value that its field cannot hold."""
    columns = arrow_schema(schema)
    try:
        fitting = records if records.schema.equals(columns) else records.cast(columns)
    except (pa.ArrowInvalid, ValueError) as error:
        raise UnsupportedTableError(f"a record does not fit the table's schema: {error}") from error
    return struct.pack(">ii", _CONTENT_VERSION, len(records)) + encode_records(fitting, record_fields(schema))


def encode_change_log(
    instant: str,
    schema: AvroSchema,
    logging: SupplementalLogging,
    updates: tuple[pa.Table, pa.Table],
    inserts: pa.Table,
    deletes: pa.Table,
) -> bytes:
    """The content of a change log (`.cdc`): one CDC block, as HoodieCDCLogger writes it.

    content := i32 version=3  i32 record count  (i32 length  record)...

        OP_KEY_ONLY          op  record_key
        DATA_BEFORE          op  record_key  before
        DATA_BEFORE_AFTER    op  ts_ms  before  after

    `before` and `after` are rows without Hudi's meta fields, each null where there is no such row.
    `updates` are the rows before and after, in the same order; `schema` is the table's.

    Raises UnsupportedTableError for a value that its field cannot hold.
    """
    before, after = updates
    counts = len(before), len(inserts), len(deletes)
    written = _change_schema(schema, logging)
    columns: dict[str, Any] = {
        "op": pa.array(np.repeat(["u", "i", "d"], counts), pa.string()),
        "record_key": pa.concat_arrays([_keys(table) for table in (before, inserts, deletes)]),
        "ts_ms": pa.array([instant] * sum(counts), pa.string()),
        "before": _images((before, len(inserts), deletes), arrow_schema(schema)),
        "after": _images((after, inserts, len(deletes)), arrow_schema(schema)),
    }
    records = pa.table([columns[name] for name in _CHANGE_COLUMNS[logging]], schema=arrow_schema(written))
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


def _change_schema(schema: AvroSchema, logging: SupplementalLogging) -> AvroSchema:
    if logging is SupplementalLogging.OP_KEY_ONLY:
        text = ["string", "null"]
        fields: list[dict[str, Any]] = [{"name": name, "type": text} for name in _CHANGE_COLUMNS[logging]]
        return AvroSchema.of_json({"type": "record", "name": "Record", "fields": fields})
    row = dict[str, Any](schema.parsed)
    namespace = row.pop("namespace", None)  # the same for both
    types: dict[str, Any] = {"before": ["null", row], "after": ["null", row["name"]]}  # the name of the type of before
    fields = [
        {"name": name, "type": types.get(name, ["null", "string"]), "doc": "", "default": None}
        for name in _CHANGE_COLUMNS[logging]
    ]
    return AvroSchema.of_json(
        {"type": "record", "name": "CDC", **({"namespace": namespace} if namespace else {}), "fields": fields}
    )

"""Writes the data blocks of a log file, as Hudi's append handle writes them.

    Avro      content := i32 version=3  i32 record count  (i32 length  record)...
    Parquet   content := a Parquet file

The records have Hudi's meta fields. The schema is in the block's header; on request, it includes the range of the
records' event times.
"""

import io
import struct

import pyarrow as pa

from eventide_adapters.format.avro.encode import encode_records
from eventide_adapters.format.avro.event_time_properties import with_event_times
from eventide_adapters.format.avro.schema import arrow_schema, record_fields
from eventide_adapters.format.parquet.output import ParquetOutput, avro_footer
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.schema import AvroSchema

_CONTENT_VERSION = 3


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

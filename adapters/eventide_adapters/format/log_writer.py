"""Writes the data blocks of a log file: Avro records, as Hudi's append handle leaves them.

    content := i32 version=3  i32 record count  (i32 length  record)...

The records have Hudi's meta fields; the schema stands in the block's header, on request with the range of the records'
event times.
"""

from __future__ import annotations

import io
import json
import struct
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa

from eventide_adapters.format.avro_schema import with_meta_fields
from eventide_adapters.format.event_time_properties import schema_with_event_times
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.log_block import BlockType, HeaderKey, encode_block

_CONTENT_VERSION = 3


def encode_data_block(
    instant: str, schema: str, records: pa.Table, event_times: tuple[str, EventTimeRange] | None = None
) -> bytes:
    """A whole data block of that instant: `records` with meta columns, by the table's Avro schema (without them).

    `event_times`, a field and its range, go into the schema of the header where given. Raises UnsupportedTableError for
    a value that its field cannot hold, and for unions of several types.
    """
    full_schema = with_meta_fields(schema)
    parsed = _parsed(full_schema)
    body = io.BytesIO()
    body.write(struct.pack(">ii", _CONTENT_VERSION, len(records)))
    for record in records.to_pylist(maps_as_pydicts="strict"):
        encoded = io.BytesIO()
        try:
            fastavro.schemaless_writer(encoded, parsed, record)
        except (ValueError, TypeError, AttributeError, OverflowError, KeyError, struct.error) as error:
            raise UnsupportedTableError(f"a record does not fit the table's schema: {error!r}") from error
        body.write(struct.pack(">i", encoded.tell()))
        body.write(encoded.getvalue())
    written = full_schema if event_times is None else schema_with_event_times(full_schema, *event_times)
    header = {HeaderKey.INSTANT_TIME: instant, HeaderKey.SCHEMA: written}
    return encode_block(BlockType.AVRO_DATA, header, body.getvalue())


@lru_cache(maxsize=16)
def _parsed(schema: str) -> Any:
    return fastavro.parse_schema(json.loads(schema))

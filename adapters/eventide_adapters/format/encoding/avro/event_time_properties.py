"""The range of a data block's event times as properties of the schema in its header.

Hudi's readers refuse an unknown header key, but ignore properties of a schema that Avro does not know. So eventide can
read a range without the block's content, and every stock reader can still read the block. A block that has a range
contains no record marked as deleted, because its writer put those into DELETE blocks.
"""

import json
import re
from typing import Any

from eventide_core.errors import RecordDecodeError
from eventide_core.table.files.log_block import BlockType, LogBlock
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema

_FIELD = "eventide.event_time_field"
_MIN = "eventide.min_event_time_ms"
_MAX = "eventide.max_event_time_ms"
_UNKNOWN = "eventide.unknown_event_times"
_UNREADABLE = "eventide.unreadable_event_times"

# The last brace belongs to the outermost schema, so these are its properties and not a nested type's.
_PROPERTIES = re.compile(
    rf',"{re.escape(_FIELD)}":"[^"\\]*","{re.escape(_MIN)}":(-?\d+|null),"{re.escape(_MAX)}":(-?\d+|null),'
    rf'"{re.escape(_UNKNOWN)}":\d+(,"{re.escape(_UNREADABLE)}":\d+)?\}}'
)


def with_event_times(schema: AvroSchema, field: str, event_times: EventTimeRange) -> AvroSchema:
    """The schema with the range of that field as properties."""
    properties = {
        _FIELD: field,
        _MIN: event_times.min_ms,
        _MAX: event_times.max_ms,
        _UNKNOWN: event_times.unknown_records,
    }
    if not event_times.has_only_times:
        properties[_UNREADABLE] = event_times.unreadable_records
    return AvroSchema.of_json({**schema.parsed, **properties})


def without_event_times(schema: AvroSchema) -> AvroSchema:
    """The schema without the properties that `with_event_times` adds: one schema for all blocks of a write.

    Returns a schema without such properties unchanged.
    """
    return schema.derived(_without_event_times)


def _without_event_times(schema: AvroSchema) -> AvroSchema:
    text = schema.text
    start = text.rfind(f',"{_FIELD}":')
    return AvroSchema.of(text[:start] + "}") if start >= 0 and _PROPERTIES.fullmatch(text, start) else schema


def event_times_in_header(block: LogBlock, field: str | None) -> EventTimeRange | None:
    """The range of `field` in the header of a data block; None if the header has none, and for other blocks."""
    if block.block_type is BlockType.DELETE:
        return None
    return event_times_of_schema(block.schema, field)


def event_times_of_schema(schema: AvroSchema, field: str | None) -> EventTimeRange | None:
    """The range of `field` in the schema of a block; None if it has none or has the range of another field.

    Also None for a range with unknown event times alone: earlier versions counted unreadable ones among them.

    Raises RecordDecodeError for an incomplete range, and for an invalid schema.
    """
    text = schema.text
    if _FIELD not in text:
        return None  # most schemas don't need to be parsed
    try:
        # A block has a range of its own, so only the properties behind the schema of all blocks are parsed for each.
        common = without_event_times(schema)
        parsed = dict[str, Any](common.parsed)
        if common is not schema:
            parsed |= json.loads("{" + text[len(common.text) :])
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordDecodeError(f"the schema of a block cannot be read ({error}): {text[:200]}") from error
    if parsed.get(_FIELD) != field:
        return None
    least, greatest, unknown, unreadable = (parsed.get(key) for key in (_MIN, _MAX, _UNKNOWN, _UNREADABLE))
    both = isinstance(least, int) and isinstance(greatest, int) and least <= greatest
    if not isinstance(unknown, int) or unknown < 0 or not (both or (least is None and greatest is None)):
        raise RecordDecodeError(f"event times of a block from {least} to {greatest}, {unknown} unknown, aren't a range")
    if unreadable is None:
        return None if unknown else EventTimeRange(least, greatest)
    if not isinstance(unreadable, int) or unreadable < 0:
        raise RecordDecodeError(f"event times of a block: {unreadable} unreadable ones aren't a count")
    return EventTimeRange(least, greatest, unknown, unreadable)

"""The range of a data block's event times as properties of the schema in its header.

Hudi's readers refuse an unknown header key, but ignore properties of a schema that Avro does not know. So eventide can
read a range without the block's content, and every stock reader can still read the block. A block that has a range
contains no record marked as deleted, because its writer put those into DELETE blocks.
"""

import json
import re
from typing import Any

from eventide_core.errors import RecordDecodeError
from eventide_core.table.files.log_block import BlockType, HeaderKey, LogBlock
from eventide_core.table.records.event_time import EventTimeRange

_FIELD = "eventide.event_time_field"
_MIN = "eventide.min_event_time_ms"
_MAX = "eventide.max_event_time_ms"
_UNKNOWN = "eventide.unknown_event_times"
_UNREADABLE = "eventide.unreadable_event_times"

# The last brace belongs to the outermost schema, so these are its properties and not those of a nested type.
_PROPERTIES = re.compile(
    rf',"{re.escape(_FIELD)}":"[^"\\]*","{re.escape(_MIN)}":(-?\d+|null),"{re.escape(_MAX)}":(-?\d+|null),'
    rf'"{re.escape(_UNKNOWN)}":\d+(,"{re.escape(_UNREADABLE)}":\d+)?\}}'
)


def schema_with_event_times(schema: str, field: str, event_times: EventTimeRange) -> str:
    """The schema with the range of that field as properties."""
    properties = {
        _FIELD: field,
        _MIN: event_times.min_ms,
        _MAX: event_times.max_ms,
        _UNKNOWN: event_times.unknown_records,
    }
    if not event_times.has_only_times:
        properties[_UNREADABLE] = event_times.unreadable_records
    return json.dumps({**json.loads(schema), **properties}, separators=(",", ":"))


def without_event_times(schema: str) -> str:
    """The schema without the properties that `schema_with_event_times` adds: the same text for all blocks of a write.

    Returns a text without such properties unchanged.
    """
    start = schema.rfind(f',"{_FIELD}":')
    return schema[:start] + "}" if start >= 0 and _PROPERTIES.fullmatch(schema, start) else schema


def event_times_in_header(block: LogBlock, field: str | None) -> EventTimeRange | None:
    """The range of `field` in the header of a data block; None if the header has none, and for other blocks."""
    if block.block_type is BlockType.DELETE:
        return None
    return event_times_of_schema(block.header.get(HeaderKey.SCHEMA, ""), field)


def event_times_of_schema(schema: str, field: str | None) -> EventTimeRange | None:
    """The range of `field` in the schema of a block; None if it has none or has the range of another field.

    Also None for a range with unknown event times alone: earlier versions counted unreadable ones among them.

    Raises RecordDecodeError for an incomplete range, and for an invalid schema.
    """
    if _FIELD not in schema:
        return None  # most schemas don't need to be parsed
    try:
        parsed = dict[str, Any](json.loads(schema))
    except (ValueError, TypeError, RecursionError) as error:
        raise RecordDecodeError(f"the schema of a block cannot be read ({error}): {schema[:200]}") from error
    if parsed.get(_FIELD) != field:
        return None
    least, greatest, unknown, unreadable = (parsed.get(key) for key in (_MIN, _MAX, _UNKNOWN, _UNREADABLE))
    both = isinstance(least, int) and isinstance(greatest, int) and least <= greatest
    if not isinstance(unknown, int) or unknown < 0 or not (both or (least is None and greatest is None)):
        raise RecordDecodeError(f"event times of a block from {least} to {greatest}, {unknown} unknown, are no range")
    if unreadable is None:
        return None if unknown else EventTimeRange(least, greatest)
    if not isinstance(unreadable, int) or unreadable < 0:
        raise RecordDecodeError(f"event times of a block: {unreadable} unreadable ones are no count")
    return EventTimeRange(least, greatest, unknown, unreadable)

"""Merges the versions of a metadata table record into one, by partition, as Hudi's HoodieMetadataPayload does.

    files            the names, as added and removed; of two sizes of a name, the greater one
    column_stats     the span of the ranges of one file; a removal removes the earlier ranges
    partition_stats  the same; a tight range replaces the earlier ranges. If the column was widened, in the wider form
    bloom_filters    the latest; nothing if it is a removal
    record_index     the latest
    secondary_index  the latest; nothing if the pair is deleted
    expr_index       as column_stats and partition_stats, or as bloom_filters

A DELETE block removes every earlier version. A removal leaves no record behind, because a merge has all versions, including
the base file's.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from eventide_adapters.format.metadata_table.records.records import (
    Value,
    decode_value,
    encode_value,
    merged_files,
    record_name,
)
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.metadata_table import (
    BLOOM_FILTERS,
    COLUMN_STATS,
    EXPRESSION_INDEX_PREFIX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX_PREFIX,
    kind_of,
)

_FILTER: Final = "BloomFilterMetadata"
_DECIMAL: Final = 10  # Hudi's value type of decimals: the bytes are a number
_SIGNED_BYTES: Final = "DecimalWrapper"
COUNTS: Final = ("valueCount", "nullCount", "totalSize", "totalUncompressedSize")
_OF_LATEST: Final = ("isTightBound",)
_FLOATS: Final = ("FloatWrapper", "DoubleWrapper")
_WIDER: Final = ("IntWrapper", "LongWrapper", *_FLOATS, "StringWrapper")
_GREATEST_TEXT: Final = "\U0010ffff"  # the greatest code point, in the order of Java's strings and of bytes alike


class RecordSource(NamedTuple):
    """A base file or HFILE block of a slice: its entries by key, their schema, and its place for messages.

    `is_merged` is true for a base file, whose records a compaction has already merged.
    """

    entries: Iterable[tuple[bytes, bytes]]
    schema: AvroSchema
    place: str
    is_merged: bool = False


class EntryVersion(NamedTuple):
    """One version of a key: the number of its source, counted from the oldest, and its bytes."""

    key: bytes
    source: int
    value: bytes


def merged_entries(
    partition: str, sources: Sequence[RecordSource], deleted: Mapping[bytes, int], schema: AvroSchema
) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values in the order of the keys, one for each key that is left. The values have `schema`.

    `sources` are ordered by age, oldest first. `deleted` has a number for each deleted key: the key's versions in the
    sources before that number don't count. Keeps one version of each source in memory at a time, and all versions of the
    current key. Raises RecordDecodeError.
    """
    merge = _MERGES[kind_of(partition)]
    versions = heapq.merge(*(_versions(number, source) for number, source in enumerate(sources)))
    for key, of_key in groupby(versions, itemgetter(0)):
        since = deleted.get(key, 0)
        counting = [version for version in of_key if version.source >= since]
        if not counting:
            continue
        last = counting[-1]
        source = sources[last.source]
        if merge is None or (len(counting) == 1 and source.is_merged):
            value: bytes | None = last.value
            if source.schema != schema:
                value = encode_value(decode_value(last.value, source.schema, source.place), schema)
        else:
            decoded = [decode_value(v.value, sources[v.source].schema, sources[v.source].place) for v in counting]
            merged = merge(decoded)
            value = None if merged is None else encode_value(merged, schema)
        if value is not None:
            yield key, value


def can_merge(partition: str) -> bool:
    """If eventide can merge the records of that partition of the metadata table."""
    return kind_of(partition) in _MERGES


def merged_statistics(versions: Iterable[Value | None]) -> Value | None:
    """The statistics of a column: the span of several versions, one for each append. None if they were deleted."""
    merged: Value | None = None
    for version in map(_without_nan, versions):
        if version is None or version["isDeleted"]:
            merged = None
        elif merged is None or version.get("isTightBound"):
            merged = version
        else:
            form = _form_of_both(merged, version)
            ends = {
                "minValue": _outer(form, merged, version, "minValue"),
                "maxValue": _outer(form, merged, version, "maxValue"),
            }
            counts = {name: merged[name] + version[name] for name in COUNTS}
            merged = form | ends | counts | {name: version[name] for name in _OF_LATEST if name in version}
    return merged


def _versions(number: int, source: RecordSource) -> Iterator[EntryVersion]:
    for key, value in source.entries:
        yield EntryVersion(key, number, value)


def _files(versions: Sequence[Value]) -> Value:
    entries = {name: {"size": size, "isDeleted": False} for name, size in sorted(merged_files(versions).items())}
    return versions[-1] | {"filesystemMetadata": entries}


def _statistics(versions: Sequence[Value]) -> Value | None:
    merged = merged_statistics(version["ColumnStatsMetadata"] for version in versions)
    return None if merged is None else versions[-1] | {"ColumnStatsMetadata": merged}


def _unless_deleted(field: str, versions: Sequence[Value]) -> Value | None:
    return None if versions[-1][field]["isDeleted"] else versions[-1]


def _expression(versions: Sequence[Value]) -> Value | None:
    return _statistics(versions) if versions[-1].get(_FILTER) is None else _unless_deleted(_FILTER, versions)


_MERGES: Final[Mapping[str, Callable[[Sequence[Value]], Value | None] | None]] = {
    FILES: _files,
    COLUMN_STATS: _statistics,
    PARTITION_STATS: _statistics,
    BLOOM_FILTERS: partial(_unless_deleted, _FILTER),
    RECORD_INDEX: None,
    SECONDARY_INDEX_PREFIX: partial(_unless_deleted, "SecondaryIndexMetadata"),
    EXPRESSION_INDEX_PREFIX: _expression,
}
"""None: the latest version counts, unchanged."""


def _form_of_both(one: Value, other: Value) -> Value:
    """Of two versions, the one whose form holds the values of both: the wider one if the column was widened in between."""
    if one["minValue"] is None or other["minValue"] is None:
        return other if one["minValue"] is None else one
    return one if _width(one) > _width(other) else other


def _width(version: Value) -> int:
    return _WIDER.index(name) if (name := record_name(version["minValue"])) in _WIDER else -1


def _outer(form: Value, one: Value, other: Value, end: str) -> Any:
    """The outer end of both ranges in the form. Nothing is known of the order of numbers as text: then, the widest range."""
    ends = [version[end] for version in (one, other) if version[end] is not None]
    if len(ends) < 2:
        return ends[0] if ends else None
    is_least, name = end == "minValue", form[end][0]
    if record_name(form[end]) == "StringWrapper" and any(wrapped[0] != name for wrapped in ends):
        return name, {"value": "" if is_least else _GREATEST_TEXT}
    is_number = (form.get("valueType") or {}).get("typeOrdinal") == _DECIMAL
    keys = [_order(wrapped, is_number=is_number) for wrapped in ends]
    wrapped = ends[0] if (keys[0] <= keys[1]) == is_least else ends[1]
    if wrapped[0] == name:
        return wrapped
    value = wrapped[1]["value"]
    return name, {"value": float(value) if record_name(form[end]) in _FLOATS else value}


def _order(wrapped: tuple[str, Value], *, is_number: bool) -> Any:
    name, record = wrapped
    value = record["value"]
    if isinstance(value, bytes) and (is_number or name.endswith(_SIGNED_BYTES)):
        return int.from_bytes(value, "big", signed=True)
    return value


def _without_nan(version: Value | None) -> Value | None:
    """The version, whose range is all numbers if it ended with NaN (`column_ranges`)."""
    if version is None or version["maxValue"] is None:
        return version
    wrapper, record = version["maxValue"]
    if not isinstance(record["value"], float) or not math.isnan(record["value"]):
        return version
    return version | {"minValue": (wrapper, {"value": -math.inf}), "maxValue": (wrapper, {"value": math.inf})}

"""Checks the records of one write, adds their keys and partition paths, and combines the versions of each key if required.

A keyed table has the columns `_hoodie_record_key`, `_hoodie_partition_path`, KEY_PART_n (the texts of the key fields, if
there are several), IS_DELETE, and the table's. In a delete by keys, of the table's columns only the columns of key,
partition and ordering have values. An ordering value of null means a delete in natural order.
"""

from contextlib import suppress
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField
from eventide_adapters.format.encoding.columns.event_times import event_times_ms, unreadable_rows
from eventide_adapters.format.encoding.columns.field_path import column_at, top_level, type_at
from eventide_adapters.format.slice.log_file.ordering_values import orderings_of, ranks
from eventide_adapters.format.write.incoming_schema import conform, refuse_other_symbols
from eventide_adapters.format.write.record_keys import partition_paths, record_keys
from eventide_core.errors import InvalidRecordError, UnsupportedTableError
from eventide_core.table.records.event_time_texts import FORMAT_KEY, ISO_WITH_ZONE, ZONE_KEY, EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import IS_DELETED, PARTITION_PATH, RECORD_KEY
from eventide_core.table.settings.write_shape import WriteShape

IS_DELETE: Final = "_eventide_is_delete"
_KEY_PART: Final = "_eventide_key_part_"


def keyed_schema(shape: WriteShape) -> pa.Schema:
    """The columns of a keyed table."""
    own: list[ArrowField] = [field.with_nullable(True) for field in arrow_schema(shape.records.schema)]
    parts: list[ArrowField] = [pa.field(name, pa.string()) for name in key_parts(shape)]
    texts: list[ArrowField] = [pa.field(RECORD_KEY, pa.string()), pa.field(PARTITION_PATH, pa.string())]
    return pa.schema([*texts, *parts, pa.field(IS_DELETE, pa.bool_()), *own])


def key_parts(shape: WriteShape) -> tuple[str, ...]:
    """The columns with the texts of the key fields; empty if there is only one key field or the key is one bare value."""
    if not shape.keys.names_key_fields or len(shape.keys.key_fields) == 1:
        return ()
    return tuple(f"{_KEY_PART}{number}" for number in range(len(shape.keys.key_fields)))


def keyed_upserts(records: pa.Table, shape: WriteShape) -> pa.Table:
    """Records to write. Records marked by `_hoodie_is_deleted`, or by the table's delete marker, are deletes.

    Raises InvalidRecordError for a missing column of key or partition, for a null that is not allowed: in a key, in an
    ordering value if that decides, or in a column that is never null; and for an event time that cannot be read.
    """
    _check_placed(records, shape, "records")
    schema = arrow_schema(shape.records.schema)
    rows = conform(records, schema)
    refuse_other_symbols(rows, shape.records.schema)
    is_by_commit = shape.records.merge_rule is MergeRule.COMMIT_TIME_ORDERING
    for ordering in () if is_by_commit else shape.records.ordering_fields:
        row = column_at(rows, ordering).is_null().index(True).as_py()
        if row >= 0:
            raise InvalidRecordError(
                f"row {row}: ordering field {ordering!r} is null, and no reader could order such a record: give "
                "it a value, or leave the record out"
            )
    if shape.refuses_unreadable_times:
        _refuse_unreadable(rows, shape)
    return _keyed(rows, _is_delete(rows, shape), shape)


def _refuse_unreadable(rows: pa.Table, shape: WriteShape) -> None:
    """Such a record could be before any T: in a log file, it would leave the table without a watermark."""
    name = shape.records.event_time_field
    if name is None:
        return
    column: Any = column_at(rows, name).combine_chunks()
    texts = shape.records.event_time_texts
    with suppress(UnsupportedTableError):  # a compaction by event time refuses the type, with the cure
        bad = np.flatnonzero(unreadable_rows(column, event_times_ms(column, shape.records.event_time_texts)))
        if len(bad):
            row = int(bad[0])
            raise InvalidRecordError(
                f"row {row}: the event time {column[row].as_py()!r} in column {name!r} cannot be read: give "
                f"{_readable(column.type, texts)}; null for a record without one"
            )


def _readable(kind: pa.DataType, texts: EventTimeTexts) -> str:
    """What can be read as an event time in a column of this type."""
    if not pa.types.is_string(kind):
        return "epoch milliseconds or seconds"
    iso = "ISO-8601 with a zone, such as 2026-11-21T00:00Z"
    if texts == ISO_WITH_ZONE:
        return f"{iso}, or epoch milliseconds ({ZONE_KEY} and {FORMAT_KEY} say how other texts are read)"
    return f"a text by {texts}, or {iso}"


def keyed_deletes(keys: pa.Table, shape: WriteShape) -> pa.Table:
    """Keys to delete: the columns of key and partition, and optionally the ordering columns."""
    schema = arrow_schema(shape.records.schema)
    _check_placed(keys, shape, "deletes")
    names = {*top_level((*shape.keys.fields, *shape.records.ordering_fields))}
    given = keys.select([name for name in keys.column_names if name in names])
    rows = conform(given, pa.schema([field.with_nullable(True) for field in schema]))
    return _keyed(rows, pa.repeat(True, len(rows)), shape)


def _check_placed(rows: pa.Table, shape: WriteShape, what: str) -> None:
    types = {field.name: field.type for field in rows.schema}
    needed = [name for name in shape.keys.fields if type_at(name, types) is None]
    if needed:
        raise InvalidRecordError(
            f"{what} without the column {needed[0]!r}: {', '.join(shape.keys.fields)} identify the record and where "
            f"it belongs; they have {', '.join(rows.column_names)}"
        )


def combined(keyed: pa.Table, shape: WriteShape) -> pa.Table:
    """One version of each key in each partition, or (global keys) in the table.

    It is the version with the greatest ordering value, and the last one on a tie. In COMMIT_TIME_ORDERING, it is the last
    version. In other modes, a delete in natural order comes last, because it deletes any version.
    """
    place = _place_codes(keyed, shape)
    if len(np.unique(place)) == len(place):
        return keyed
    if shape.records.partial_update is not None or shape.records.merger is not None:
        require_single_keys(keyed, shape)  # neither version has all of what readers would see
    by: list[Any] = [np.arange(len(place))]
    fields = shape.records.ordering_fields
    if fields and shape.records.merge_rule is not MergeRule.COMMIT_TIME_ORDERING:
        values = orderings_of(keyed.combine_chunks().to_batches()[0], fields)
        by.append(ranks(values))
        by.append(values.is_null().to_numpy(zero_copy_only=False))
    order = np.lexsort((*by, place))
    is_last = np.append(place[order][1:] != place[order][:-1], True)
    return keyed.take(np.sort(order[is_last]))


def require_single_keys(keyed: pa.Table, shape: WriteShape) -> None:
    """Raises InvalidRecordError if a key occurs twice in a partition."""
    place = _place_codes(keyed, shape)
    _, first, counts = np.unique(place, return_index=True, return_counts=True)
    if len(counts) and int(counts.max()) > 1:
        key = keyed.column(RECORD_KEY)[int(first[counts.argmax()])].as_py()
        raise InvalidRecordError(f"record key {key!r} occurs twice in one write; merge its versions first")


def _is_delete(rows: pa.Table, shape: WriteShape) -> Any:
    """For each record, if it is marked as a delete: by Hudi's column, or by the table's delete marker."""
    is_delete: Any = pa.repeat(pa.scalar(value=False), len(rows))
    marker = shape.records.delete_marker
    if IS_DELETED in rows.column_names and pa.types.is_boolean(rows.schema.field(IS_DELETED).type):
        is_delete = _known_true(rows.column(IS_DELETED))
    if marker is not None and marker.field in rows.column_names:
        texts: Any = rows.column(marker.field).cast(pa.string())
        is_delete = pc.or_(is_delete, _known_true(pc.equal(texts, pa.scalar(marker.value))))
    return is_delete


def _known_true(column: Any) -> Any:
    return pc.fill_null(column, False)


def _keyed(rows: pa.Table, is_delete: Any, shape: WriteShape) -> pa.Table:
    key, parts = record_keys(rows, shape.keys)
    named = parts if key_parts(shape) else ()
    columns = [key, partition_paths(rows, shape.keys), *named, is_delete, *rows.columns]
    return pa.table(columns, schema=keyed_schema(shape))


def _place_codes(keyed: pa.Table, shape: WriteShape) -> Any:
    """A number for each row, the same for the same key in the same partition, or (global keys) for the same key."""
    key = keyed.column(RECORD_KEY).combine_chunks().dictionary_encode()
    if shape.has_global_keys:
        return key.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    partition = keyed.column(PARTITION_PATH).combine_chunks().dictionary_encode()
    keys, partitions = (column.indices.to_numpy(zero_copy_only=False).astype(np.int64) for column in (key, partition))
    return keys * max(len(partition.dictionary), 1) + partitions

"""Verifies data files: decodes every column of every record, in whole columns.

A slice is read twice. First, its base file and each of its log files are read separately, to check that they are readable
and what they contain. Then they are merged, in the few columns that identify a version of a record, to check what a snapshot
query returns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import AvroField, table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, ArrowChunks
from eventide_adapters.format.encoding.columns.event_times import event_times_ms
from eventide_adapters.format.encoding.columns.field_path import column_at, top_level
from eventide_adapters.format.encoding.parquet.open_file import open_base
from eventide_adapters.format.slice.base_file.event_times import ParquetBaseContent
from eventide_adapters.format.slice.base_file.key_range import (
    bloom_filter_in,
    java_order,
    least_and_greatest,
    range_in,
)
from eventide_adapters.format.slice.base_file.parquet import BaseFooter, read_base
from eventide_adapters.format.slice.log_content.records import unreadable_in
from eventide_adapters.format.slice.log_file.blocks import counting_blocks
from eventide_adapters.format.slice.log_file.event_times import event_time_range_of
from eventide_adapters.format.slice.log_file.records import BlockReader, DataBlock, LogPart
from eventide_adapters.format.slice.merge.base_merge import merge_columns
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.access.files import checksum_of_file
from eventide_core.errors import EventideError, RecordDecodeError, StorageError, UnsupportedTableError
from eventide_core.ports import Storage
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.files.slice_audit import RepeatedKey, RowDifference, SliceAudit, StrayKeys
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import COMMIT_SEQNO, COMMIT_TIME, FILE_NAME, RECORD_KEY
from eventide_core.table.settings.key_format import KeyFormat

_EVENT_TIME: Final = "event time"
_PLACE: Final = "place"
_VERSION: Final = (RECORD_KEY, COMMIT_TIME, COMMIT_SEQNO)
_NO_VERSIONS: Final = pa.schema(
    [(name, pa.int64() if name == _EVENT_TIME else pa.string()) for name in (*_VERSION, _EVENT_TIME)]
)
_PIECE_BYTES: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ArrowContentAudit:
    """ports.ContentAudit over a storage."""

    storage: Storage

    def row_count(self, base_path: str) -> int:
        with open_base(self.storage, base_path) as file:
            return file.metadata.num_rows

    def checksum(self, path: str, size: int) -> str | None:
        return checksum_of_file(self.storage, path, size)

    def have_same_bytes(self, path: str, other: str) -> bool:
        with self.storage.open_input(path) as left, self.storage.open_input(other) as right:
            while True:
                piece, same = left.read(_PIECE_BYTES), right.read(_PIECE_BYTES)
                if piece != same:
                    return False
                if not piece:
                    return True

    def audit(
        self, slice_read: SliceRead, shape: RecordShape, watermark_ms: int | None, keys: KeyFormat | None
    ) -> SliceAudit:
        unreadable: dict[str, str] = {}
        base, hidden, unstated, wrong, late = _NO_VERSIONS.empty_table(), None, None, None, None
        if slice_read.base_path is not None:
            try:
                base, wrong = self._base(slice_read.base_path, shape, keys)
                hidden = self._hidden_keys(slice_read.base_path, base.column(RECORD_KEY))
                unstated = self._unstated_times(slice_read.base_path, base, shape)
            except EventideError as error:
                unreadable[slice_read.base_path] = _damage(error)
        least, records, no_times = self._logs(slice_read, shape, unreadable)
        can_compare = shape.event_time_field is not None and shape.merger is None  # a merger may make a row of any time
        if not unreadable and watermark_ms is not None and can_compare:
            late = self._late_rows(slice_read, shape, watermark_ms, base)
        return SliceAudit(
            partition=slice_read.partition,
            file_id=slice_read.file_id,
            unreadable=unreadable,
            commit_times=_counts(base.column(COMMIT_TIME)),
            hidden_keys=hidden,
            unstated_times=unstated,
            wrong_keys=wrong,
            late_rows=late,
            least_event_time_ms=least,
            unreadable_event_times=no_times,
            repeated=_repeated(_at(slice_read, base)),
            log_records=records,
        )

    def shown_keys(self, slice_read: SliceRead, shape: RecordShape) -> frozenset[str]:
        return frozenset(map(str, self._shown(slice_read, shape).column(RECORD_KEY).to_pylist()))

    def repeated_keys(self, slices: Sequence[SliceRead], shape: RecordShape) -> tuple[RepeatedKey, ...]:
        shown = [_distinct(_at(one, self._shown(one, shape))) for one in slices]
        return _repeated(pa.concat_tables(shown))

    def differences(self, before: SliceRead, after: SliceRead, shape: RecordShape) -> RowDifference | None:
        fields = tuple(field for field in table_fields(shape.schema) if field.name != FILE_NAME)
        old, new = (self._merged(one, shape, fields) for one in (before, after))
        keys = [table.column(RECORD_KEY).combine_chunks() for table in (old, new)]
        lost, added = (_stray(keys[i].filter(pc.invert(pc.is_in(keys[i], value_set=keys[1 - i])))) for i in (0, 1))
        old, new = (_shared(table, other) for table, other in zip((old, new), reversed(keys), strict=True))
        changed = _changed(old, new)
        difference = RowDifference(lost, added, changed)
        return difference if any((lost, added, changed)) else None

    def _base(self, path: str, shape: RecordShape, keys: KeyFormat | None) -> tuple[pa.Table, StrayKeys | None]:
        """The columns that identify the versions in a base file, and its wrong keys. Decodes every column."""
        fields = table_fields(shape.schema)
        parts: list[pa.Table] = []
        wrong: list[str] = []
        for batch in read_base(self.storage, path, fields, shape):
            parts.append(_version(_valid(batch, path), shape))
            if keys is not None:
                wrong += wrong_keys(batch, keys)
        versions = pa.concat_tables(parts) if parts else _NO_VERSIONS.empty_table()
        return versions, StrayKeys(len(wrong), min(wrong)) if wrong else None

    def _hidden_keys(self, path: str, keys: ArrowChunks) -> StrayKeys | None:
        pairs = BaseFooter.read(self.storage, path).pairs
        stated = range_in(pairs, path)
        hidden: list[Any] = []
        bloom = bloom_filter_in(pairs, path)
        for chunk in keys.chunks:
            texts = pc.unique(chunk.filter(pc.not_equal(chunk, pa.scalar("")), null_selection_behavior="drop"))
            if bloom is not None and len(texts):
                hidden += texts.filter(pa.array(~bloom.may_contain(texts))).to_pylist()
            if stated is not None and len(texts):
                low, high = stated
                hidden += [key for key in least_and_greatest(texts) if not low <= java_order(key) <= high]
        return StrayKeys(len(set(hidden)), str(min(hidden))) if hidden else None

    def _unstated_times(self, path: str, base: pa.Table, shape: RecordShape) -> StrayKeys | None:
        """The rows whose event times are outside the range that the footer states, as of a false footer."""
        field = shape.event_time_field
        stated = None if field is None else ParquetBaseContent(self.storage).event_times(path, shape)
        if stated is None:
            return None
        times, least, greatest = base.column(_EVENT_TIME), stated.min_ms, stated.max_ms
        if least is None or greatest is None:
            return _stray(base.filter(pc.is_valid(times)).column(RECORD_KEY))
        outside = pc.or_(pc.less(times, pa.scalar(least)), pc.greater(times, pa.scalar(greatest)))
        return _stray(base.filter(outside).column(RECORD_KEY))  # a null is not outside

    def _logs(
        self, slice_read: SliceRead, shape: RecordShape, unreadable: dict[str, str]
    ) -> tuple[dict[str, int | None], dict[str, dict[str, int]], dict[str, StrayKeys]]:
        """The earliest event time in each log file, its numbers of records by instant, and its unreadable event times.

        Decodes every column.
        """
        reader = BlockReader(self.storage, shape, None)
        least: dict[str, int | None] = {}
        no_times: dict[str, StrayKeys] = {}
        records: dict[str, dict[str, int]] = {}
        try:
            placed_blocks = counting_blocks(self.storage, slice_read.log_paths, slice_read.blocks, is_strict=True)
        except EventideError as error:
            unreadable[f"{slice_read.partition}/{slice_read.file_id}"] = _damage(error)
            return {}, {}, {}
        for placed in placed_blocks:
            if placed.path in unreadable:
                continue
            try:
                of_path = records.setdefault(placed.path, {})
                for part in reader.read(placed):
                    if isinstance(part, DataBlock):
                        _valid(part.records, placed.place)
                    if placed.block.block_type is not BlockType.DELETE:
                        of_path[placed.instant] = of_path.get(placed.instant, 0) + len(part.keys)
                    times = _times(part, shape)
                    if times.unreadable_records:
                        _note_unreadable(no_times, placed.path, part, shape, times.unreadable_records)
                    min_ms = times.min_ms
                    known = least.get(placed.path)
                    least[placed.path] = min_ms if known is None else known if min_ms is None else min(min_ms, known)
            except EventideError as error:
                unreadable[placed.path] = _damage(error)
        return least, records, no_times

    def _late_rows(
        self, slice_read: SliceRead, shape: RecordShape, watermark_ms: int, base: pa.Table
    ) -> StrayKeys | None:
        """The snapshot's rows before the watermark whose version is not in the base file."""
        shown = self._shown(slice_read, shape)
        early = shown.filter(pc.less(shown.column(_EVENT_TIME), pa.scalar(watermark_ms)))
        if not len(early):
            return None
        names = [*_VERSION, _EVENT_TIME]
        late = _comparable(early).join(_comparable(base), keys=names, join_type="left anti", use_threads=False)
        return _stray(late.column(RECORD_KEY))

    def _shown(self, slice_read: SliceRead, shape: RecordShape) -> pa.Table:
        """The versions that a snapshot query of the slice returns."""
        times = () if shape.event_time_field is None else top_level([shape.event_time_field])
        names = {*_VERSION, *merge_columns(shape), *times}
        batches = ArrowSliceReader(self.storage).records(slice_read, shape, table_fields(shape.schema, names))
        parts = [_version(batch, shape) for batch in batches]
        return pa.concat_tables(parts) if parts else _NO_VERSIONS.empty_table()

    def _merged(self, slice_read: SliceRead, shape: RecordShape, fields: tuple[AvroField, ...]) -> pa.Table:
        batches = list(ArrowSliceReader(self.storage).records(slice_read, shape, fields))
        return pa.Table.from_batches(batches, pa.schema([field.arrow for field in fields]))


def _damage(error: EventideError) -> str:
    """The damage of a file. Raises errors that aren't damage: a failing storage, and features that eventide lacks."""
    if error.exit_code == StorageError.exit_code or isinstance(error, UnsupportedTableError):
        raise error
    return str(error)


def _valid(records: pa.RecordBatch, place: str) -> pa.RecordBatch:
    """The records. Raises RecordDecodeError for a text that is not UTF-8, which Arrow doesn't notice when it reads."""
    try:
        records.validate(full=True)
    except pa.ArrowInvalid as error:
        raise RecordDecodeError(f"{place}: {error}") from None
    return records


def _version(batch: pa.RecordBatch, shape: RecordShape) -> pa.Table:
    """Key, commit and event time, which identify a version of a record."""
    field = shape.event_time_field
    times = (
        pa.nulls(len(batch), pa.int64())
        if field is None
        else event_times_ms(column_at(batch, field), shape.event_time_texts)
    )
    return pa.table([*map(batch.column, _VERSION), times], names=[*_VERSION, _EVENT_TIME])


def _note_unreadable(stray: dict[str, StrayKeys], path: str, part: LogPart, shape: RecordShape, count: int) -> None:
    known = stray.get(path)
    if known is None:
        first = unreadable_in(path, part, shape, 1)[0]
        known = StrayKeys(0, f"{first.key!r} has {first.value}")
    stray[path] = StrayKeys(known.count + count, known.example)


def _times(part: LogPart, shape: RecordShape) -> EventTimeRange:
    """The event times of a part of a block; none if the table's event-time field is not known."""
    return EventTimeRange(None, None) if shape.event_time_field is None else event_time_range_of(part, shape)


def _counts(times: Any) -> dict[str, int]:
    return {one["values"]: one["counts"] for one in pc.value_counts(times).to_pylist() if one["values"] is not None}


def _at(slice_read: SliceRead, versions: pa.Table) -> pa.Table:
    return versions.append_column(_PLACE, pa.repeat(slice_read.file_id, len(versions)))


def _distinct(versions: pa.Table) -> pa.Table:
    """The first version of each key."""
    codes = versions.column(RECORD_KEY).combine_chunks().dictionary_encode().indices.fill_null(-1)
    _, first = np.unique(codes.to_numpy(zero_copy_only=False), return_index=True)
    places: Any = pa.array(first)
    return versions.take(places)


def _repeated(versions: pa.Table) -> tuple[RepeatedKey, ...]:
    """The keys that occur more than once, grouped by where they occur and by their commits."""
    counted: Any = pc.value_counts(versions.column(RECORD_KEY).combine_chunks())
    keys = counted.field("values").filter(pc.greater(counted.field("counts"), pa.scalar(1))).drop_null()
    if not len(keys):
        return ()
    by_key: dict[str, list[dict[str, Any]]] = {}
    for row in versions.filter(pc.is_in(versions.column(RECORD_KEY), value_set=keys)).to_pylist():
        by_key.setdefault(row[RECORD_KEY], []).append(row)
    by_kind: dict[tuple[tuple[str, ...], tuple[str, ...], bool], list[str]] = {}
    for key, rows in by_key.items():
        stamps = [(row[COMMIT_TIME], row[COMMIT_SEQNO]) for row in rows if row[COMMIT_SEQNO]]
        places = tuple(sorted({row[_PLACE] for row in rows}))
        times = tuple(sorted({row[COMMIT_TIME] for row in rows if row[COMMIT_TIME]}))
        by_kind.setdefault((places, times, len(set(stamps)) < len(stamps)), []).append(key)
    return tuple(RepeatedKey(len(keys), min(keys), *kind) for kind, keys in by_kind.items())


def _comparable(versions: pa.Table) -> pa.Table:
    """The versions without nulls, because joins treat nulls as different."""
    columns: list[Any] = [versions.column(name) for name in (*_VERSION, _EVENT_TIME)]
    fillers = ("", "", "", 0)
    filled = [pc.fill_null(column, filler) for column, filler in zip(columns, fillers, strict=True)]
    return pa.table(filled, names=[*_VERSION, _EVENT_TIME])


def _stray(keys: Any) -> StrayKeys | None:
    return StrayKeys(len(keys), str(pc.min(keys).as_py())) if len(keys) else None


def _shared(table: pa.Table, keys: ArrowArray) -> pa.Table:
    """The rows whose keys are among these, by key and version."""
    rows = table.filter(pc.is_in(table.column(RECORD_KEY), value_set=keys))
    return rows.sort_by([(RECORD_KEY, "ascending"), (COMMIT_SEQNO, "ascending")]).combine_chunks()


def _changed(old: pa.Table, new: pa.Table) -> StrayKeys | None:
    """The keys of rows that differ; both tables have the same keys, in the same order."""
    if len(old) != len(new):
        counts = [_counts(table.column(RECORD_KEY)) for table in (old, new)]
        return _stray(pa.array([key for key in counts[0] if counts[0][key] != counts[1].get(key)], pa.string()))
    differs = np.zeros(len(old), np.bool_)
    for name in old.column_names:
        left, right = old.column(name), new.column(name)
        if not left.equals(right):
            # Compares value by value, as texts: a NaN must equal itself.
            pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
            differs |= np.fromiter((repr(a) != repr(b) for a, b in pairs), np.bool_, len(old))
    return _stray(old.column(RECORD_KEY).filter(pa.array(differs)))


def wrong_keys(records: pa.RecordBatch, keys: KeyFormat) -> list[str]:
    """The record keys that the key fields don't give.

    Compares only texts and whole numbers, whose form in a key is the same in every Hudi version. With one field, a key may
    be the value or name its field: the versions differ.
    """
    at = records.schema.get_all_field_indices
    if any(len(at(name)) != 1 or not _has_one_form(records.schema.field(name).type) for name in keys.key_fields):
        return []
    parts: list[Any] = [records.column(name).cast(pa.string()) for name in keys.key_fields]
    named: list[Any] = []
    for name, part in zip(keys.key_fields, parts, strict=True):
        named += [f"{',' if named else ''}{name}:", part]
    stored: Any = records.column(RECORD_KEY)
    is_wrong: Any = pc.not_equal(stored, pc.binary_join_element_wise(*named, ""))
    if len(parts) == 1:
        is_wrong = pc.and_(is_wrong, pc.not_equal(stored, parts[0]))
    # Hudi writes a name of its own for a null or an empty text.
    for part in parts:
        is_wrong = pc.and_(is_wrong, pc.not_equal(part, pa.scalar("")))
    wrong: list[str] = stored.filter(is_wrong, null_selection_behavior="drop").to_pylist()
    return wrong


def _has_one_form(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)

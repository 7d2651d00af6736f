"""The changes of a write to a secondary index of the metadata table, which maps the values of a column to keys.

Hudi reads the index by a value, and then looks up the keys in the record index. The key of a record is
`<value>$<record key>`. Both parts escape a backslash, `$` and the zero character with a backslash. The value of a record
states only if the record is deleted.

1. In each slice that the write changed, a task reads the values of the changed keys from before and after the write.
2. A new pair is added. A pair that no slice of the write shows anymore is deleted. A key that moves to another slice with
   its value changes nothing.

    version of the index    a null            a date                    file group by the hash of
    first (Hudi 1.0)        is left out       text, 2026-11-21          the record's whole key
    second (from 1.1 on)    the zero          its number of days        the value with its `$`
                            character

A compaction changes nothing: each key keeps its value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.metadata_table.file_contents import Question, changed_keys
from eventide_adapters.format.metadata_table.group_records import GroupRecords, Parts
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition
from eventide_adapters.format.metadata_table.records.records import secondary_index_value
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.ports import FileChanges, Storage, WrittenRows
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY

SEPARATOR: Final = "$"
_NULL: Final = "\0"
_NO_KEYS: Final[Any] = pa.array([], pa.string())
_TYPES: Final = (pa.string(), pa.int32(), pa.int64(), pa.date32())

Pairs: TypeAlias = tuple[Any, Any]
"""The distinct keys of records, an Arrow array, and beside it the escaped value in each of them."""


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    """The rules by which a write changes a secondary index. `definition` is the index's, with one column."""

    definition: IndexDefinition

    def is_followed(self, written: WrittenRows) -> bool:
        """If the index is over one column, whose values eventide writes as Hudi does."""
        fields = {field.arrow.name: field.arrow.type for field in table_fields(written.shape.schema)}
        return len(self.definition.fields) == 1 and fields.get(self.definition.fields[0]) in _TYPES

    def questions(self, changes: FileChanges) -> list[Question]:
        """The questions about the slices of a write that the index follows."""
        written = changes.written
        if written is None:
            return []
        added, of_second = frozenset(file.path for file in changes.added), self.definition.is_of_second_version
        column = self.definition.fields[0]
        slices = [*((read, added) for read in written.slices), *((read, None) for read in written.replaced)]
        return [Question(pairs_of_slice, (read, files, written.shape, column, of_second)) for read, files in slices]

    def divided(self, answer: tuple[Pairs, Pairs], file_groups: int) -> Sequence[tuple[Any, Any]]:
        """A pair has two roles: the write adds it to a slice; the write removes it from one."""
        return [(pairs[0], self._numbers(pairs, file_groups)) for pairs in answer]

    def records(self, parts: Sequence[Parts]) -> GroupRecords:
        added, removed = (pc.unique(pa.concat_arrays([_NO_KEYS, *(part[side] for part in parts)])) for side in (0, 1))
        return GroupRecords(
            (
                (added.filter(pc.invert(pc.is_in(added, value_set=removed))), secondary_index_value(is_deleted=False)),
                (removed.filter(pc.invert(pc.is_in(removed, value_set=added))), secondary_index_value(is_deleted=True)),
            ),
            (),
        )

    def _numbers(self, pairs: Pairs, file_groups: int) -> Any:
        keys, values = pairs
        if self.definition.is_of_second_version:
            return file_group_numbers(pc.binary_join_element_wise(values, SEPARATOR, ""), file_groups)
        return file_group_numbers(keys, file_groups)


def index_texts(values: Any, *, is_of_second_version: bool) -> Any:
    """The texts of an Arrow array of values in the index, escaped. Only the second version has one for a null."""
    if is_of_second_version and pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    texts = _escaped(values.cast(pa.string()))
    return texts.fill_null(_NULL) if is_of_second_version else texts


def pairs_of_slice(
    storage: Storage, read: SliceRead, added: frozenset[str] | None, shape: RecordShape, column: str, of_second: bool
) -> tuple[Pairs, Pairs]:
    """The pairs that a write adds to a slice, and those that it removes from it.

    `read` is the slice as the write leaves it, and `added` has the paths of its files that the write added. None:
    the slice is as it was before a write that replaces it, and all its pairs are removed. `column` is the indexed one.
    `of_second`: nulls and dates are written as in the second version of the index.
    """
    if added is None:
        return _no_pairs(), _pairs(storage, read, shape, column, None, is_of_second_version=of_second)
    keys = changed_keys(storage, read, added, shape)
    after, before = _pairs(storage, read, shape, column, keys, is_of_second_version=of_second), _no_pairs()
    if read.base_path not in added:  # a new base file has the old one's rows unchanged
        old = replace(read, log_paths=tuple(log for log in read.log_paths if log[0] not in added))
        before = _pairs(storage, old, shape, column, keys, is_of_second_version=of_second)
    return _without(after, before), _without(before, after)


def _pairs(
    storage: Storage, read: SliceRead, shape: RecordShape, column: str, keys: Any | None, *, is_of_second_version: bool
) -> Pairs:
    """The pairs of the rows that a slice shows, or of its rows with some keys."""
    if read.base_path is None and not read.log_paths:
        return _no_pairs()
    parts: list[Pairs] = []
    columns = list(dict.fromkeys((RECORD_KEY, column)))
    for batch in ArrowSliceReader(storage).read(read, shape, columns):
        record_keys: Any = batch.column(RECORD_KEY)
        chosen = batch if keys is None else batch.filter(pc.is_in(record_keys, value_set=keys))
        if not is_of_second_version:
            chosen = chosen.filter(chosen.column(column).is_valid())
        values = index_texts(chosen.column(column), is_of_second_version=is_of_second_version)
        parts.append((pc.binary_join_element_wise(values, _escaped(chosen.column(RECORD_KEY)), SEPARATOR), values))
    return _joined(parts)


def _escaped(texts: Any) -> Any:
    for character in ("\\", SEPARATOR, _NULL):
        texts = pc.replace_substring(texts, character, f"\\{character}")
    return texts


def _no_pairs() -> Pairs:
    return _NO_KEYS, _NO_KEYS


def _joined(parts: Sequence[Pairs]) -> Pairs:
    """All pairs, each once."""
    keys, values = (pa.concat_arrays([none, *arrays]) for none, *arrays in zip(_no_pairs(), *parts, strict=True))
    first = pa.table({"key": keys, "value": values}).group_by("key", use_threads=False).aggregate([("value", "min")])
    return first.column("key").combine_chunks(), first.column("value_min").combine_chunks()


def _without(pairs: Pairs, others: Pairs) -> Pairs:
    keys, values = pairs
    kept = pc.invert(pc.is_in(keys, value_set=others[0]))
    return keys.filter(kept), values.filter(kept)

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

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.schema import RECORD_KEY, table_fields
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.metadata_table.file_contents import FileContents, changed_keys
from eventide_adapters.format.metadata_table.index_definitions import IndexDefinition
from eventide_adapters.format.metadata_table.records import Value, secondary_index_value
from eventide_core.ports import FileChanges, Storage, WrittenRows
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import SliceRead

SEPARATOR: Final = "$"
_NULL: Final = "\0"
_EPOCH: Final = date(1970, 1, 1)
_ESCAPED: Final = str.maketrans({character: f"\\{character}" for character in ("\\", SEPARATOR, _NULL)})
_TYPES: Final = (pa.string(), pa.int32(), pa.int64(), pa.date32())

Pairs = set[tuple[str, str]]
"""Escaped values, and record keys."""


@dataclass(frozen=True, slots=True)
class PairsOfSlice:
    """The pairs that a write adds to a slice, and those that it removes from it, by the files that were `added`."""

    found: SliceRead
    added: frozenset[str]
    shape: RecordShape
    column: str
    is_of_second_version: bool

    def answer(self, storage: Storage) -> tuple[Pairs, Pairs]:
        keys = changed_keys(storage, self.found, self.added, self.shape)
        after = self._pairs(storage, self.found, keys)
        before: Pairs = set()
        if self.found.base_path not in self.added:  # a new base file has the old one's rows unchanged
            old = replace(self.found, log_paths=tuple(log for log in self.found.log_paths if log[0] not in self.added))
            before = self._pairs(storage, old, keys)
        return after - before, before - after

    def _pairs(self, storage: Storage, found: SliceRead, keys: Any) -> Pairs:
        pairs: Pairs = set()
        if found.base_path is None and not found.log_paths:
            return pairs
        columns = list(dict.fromkeys((RECORD_KEY, self.column)))
        for batch in ArrowSliceReader(storage).read(found, self.shape, columns):
            chosen = batch.filter(pc.is_in(batch.column(RECORD_KEY), value_set=keys))
            values: list[Any] = chosen.column(self.column).to_pylist()
            for key, value in zip(chosen.column(RECORD_KEY).to_pylist(), map(self._text, values), strict=True):
                if value is not None:
                    pairs.add((value, str(key)))
        return pairs

    def _text(self, value: Any) -> str | None:
        if value is None:
            return _NULL if self.is_of_second_version else None
        if isinstance(value, date) and self.is_of_second_version:
            return str((value - _EPOCH).days)
        return str(value).translate(_ESCAPED)


@dataclass(frozen=True, slots=True)
class SecondaryIndex:
    definition: IndexDefinition

    def is_followed(self, written: WrittenRows) -> bool:
        """If the index is over one column, whose values eventide writes as Hudi does."""
        fields = {field.arrow.name: field.arrow.type for field in table_fields(written.shape.schema)}
        return len(self.definition.fields) == 1 and fields.get(self.definition.fields[0]) in _TYPES

    def questions(self, changes: FileChanges) -> list[PairsOfSlice]:
        """The questions about the slices of a write that the index follows."""
        written = changes.written
        if written is None:
            return []
        added, of_second = frozenset(file.path for file in changes.added), self.definition.is_of_second_version
        column = self.definition.fields[0]
        return [PairsOfSlice(found, added, written.shape, column, of_second) for found in written.slices]

    def changes(self, changes: FileChanges, contents: FileContents) -> Iterator[tuple[str, Value]]:
        """Keys and values of the records."""
        added: Pairs = set()
        removed: Pairs = set()
        for question in self.questions(changes):
            of_slice: tuple[Pairs, Pairs] = contents[question]
            added |= of_slice[0]
            removed |= of_slice[1]
        for pairs, is_deleted in ((added - removed, False), (removed - added, True)):
            for value, key in sorted(pairs):
                yield f"{value}{SEPARATOR}{key.translate(_ESCAPED)}", secondary_index_value(is_deleted=is_deleted)

    def placing(self, key: str) -> str:
        """The part of a record's key that selects its file group."""
        return key[: _separator(key) + 1] if self.definition.is_of_second_version else key


def _separator(key: str) -> int:
    """The position of the first `$` that isn't escaped."""
    place = 0
    while key[place] != SEPARATOR:
        place += 2 if key[place] == "\\" else 1
    return place

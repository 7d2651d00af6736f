"""The changes of a write to the record index of the metadata table, which maps each key of the table to its file group.

Hudi's readers and writers look up a key only in this index, so it must be exact. The files of a write contain keys in
records and in deletes. After the write has completed:

1. If a slice shows a row for a key, the key is in that slice's file group.
2. If no slice of the write shows a key, the key is removed. A delete that a later row beats deletes nothing.
3. The keys of a slice that the write replaces are removed, too, unless 1. applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.metadata_table.file_contents import Question, keys_of_rows, keys_of_slice
from eventide_adapters.format.metadata_table.group_records import GroupRecords, Parts
from eventide_adapters.format.metadata_table.records.records import record_index_value
from eventide_core.ports import FileChanges

_NO_KEYS: Final[Any] = pa.array([], pa.string())


def key_questions(changes: FileChanges) -> list[Question]:
    """The questions about the slices that a write changes, and then about those that it replaces."""
    written = changes.written
    if written is None:
        return []
    paths = {file.path for file in changes.added}
    questions: list[Question] = []
    for read in written.slices:
        added = frozenset(paths & {read.base_path, *(path for path, _ in read.log_paths)})
        questions.append(Question(keys_of_slice, (read, added, written.shape)))
    return [*questions, *(Question(keys_of_rows, (read, written.shape)) for read in written.replaced)]


@dataclass(frozen=True, slots=True)
class RecordIndexRules:
    """The rules by which one write changes the record index.

    `places`: the partition and file ID of each question's slice, None for a slice that the write replaces. `instant_ms` is
    the write's instant in epoch milliseconds, which each record of the index states.

    A key has two roles: the files of the write contain it; the slice shows it.
    """

    places: tuple[tuple[str, str] | None, ...]
    instant_ms: int

    @classmethod
    def of(cls, instant: str, changes: FileChanges, *, is_utc: bool) -> "RecordIndexRules":
        written = changes.written
        places = [] if written is None else [(read.partition, read.file_id) for read in written.slices]
        replaced = 0 if written is None else len(written.replaced)
        return cls((*places, *[None] * replaced), epoch_ms(instant, is_utc=is_utc))

    def divided(self, answer: Any, file_groups: int) -> Sequence[tuple[Any, Any]]:
        changed, living = answer if isinstance(answer, tuple) else (answer, _NO_KEYS)
        numbers = file_group_numbers(changed, file_groups)
        return (changed, numbers), (living, numbers if living is changed else file_group_numbers(living, file_groups))

    def records(self, parts: Sequence[Parts]) -> GroupRecords:
        changed: Any = pa.concat_arrays([_NO_KEYS, *(changed for changed, _ in parts)])
        living: Any = pa.concat_arrays([_NO_KEYS, *(living for _, living in parts)])
        removed = pc.unique(changed.filter(pc.invert(pc.is_in(changed, value_set=living))))
        shown = tuple(
            (keys, record_index_value(*place, self.instant_ms))
            for (_, keys), place in zip(parts, self.places, strict=True)
            if place is not None
        )
        return GroupRecords(shown, tuple(removed.take(pc.sort_indices(removed)).to_pylist()))


def epoch_ms(instant: str, *, is_utc: bool) -> int:
    """The moment that an instant names, in the time zone of the table's writers."""
    moment = datetime.strptime(instant[:17].ljust(17, "0") + "000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007
    zoned = moment.replace(tzinfo=UTC) if is_utc else moment.astimezone()
    return int(zoned.timestamp() * 1000)

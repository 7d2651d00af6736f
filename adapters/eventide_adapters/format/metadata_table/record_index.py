"""The changes of a write to the record index of the metadata table, which maps each key of the table to its file group.

Hudi's readers and writers look up a key only in this index, so it must be exact. The files of a write contain keys in
records and in deletes. After the write has completed:

1. If a slice shows a row for a key, the key is in that slice's file group.
2. If no slice of the write shows a key, the key is removed. A delete that a later row beats deletes nothing.
3. The keys of a slice that the write replaces are removed, too, unless 1. applies.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.metadata_table.file_contents import FileContents, KeysOfRows, KeysOfSlice
from eventide_adapters.format.metadata_table.file_groups import file_group_numbers
from eventide_adapters.format.metadata_table.group_records import GroupRecords, group_logs
from eventide_adapters.format.metadata_table.log_form import LogForm
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records import (
    RECORD_INDEX,
    Value,
    record_index_value,
)
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import FileChanges
from eventide_core.table.table_path import METADATA_DIRECTORY

_GLOBAL_FILE_ID: Final = re.compile(r"record-index-\d+-\d+")


def check_record_index(reader: MetadataTableReader) -> None:
    """Raises UnsupportedTableError for a record index that has separate file groups for each partition."""
    for found in reader.slices(RECORD_INDEX):
        if not _GLOBAL_FILE_ID.fullmatch(found.file_id):
            raise UnsupportedTableError(
                f"{METADATA_DIRECTORY}/{RECORD_INDEX} has the file group {found.file_id}: a record index by "
                "partition is not supported; drop that index with Hudi, or rebuild the metadata table "
                "(`eventide metadata TABLE --rebuild`), which leaves it out"
            )


def key_questions(changes: FileChanges) -> list[KeysOfSlice]:
    """The questions about the files of a write."""
    written = changes.written
    if written is None:
        return []
    paths = {file.path for file in changes.added}
    own = [paths & {found.base_path, *(path for path, _ in found.log_paths)} for found in written.slices]
    pairs = zip(written.slices, own, strict=True)
    return [KeysOfSlice(found, frozenset(added), written.shape) for found, added in pairs]


def replaced_questions(changes: FileChanges) -> list[KeysOfRows]:
    """The questions about the slices that a write replaces."""
    written = changes.written
    return [] if written is None else [KeysOfRows(found, written.shape) for found in written.replaced]


def record_index_logs(
    instant: str,
    changes: FileChanges,
    contents: FileContents,
    forms: Sequence[LogForm],
    *,
    is_utc: bool,
) -> Sequence[tuple[int, bytes]]:
    """The number of records and the content of the log file of each file group, in the order of `forms`.

    Tasks of the engine encode them if there are many, and a second call with the same arguments encodes nothing.
    """
    questions, replaced = key_questions(changes), replaced_questions(changes)

    def groups() -> list[GroupRecords]:
        gone = [contents[question] for question in replaced]
        return _groups(questions, gone, contents, forms, epoch_ms(instant, is_utc=is_utc))

    rows = sum(len(contents[question][0]) for question in questions) + sum(len(contents[q]) for q in replaced)
    name = (RECORD_INDEX, instant, tuple(forms), tuple(questions), tuple(replaced))
    return group_logs(contents, name, rows, groups)


def _groups(
    questions: Sequence[KeysOfSlice],
    replaced: Sequence[Any],
    contents: FileContents,
    forms: Sequence[LogForm],
    instant_ms: int,
) -> list[GroupRecords]:
    none: Any = pa.array([], pa.string())
    answers = [contents[question] for question in questions]
    changed: Any = pa.concat_arrays([none, *replaced, *(changed for changed, _ in answers)])
    living: Any = pa.concat_arrays([none, *(keys for _, keys in answers)])
    removed = pc.unique(changed.filter(pc.invert(pc.is_in(changed, value_set=living))))
    removed = removed.take(pc.sort_indices(removed))
    removed_to = file_group_numbers(removed, len(forms))
    slices: list[tuple[Any, Any, Value]] = []
    for question, (_, keys) in zip(questions, answers, strict=True):
        value = record_index_value(question.found.partition, question.found.file_id, instant_ms)
        slices.append((keys, file_group_numbers(keys, len(forms)), value))
    return [
        GroupRecords(
            form,
            tuple((keys.filter(pa.array(numbers == number)), value) for keys, numbers, value in slices),
            tuple(removed.filter(pa.array(removed_to == number)).to_pylist()),
        )
        for number, form in enumerate(forms)
    ]


def epoch_ms(instant: str, *, is_utc: bool) -> int:
    """The moment that an instant names, in the time zone of the table's writers."""
    moment = datetime.strptime(instant[:17].ljust(17, "0") + "000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007
    zoned = moment.replace(tzinfo=UTC) if is_utc else moment.astimezone()
    return int(zoned.timestamp() * 1000)

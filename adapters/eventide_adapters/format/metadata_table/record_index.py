"""The changes of a write to the record index of the metadata table, which maps each key of the table to its file group.

Hudi's readers and writers look up a key only in this index, so it must be exact. The files of a write contain keys in
records and in deletes. After the write has completed:

1. If a slice shows a row for a key, the key is in that slice's file group.
2. If no slice of the write shows a key, the key is removed. A delete that a later row beats deletes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from eventide_adapters.format.metadata_table.file_contents import FileContents, KeysOfSlice
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records import RECORD_INDEX, Value, record_index_value
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


def record_index_changes(
    reader: MetadataTableReader, instant: str, changes: FileChanges, contents: FileContents
) -> Iterator[tuple[str, Value | None]]:
    """Keys with their file groups; None for removed keys."""
    gone: set[str] = set()
    living: set[str] = set()
    instant_ms = epoch_ms(instant, is_utc=reader.has_utc_instants)
    for question in key_questions(changes):
        found = question.found
        changed, keys = contents[question]
        value = record_index_value(found.partition, found.file_id, instant_ms)
        texts: list[Any] = keys.to_pylist()
        yield from ((key, value) for key in texts)
        living.update(texts)
        gone.update(changed.to_pylist())
    yield from ((key, None) for key in sorted(gone - living))


def epoch_ms(instant: str, *, is_utc: bool) -> int:
    """The moment that an instant names, in the time zone of the table's writers."""
    moment = datetime.strptime(instant[:17].ljust(17, "0") + "000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007
    zoned = moment.replace(tzinfo=UTC) if is_utc else moment.astimezone()
    return int(zoned.timestamp() * 1000)

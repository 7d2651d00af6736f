"""Files that a later eventide left in a table are refused with path, version and cure."""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow.parquet as pq
import pytest

from eventide import Table, UnsupportedTableError
from eventide_adapters.storage.memory import MemoryFile
from eventide_core.service.compaction.compact_slice import RESULT_FOOTER_KEY
from eventide_core.table.files.own_file import VERSION, decoded_own
from support.pasts.releases import made, mark_hours, opened
from support.tables.hourly import at, rows

LATER = VERSION + 1


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file of a table in a state, by the end of its path, and a verb that reads it, without files of these names."""

    state: str
    path: str
    read: Callable[[Table], object]
    without: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.state}: {self.path}"


def _take_a_window(table: Table) -> object:
    return table.windows(every="1h", consumer="bills", take_over=True).take("alive")


def _compact(table: Table) -> object:
    return table.compact(before=at(3))


def _withdraw_a_marker(table: Table) -> object:
    table.upsert(rows(1.25))
    return mark_hours(table)


OWN_FILES = (
    OwnFile("dead_compaction_v6", ".outcome", Table.resume),
    OwnFile("dead_compaction_v9", ".outcome", Table.resume),
    OwnFile("dead_compaction_v9", ".parquet", Table.resume),
    OwnFile("undone", ".undone", _compact),
    OwnFile("foreign_attempt", ".attempt", _compact),
    OwnFile("foreign_attempt", ".inflight", Table.resume),
    OwnFile("windows_half_done", ".json", _take_a_window),
    OwnFile("windows_half_done", ".view", _take_a_window),
    OwnFile("sources", "/derived", lambda table: table.upsert(rows(6), sources={"orders": at(6)})),
    OwnFile("done_markers", "/_SUCCESS", _withdraw_a_marker),
    OwnFile("rebuild_unfinished", ".being_made", lambda table: table.upsert(rows(6))),
    OwnFile("repair_undone", "repair.json", Table.undo_repair, without=("/undoing", "/undone")),
)

EMPTY = (".undone", ".attempt", ".being_made")


def _changed(data: bytes, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    if not data.startswith(b"PAR1"):
        return json.dumps(change(json.loads(data or b"{}"))).encode()
    table = pq.read_table(io.BytesIO(data))
    metadata = {key.decode(): text.decode() for key, text in (table.schema.metadata or {}).items()}
    metadata[RESULT_FOOTER_KEY] = json.dumps(change(json.loads(metadata[RESULT_FOOTER_KEY])))
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), sink)
    return sink.getvalue()


def _with_change(own: OwnFile, change: Callable[[dict[str, Any]], dict[str, Any]]) -> tuple[Table, str]:
    """The table whose last file of that kind is changed so, and the file's path."""
    files = {path: file for path, file in made(own.state)[0].items() if not path.endswith(own.without)}
    path = max(path for path, file in files.items() if path.endswith(own.path) and _is_own(path, file))
    changed = {**files, path: replace(files[path], data=_changed(files[path].data, change))}
    return opened(changed), path


def _is_own(path: str, file: MemoryFile) -> bool:
    return not path.endswith((".parquet", ".inflight")) or b"eventide." in file.data


@pytest.mark.parametrize("own", OWN_FILES, ids=str)
def test_a_file_of_a_later_version_is_refused_with_its_path_and_cure(own: OwnFile) -> None:
    table, path = _with_change(own, lambda document: {**document, "version": LATER, "more": 1})
    with pytest.raises(UnsupportedTableError) as refused:
        own.read(table)
    assert str(refused.value) == (
        f"{path} has version {LATER}, but this eventide knows versions up to {VERSION}; use a newer eventide"
    )


@pytest.mark.parametrize("own", [own for own in OWN_FILES if own.path not in EMPTY], ids=str)
def test_a_file_without_a_version_is_read_as_of_version_1(own: OwnFile) -> None:
    def without(document: dict[str, Any]) -> dict[str, Any]:
        assert document.pop("version") == 1
        return document

    table, _ = _with_change(own, without)
    assert own.read(table) is not None


def test_each_own_file_below_the_aux_directory_has_a_version_or_is_empty() -> None:
    for state in {own.state for own in OWN_FILES}:
        files, _ = made(state)
        for path, file in files.items():
            if path.startswith(".hoodie/.aux/") and file.data:
                assert json.loads(file.data)["version"] == VERSION, path


@pytest.mark.parametrize("version", [0, -1, True, "1", 1.5, None])
def test_a_version_that_is_no_number_is_a_damaged_file(version: object) -> None:
    with pytest.raises(ValueError, match="was expected to be a number from 1 on"):
        decoded_own(json.dumps({"version": version}), "file")

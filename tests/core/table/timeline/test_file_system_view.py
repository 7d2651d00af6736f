"""Which slices a listing holds, in the layouts of version 6 and of 8 and later, with plans and writes under way."""

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.errors import CorruptTimelineError, UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.timeline.file_system_view import DataFile, FileSystemView
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.layout import LAYOUT_6, LAYOUT_8
from eventide_core.table.timeline.timeline import Timeline


def _t(number: int) -> str:
    return f"202611210000000{number:02d}"


def _base(instant: int, *, file_id: str = "f-0", token: str = "0-1-0", partition: str = "p") -> DataFile:
    name = str(BaseFileName(file_id, token, _t(instant)))
    return DataFile(partition, f"{partition}/{name}" if partition else name, 10)


def _log(instant: int, version: int = 1, *, file_id: str = "f-0", token: str = "0-1-0", suffix: str = "") -> DataFile:
    return DataFile("p", f"p/{LogFileName(file_id, _t(instant), version, token, suffix)}", 10)


def _view_6(
    names: list[str], files: list[DataFile], replaced: Mapping[tuple[str, str], str] | None = None
) -> FileSystemView:
    timeline = Timeline.of_file_names(names)
    return FileSystemView.build(timeline, files, layout=LAYOUT_6, replaced_at=replaced or {})


def _view_9(
    names: list[str], files: list[DataFile], replaced: Mapping[tuple[str, str], str] | None = None
) -> FileSystemView:
    timeline = Timeline.of_file_names(names)
    return FileSystemView.build(timeline, files, layout=LAYOUT_8, replaced_at=replaced or {})


def _done(requested: int, completed: int, action: str = "deltacommit") -> str:
    return f"{_t(requested)}_{_t(completed)}.{action}"


def _snapshot(view: FileSystemView, as_of: int | None = None) -> list[tuple[str, str | None, list[str]]]:
    """(base instant, base file, logs) of each slice that a snapshot reads."""
    slices = view.latest_slices(None if as_of is None else _t(as_of))
    return [
        (s.base_instant, s.base_file.path if s.base_file else None, [log.path for log in s.log_files]) for s in slices
    ]


def _read_optimized(view: FileSystemView) -> list[str]:
    return [s.base_file.path for s in view.latest_base_files() if s.base_file is not None]


def test_version_6_a_log_file_belongs_to_the_base_whose_instant_it_has() -> None:
    names = [f"{_t(1)}.commit", f"{_t(2)}.deltacommit", f"{_t(4)}.commit", f"{_t(5)}.deltacommit"]
    files = [_log(4, 2), _base(1), _base(4), _log(1, 1), _log(4, 10), _log(1, 2)]
    view = _view_6(names, files)
    assert _snapshot(view) == [(_t(4), files[2].path, [files[0].path, files[4].path])]
    assert _snapshot(view, as_of=2) == [(_t(1), files[1].path, [files[3].path, files[5].path])]
    assert _read_optimized(view) == [files[2].path]


def test_version_6_logs_under_a_pending_compaction_are_read_on_the_slice_below() -> None:
    names = [f"{_t(1)}.commit", f"{_t(2)}.deltacommit", f"{_t(3)}.compaction.requested", f"{_t(4)}.deltacommit"]
    base, old, new, unfinished = _base(1), _log(1), _log(3), _base(3)
    for extra, state in (([], "requested"), ([unfinished], "inflight")):
        view = _view_6([*names, f"{_t(3)}.compaction.{state}"], [new, base, old, *extra])
        assert _snapshot(view) == [(_t(1), base.path, [old.path, new.path])]
        assert _read_optimized(view) == [base.path]
    completed = _view_6([*names, f"{_t(3)}.commit"], [new, base, old, unfinished])
    assert _snapshot(completed) == [(_t(3), unfinished.path, [new.path])]


def test_version_6_logs_under_a_pending_compaction_count_without_the_slice_below() -> None:
    """An incremental query looks at the files of its commits alone."""
    names = [f"{_t(1)}.commit", f"{_t(3)}.compaction.requested", f"{_t(4)}.deltacommit"]
    log = _log(3, 1)
    assert _snapshot(_view_6(names, [log])) == [(_t(3), None, [log.path])]


def test_version_6_left_overs_at_version_0_come_before_what_writers_add() -> None:
    names = [f"{_t(1)}.commit", f"{_t(3)}.commit", f"{_t(4)}.deltacommit"]
    files = [_log(3, 1), _log(3, 0, token="00002-0-1"), _log(3, 0, token="00001-0-1"), _base(3), _base(1)]
    assert _snapshot(_view_6(names, files)) == [(_t(3), files[3].path, [files[n].path for n in (2, 1, 0)])]


def test_version_6_a_file_group_may_begin_with_logs() -> None:
    names = [f"{_t(1)}.deltacommit", f"{_t(2)}.deltacommit"]
    view = _view_6(names, [_log(1, 2), _log(1, 1)])
    assert _snapshot(view) == [(_t(1), None, [_log(1, 1).path, _log(1, 2).path])]
    assert _read_optimized(view) == []


def test_logs_that_a_downgrade_left_under_a_pending_plan_are_read_on_the_slice_below() -> None:
    """Version 8 names a log file by its delta commit, and Hudi's downgrade runs no plan that is pending."""
    writes = [f"{_t(1)}.commit", *(f"{_t(number)}.deltacommit" for number in (2, 3, 6))]
    base, logs, later = _base(1), [_log(1), _log(2), _log(3)], _log(5)
    view = _view_6([*writes, f"{_t(5)}.compaction.requested"], [*reversed(logs), later, base])
    assert _snapshot(view) == [(_t(1), base.path, [log.path for log in (*logs, later)])]
    assert _read_optimized(view) == [base.path]
    compacted = _view_6([*writes, f"{_t(5)}.commit"], [*logs, later, base, _base(5)])
    assert _snapshot(compacted) == [(_t(5), _base(5).path, [later.path])]
    uncommitted = _view_6([*writes[:2], writes[3], f"{_t(3)}.deltacommit.inflight"], [*logs, base])
    assert _snapshot(uncommitted) == [(_t(1), base.path, [log.path for log in logs[:2]])]


def test_version_6_logs_of_a_bucket_that_a_pending_resize_will_make_are_in_no_slice() -> None:
    """Hudi writes each row to the old bucket and to the new one, whose logs bear the instant of the resize."""
    writes = [f"{_t(1)}.commit", f"{_t(6)}.deltacommit"]
    base, log, twice = _base(1), _log(1), _log(5, file_id="f-1")
    for state in ("requested", "inflight"):
        view = _view_6([*writes, f"{_t(5)}.replacecommit.{state}"], [twice, log, base])
        assert _snapshot(view) == [(_t(1), base.path, [log.path])]
    resized = _view_6(
        [*writes, f"{_t(5)}.replacecommit"], [twice, log, base, _base(5, file_id="f-1")], {("p", "f-0"): _t(5)}
    )
    assert _snapshot(resized) == [(_t(5), _base(5, file_id="f-1").path, [twice.path])]


@pytest.mark.parametrize("pending", [[], [f"{_t(5)}.deltacommit.inflight"]])
def test_what_was_never_committed_is_in_no_slice(pending: list[str]) -> None:
    files = [_base(5), _log(5, file_id="f-1")]
    for view in (
        _view_6([f"{_t(1)}.commit", *pending], files),
        _view_9([_done(1, 2, "commit"), *pending], files),
    ):
        assert view.slices == {}


def test_from_version_8_a_log_belongs_to_the_base_below_its_completion() -> None:
    names = [_done(1, 2, "commit"), _done(3, 7), _done(4, 5), _done(6, 8, "commit"), _done(9, 10)]
    late, early, after = _log(3), _log(4), _log(9)
    view = _view_9(names, [_base(1), _base(6), after, late, early])
    assert _snapshot(view) == [(_t(6), _base(6).path, [late.path, after.path])]
    assert _snapshot(view, as_of=4) == [(_t(1), _base(1).path, [early.path])]


def test_from_version_8_a_log_that_completes_with_the_base_is_on_top_of_it() -> None:
    names = [_done(1, 2, "commit"), _done(3, 6), _done(6, 8, "commit")]
    assert _snapshot(_view_9(names, [_base(1), _base(6), _log(3)]))[0][2] == [_log(3).path]


def test_from_version_8_logs_of_pending_writes_are_left_out() -> None:
    names = [_done(1, 2, "commit"), _done(3, 4), f"{_t(5)}.deltacommit.inflight"]
    assert _snapshot(_view_9(names, [_base(1), _log(3), _log(5)]))[0][2] == [_log(3).path]


def test_copies_that_bear_a_compactions_instant_count_once_it_has_completed() -> None:
    names = [_done(1, 2, "commit"), _done(3, 4), _done(5, 6)]
    merged, left_over, copy = _log(3), _log(5), _log(7, token="0-1-9")
    files = [_base(1), merged, left_over, copy, _base(7)]
    for state in ("requested", "inflight"):
        pending = _view_9([*names, f"{_t(7)}.compaction.{state}"], files)
        assert _snapshot(pending) == [(_t(1), _base(1).path, [merged.path, left_over.path])]
    completed = _view_9([*names, _done(7, 9, "commit")], files)
    assert _snapshot(completed) == [(_t(7), _base(7).path, [copy.path])]


def test_a_back_dated_base_lies_between_the_logs_it_merged_and_its_left_overs() -> None:
    names = [_done(1, 2, "commit"), _done(3, 4), _done(7, 8), _done(5, 20, "commit")]
    merged, left_over = _log(3), _log(7)
    view = _view_9(names, [_base(1), _base(5), merged, left_over])
    assert _snapshot(view) == [(_t(5), _base(5).path, [left_over.path])]


def test_from_version_8_a_file_group_may_begin_with_logs() -> None:
    names = [_done(1, 5), _done(2, 3), _done(6, 7)]
    view = _view_9(names, [_log(6), _log(2), _log(1)])
    assert _snapshot(view) == [(_t(1), None, [_log(1).path, _log(2).path, _log(6).path])]


def test_a_log_of_an_archived_delta_commit_belongs_where_its_completion_time_says() -> None:
    """The writer at 2 was overtaken by the compaction at 3: its log lies on the new base, whatever its name says."""
    active = Timeline.of_file_names([_done(8, 9)])
    archived = [Instant(_t(n), Action.DELTA_COMMIT, State.COMPLETED, _t(done)) for n, done in ((2, 5), (4, 6))]
    files = [_base(1), _base(3), _log(2), _log(4), _log(8)]
    view = FileSystemView.build(active.with_archived(archived), files, layout=LAYOUT_8, replaced_at={})
    assert _snapshot(view) == [(_t(3), files[1].path, [file.path for file in files[2:]])]


def test_a_log_whose_delta_commit_the_archive_lost_is_refused_rather_than_misplaced() -> None:
    with pytest.raises(CorruptTimelineError, match="archived"):
        _view_9([_done(5, 6, "commit")], [_base(1), _log(3)])


def test_bases_of_archived_commits_count() -> None:
    assert _snapshot(_view_6([f"{_t(5)}.deltacommit"], [_base(1)])) == [(_t(1), _base(1).path, [])]


def test_a_replaced_file_group_is_gone_from_its_replacement_on() -> None:
    names = [f"{_t(1)}.commit", f"{_t(3)}.replacecommit"]
    files = [_base(1), _base(3, file_id="f-1")]
    view = _view_6(names, files, {("p", "f-0"): _t(3)})
    assert [s.file_id for s in view.latest_slices()] == ["f-1"]
    assert [s.file_id for s in view.latest_base_files()] == ["f-1"]
    assert [s.file_id for s in view.latest_slices(_t(2))] == ["f-0"]
    assert [s.file_id for s in view.latest_slices(_t(3))] == ["f-1"]


def test_a_replacement_under_way_changes_nothing() -> None:
    names = [f"{_t(1)}.commit", f"{_t(3)}.replacecommit.inflight"]
    view = _view_6(names, [_base(1), _base(3, file_id="f-1")])
    assert [s.file_id for s in view.latest_slices()] == ["f-0"]


def test_one_file_id_in_two_partitions_is_two_file_groups() -> None:
    view = _view_6([f"{_t(1)}.commit"], [_base(1, partition="q"), _base(1), _base(1, partition="")])
    assert [s.file_group for s in view.latest_slices()] == [("", "f-0"), ("p", "f-0"), ("q", "f-0")]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_of_two_base_files_in_one_place_the_one_counts_that_the_commit_names(position: int) -> None:
    files = [_base(1), _base(1, token="5-5-5"), _base(1, token="9-9-9")]
    view = FileSystemView.build(
        Timeline.of_file_names([f"{_t(1)}.commit"]),
        files,
        layout=LAYOUT_6,
        replaced_at={},
        is_named=lambda instant, path: (instant, path) == (_t(1), files[position].path),
    )
    assert _read_optimized(view) == [files[position].path]


def test_two_base_files_in_one_place_are_refused_where_no_commit_tells_which_counts() -> None:
    with pytest.raises(UnsupportedTableError, match=r"0-1-0_.*9-9-9_|9-9-9_.*0-1-0_"):
        _view_6([f"{_t(1)}.commit"], [_base(1), _base(1, token="9-9-9")])


def test_a_change_log_belongs_to_the_slice_of_its_instant_and_is_none_of_its_logs() -> None:
    files = [_base(1), _log(1), _base(2), _log(2, suffix=".cdc")]
    view = _view_6([f"{_t(1)}.commit", f"{_t(2)}.commit"], files)
    ((first, second),) = view.slices.values()
    assert [log.path for log in (*first.log_files, *first.change_log_files)] == [files[1].path]
    assert ([*second.log_files], [log.path for log in second.change_log_files]) == ([], [files[3].path])


def test_a_change_log_alone_makes_no_slice() -> None:
    assert _view_6([f"{_t(1)}.commit"], [_log(1, suffix=".cdc")]).slices == {}


def test_other_files_of_a_partition_are_nobodys() -> None:
    others = [DataFile("p", f"p/{name}", 1) for name in (".hoodie_partition_metadata", ".x.crc", "_SUCCESS")]
    assert _view_6([f"{_t(1)}.commit"], others).slices == {}


@given(st.data())
def test_from_version_8_every_committed_log_is_in_one_slice_and_no_other_is(data: st.DataObject) -> None:
    bases = data.draw(st.sets(st.integers(1, 40), max_size=4))
    logs = data.draw(
        st.dictionaries(st.integers(1, 40), st.none() | st.integers(1, 20), max_size=8).map(
            lambda drawn: {n: after for n, after in drawn.items() if n not in bases}
        )
    )
    names = [_done(n, n + 1, "commit") for n in bases]
    names += [f"{_t(n)}.deltacommit.inflight" if after is None else _done(n, n + after) for n, after in logs.items()]
    files = [*map(_base, bases), *map(_log, logs)]
    view = _view_9(names, data.draw(st.permutations(files)))
    slices = [file_slice for group in view.slices.values() for file_slice in group]
    placed = [log.path for file_slice in slices for log in file_slice.log_files]
    assert sorted(placed) == sorted(_log(n).path for n, after in logs.items() if after is not None)
    for file_slice in slices:
        assert list(file_slice.log_files) == sorted(file_slice.log_files, key=lambda log: log.name.reader_order)
        for log in file_slice.log_files:
            number = next(n for n in logs if _t(n) == log.name.instant)
            completed = number + (logs[number] or 0)
            below = [n for n in bases if n <= completed]
            if below:
                assert file_slice.base_file is not None
                assert file_slice.base_instant == _t(max(below))


@pytest.mark.parametrize("kind", ["log.parquet", "deletes.parquet", "cdc.parquet", "log.lance"])
def test_a_native_log_file_of_table_version_10_is_refused(kind: str) -> None:
    native = DataFile("p", f"p/f-0_0-1-0_{_t(3)}_1.{kind}", 10)
    with pytest.raises(UnsupportedTableError, match=rf"{re.escape(native.path)} is a native log file"):
        _view_9([_done(1, 2)], [_base(1), native])


def test_a_file_whose_name_is_like_that_of_a_native_log_file_is_left_alone() -> None:
    names = ["notes_1.log.parquet", f".f-0_0-1-0_{_t(3)}_1.log.parquet.crc", f"f-0_{_t(3)}_1.log.parquet"]
    view = _view_9([_done(1, 2)], [_base(1), *(DataFile("p", f"p/{name}", 10) for name in names)])
    assert _snapshot(view) == [(_t(1), _base(1).path, [])]

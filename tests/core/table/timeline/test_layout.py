"""What differs between version 6 and version 8 and later, question by question."""

import pytest

from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.layout import layout_of
from eventide_core.table.timeline.timeline import Timeline

V6, V8 = layout_of(6), layout_of(8)


def at(second: int) -> str:
    return f"202611270900{second:02d}000"


def log(second: int, version: int = 1) -> LogFileName:
    return LogFileName("f", at(second), version, "1-0-1")


def timeline(*spans: tuple[int, int | None]) -> Timeline:
    """Delta commits by the seconds in which they were requested and completed; None: pending."""
    return Timeline.of(
        Instant(at(requested), Action.DELTA_COMMIT, State.INFLIGHT)
        if completed is None
        else Instant(at(requested), Action.DELTA_COMMIT, State.COMPLETED, at(completed))
        for requested, completed in spans
    )


def test_version_9_lies_as_version_8() -> None:
    assert layout_of(9) == V8 != V6


def test_a_completed_file_has_the_completion_time_in_its_name_from_version_8_on() -> None:
    assert (V6.records_completion_times, V8.records_completion_times) == (False, True)
    assert V6.recorded_completion(at(3)) is None
    assert V8.recorded_completion(at(3)) == at(3)


def test_a_log_file_has_the_instant_of_its_slice_and_from_version_8_on_of_its_write() -> None:
    assert (V6.names_logs_by_write, V8.names_logs_by_write) == (False, True)


def test_only_hudi_1_has_the_formats_of_version_8() -> None:
    assert (V6.needs_hudi_1, V8.needs_hudi_1) == (False, True)


@pytest.mark.parametrize(
    ("bases", "of_v6", "of_v8"),
    [((1, 4), 2, 4), ((1, 5), 2, 5), ((1, 6), 2, 1), ((6,), 2, 5), ((), 2, 5)],
)
def test_a_log_file_names_its_slice_and_from_version_8_on_its_completion_decides(
    bases: tuple[int, ...], of_v6: int, of_v8: int
) -> None:
    known = timeline((2, 5))
    assert V6.slice_instant(log(2), map(at, bases), known) == at(of_v6)
    assert V8.slice_instant(log(2), map(at, bases), known) == at(of_v8)


def test_a_log_file_of_a_pending_write_has_a_slice_on_version_6_alone() -> None:
    assert V6.slice_instant(log(2), [at(1)], timeline((2, None))) == at(2)
    assert V8.slice_instant(log(2), [at(1)], timeline((2, None))) is None


@pytest.mark.parametrize(("begin", "of_v6", "of_v8"), [(2, True, True), (5, False, True), (6, False, False)])
def test_a_new_slice_has_log_files_of_its_name_and_from_version_8_on_of_later_writes(
    begin: int, of_v6: bool, of_v8: bool
) -> None:
    assert V6.is_in_slice_from(at(begin), log(2), timeline((2, 5))) is of_v6
    assert V8.is_in_slice_from(at(begin), log(2), timeline((2, 5))) is of_v8


def test_a_log_file_of_a_pending_write_is_not_yet_in_a_new_slice_from_version_8_on() -> None:
    assert V6.is_in_slice_from(at(2), log(2), timeline((2, None)))
    assert not V8.is_in_slice_from(at(2), log(2), timeline((2, None)))


def test_writers_append_to_the_slice_that_a_pending_plan_begins_on_version_6_alone() -> None:
    assert (V6.writers_follow_plans, V8.writers_follow_plans) == (True, False)


def test_left_overs_have_version_0_and_from_version_8_on_1_and_up_with_their_tokens() -> None:
    of_v6 = [str(V6.left_over_name("f", at(9), position, "3-5-7")) for position in range(2)]
    of_v8 = [str(V8.left_over_name("f", at(9), position, "3-5-7")) for position in range(2)]
    assert of_v6 == [f".f_{at(9)}.log.0_00000-0-1", f".f_{at(9)}.log.0_00001-0-1"]
    assert of_v8 == [f".f_{at(9)}.log.1_3-5-7", f".f_{at(9)}.log.2_3-5-7"]
    assert str(V8.left_over_name("f", at(9), 0)) == f".f_{at(9)}.log.1_0-0-1"


def test_left_overs_sort_below_what_writers_append_to_their_slice() -> None:
    names = [V6.left_over_name("f", at(9), position) for position in (0, 1, 9, 10, 99999)]
    assert sorted([*names, log(9)], key=lambda name: name.reader_order) == [*names, log(9)]


def test_a_left_over_is_known_by_its_version_and_from_version_8_on_by_its_instant() -> None:
    assert [V6.may_be_left_over(log(9, version)) for version in (0, 1)] == [True, False]
    assert [V8.may_be_left_over(log(9, version)) for version in (0, 1)] == [True, True]


def test_from_version_8_on_a_timeline_and_its_archive_have_directories_of_their_own() -> None:
    assert (V6.timeline_path({}), V8.timeline_path({})) == (".hoodie", ".hoodie/timeline")
    assert V6.archive_path(".hoodie", {}) == ".hoodie/archived"
    assert V8.archive_path(".hoodie/timeline", {}) == ".hoodie/timeline/history"


def test_settings_name_other_directories_of_timelines() -> None:
    named = {"hoodie.timeline.path": "/t/", "hoodie.archivelog.folder": "a/", "hoodie.timeline.history.path": "h"}
    assert (V6.timeline_path(named), V8.timeline_path(named)) == (".hoodie", ".hoodie/t")
    assert (V6.archive_path(".hoodie", named), V8.archive_path(".hoodie/t", named)) == (".hoodie/a", ".hoodie/t/h")
    assert V6.archive_path(".hoodie", {"hoodie.archivelog.folder": ""}) == ".hoodie"


def test_a_clean_repeats_its_plan_in_the_inflight_file_on_version_6_alone() -> None:
    assert (V6.inflight_clean(b"plan"), V8.inflight_clean(b"plan")) == (b"plan", b"")

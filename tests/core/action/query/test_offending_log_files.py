"""Which logs are named for records of the future."""

from eventide_core.action.compaction.slice_selection import SliceFacts
from eventide_core.action.query.offending_log_files import LOG_FILES_NAMED, offending_log_files
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.records.event_time import EventTimeRange

NOW = 10_000


def _slice(*ranges: tuple[int | None, int | None], file_id: str = "f") -> SliceFacts:
    facts: list[LogFacts] = []
    for number, (least, greatest) in enumerate(ranges, start=1):
        name = LogFileName(file_id, "1", number, "0-0-1")
        times = EventTimeRange(least, greatest)
        facts.append(
            LogFacts(
                LogFile(name, f"a/{name}", 10),
                times,
                frozenset({"1"}),
                0,
                rolled_back=frozenset(),
                check=HeaderCheck.NONE,
                has_merged_block=False,
                uncompacted=times,
            )
        )
    return SliceFacts(FileSlice("a", file_id, "1", None, tuple(fact.log_file for fact in facts)), tuple(facts))


def _named(facts: SliceFacts, threshold_ms: int | None = 100) -> list[tuple[int, int, int]]:
    """Log version, from where on its records offend, and how many logs it holds back."""
    return [(o.log_file.name.version, o.since_ms, o.held_back) for o in offending_log_files([facts], threshold_ms, NOW)]


def test_a_record_beyond_the_clock_offends_wherever_it_is() -> None:
    assert _named(_slice((1, 10), (5, NOW + 1))) == [(2, NOW + 1, 0)]
    assert _named(_slice((1, 10), (5, NOW))) == []


def test_a_record_beyond_all_that_came_after_it_offends() -> None:
    assert _named(_slice((1, 900), (2, 20), (3, 30), (25, 40))) == [(1, 41, 3)]


def test_a_log_or_two_of_late_data_after_one_of_timely_data_is_nothing_strange() -> None:
    assert _named(_slice((1, 10), (2, 20), (90, 110), (3, 30), (4, 40))) == []


def test_a_stream_that_continues_names_nothing() -> None:
    assert _named(_slice(*((t - 50, t) for t in range(100, 300, 10)))) == []


def test_a_log_that_is_retired_holds_nothing_back() -> None:
    assert _named(_slice((1, 90), (2, 20), (3, 30), (25, 40))) == []


def test_logs_above_that_would_stay_anyway_are_not_held_back() -> None:
    assert _named(_slice((1, 900), (2, 20), (3, 130), (25, 140))) == [(1, 141, 1)]


def test_without_a_t_nothing_is_held_back() -> None:
    assert _named(_slice((1, 90), (2, 20), (3, 30), (25, 40)), None) == [(1, 41, 0)]


def test_logs_without_event_times_are_passed_over() -> None:
    assert _named(_slice((None, None), (1, NOW + 5), (None, None))) == [(2, NOW + 1, 0)]


def test_the_worst_are_named_and_no_more_than_a_few() -> None:
    slices = [_slice((1, NOW + n), *[(1, 10)] * (n % 3), file_id=f"f{n}") for n in range(1, 20)]
    offending = offending_log_files(slices, 100, NOW)
    assert len(offending) == LOG_FILES_NAMED
    assert [(o.held_back, o.latest_ms - NOW) for o in offending] == [(2, 17), (2, 14), (2, 11), (2, 8), (2, 5)]

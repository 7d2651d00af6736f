"""Which logs of a slice an event-time compaction takes."""

from eventide_core.action.compaction.strategy import EventTimeBasedCompactionStrategy, threshold_of_latency
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.records.event_time import EventTimeRange


def log(version: int) -> LogFile:
    name = LogFileName("group", "20260101000000000", version, "0-1-1")
    return LogFile(name, f"p/{name}", 100)


def split(ranges: list[EventTimeRange], threshold_ms: int) -> tuple[int, int]:
    logs = [log(version) for version in range(1, len(ranges) + 1)]
    by_path = {log_file.path: event_times for log_file, event_times in zip(logs, ranges, strict=True)}
    strategy = EventTimeBasedCompactionStrategy(threshold_ms, lambda log_file: by_path[log_file.path])
    compacted, left_overs = strategy.filter_log_files(logs[::-1], "20260102000000000")
    assert [*compacted, *left_overs] == logs  # reader order, nothing lost, nothing twice
    return len(compacted), len(left_overs)


def test_logs_that_begin_at_or_after_t_remain() -> None:
    assert split([EventTimeRange(10, 20), EventTimeRange(99, 120), EventTimeRange(100, 130)], 100) == (2, 1)


def test_everything_below_the_last_log_with_late_records_is_taken_too() -> None:
    assert split(
        [EventTimeRange(10, 20), EventTimeRange(150, 160), EventTimeRange(50, 170), EventTimeRange(180, 190)], 100
    ) == (
        3,
        1,
    )


def test_a_log_with_unknown_event_times_is_always_taken() -> None:
    assert split([EventTimeRange(150, 160), EventTimeRange(170, 180, 1), EventTimeRange(190, 200)], 100) == (2, 1)


def test_a_log_without_any_record_is_no_reason_to_compact() -> None:
    assert split([EventTimeRange(None, None), EventTimeRange(150, 160)], 100) == (0, 2)


def test_a_latency_is_taken_off_the_time_of_the_compaction() -> None:
    assert threshold_of_latency(1_700_000_000_000, 1800) == 1_699_998_200_000

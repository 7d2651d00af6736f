"""Which slices Hudi's strategies take, and in which order. The expectations are read off Hudi 1.1.1's own classes."""

from datetime import date

import pytest

from eventide_core.action.compaction.slice_strategies import compaction_io_mb, day_of
from eventide_core.action.compaction.strategy_choice import PACKAGE, chosen_strategy
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile

TODAY = date(2026, 11, 21)
T0 = "20261101000000000"
MB = 1024 * 1024


def file_slice(partition: str, file_id: str, *logs: int, base: int | None = 0) -> FileSlice:
    """A slice with logs of so many bytes; `base` is None if it has none."""
    names = [LogFileName(file_id, T0, version, "0-1-1") for version in range(1, len(logs) + 1)]
    files = tuple(LogFile(name, f"{partition}/{name}", size) for name, size in zip(names, logs, strict=True))
    base_file = None
    if base is not None:
        name = BaseFileName(file_id, "0-1-1", T0)
        base_file = BaseFile(name, f"{partition}/{name}", base)
    return FileSlice(partition, file_id, T0, base_file, files)


def taken(strategy: str, *slices: FileSlice, partitions: set[str] | None = None, **options: str) -> list[str]:
    """The file ids that a strategy takes, in order; options by the last words of their keys."""
    keys = {
        "io": "hoodie.compaction.target.io",
        "size": "hoodie.compaction.logfile.size.threshold",
        "num": "hoodie.compaction.logfile.num.threshold",
        "days": "hoodie.compaction.daybased.target.partitions",
        "regex": "hoodie.compaction.partition.path.regex",
        "max_file_size": "hoodie.parquet.max.file.size",
    }
    values = {keys[name]: value for name, value in options.items()}
    chosen = chosen_strategy(Options({"hoodie.compaction.strategy": strategy, **values}), TODAY)
    everywhere = partitions or {file_slice.partition for file_slice in slices}
    return [file_slice.file_id for file_slice in chosen.choose(everywhere, slices)]


A = file_slice("p", "a", 3 * MB, 3 * MB, base=10 * MB)  # 16 MB to read, 10 to write
B = file_slice("p", "b", 9 * MB, base=10 * MB)
C = file_slice("q", "c", 1 * MB, 1 * MB, 1 * MB, base=10 * MB)


def test_io_is_counted_in_whole_megabytes_and_a_new_base_as_a_full_one() -> None:
    assert compaction_io_mb(A, 120 * MB) == 26
    assert compaction_io_mb(file_slice("p", "x", MB - 1, base=MB - 1), 120 * MB) == 1
    assert compaction_io_mb(file_slice("p", "x", 2 * MB, base=None), 120 * MB) == 122


def test_unbounded_takes_everything_in_order_of_partition_and_file() -> None:
    assert taken("UnBoundedCompactionStrategy", A, B, C) == ["a", "b", "c"]


@pytest.mark.parametrize(("io", "expected"), [("0", []), ("1", ["a"]), ("26", ["a"]), ("27", ["a", "b"])])
def test_bounded_io_takes_slices_until_the_target_is_reached_and_keeps_their_order(
    io: str, expected: list[str]
) -> None:
    assert taken("BoundedIOCompactionStrategy", A, B, C, io=io) == expected


def test_log_file_size_takes_the_most_bytes_first_and_stops_at_the_bound() -> None:
    assert taken("LogFileSizeBasedCompactionStrategy", A, B, C) == ["b", "a", "c"]
    assert taken("LogFileSizeBasedCompactionStrategy", A, B, C, size=str(6 * MB)) == ["b", "a"]
    assert taken("LogFileSizeBasedCompactionStrategy", A, B, C, size=str(6 * MB + 1)) == ["b"]
    assert taken("LogFileSizeBasedCompactionStrategy", A, B, C, io="29") == ["b"]


def test_log_file_num_takes_the_most_logs_first() -> None:
    assert taken("LogFileNumBasedCompactionStrategy", A, B, C) == ["c", "a", "b"]
    assert taken("LogFileNumBasedCompactionStrategy", A, B, C, num="2") == ["c", "a"]


def test_slices_that_are_alike_keep_their_order() -> None:
    twins = [file_slice("p", name, MB) for name in "xyz"]
    assert taken("LogFileNumBasedCompactionStrategy", *twins) == ["x", "y", "z"]
    assert taken("LogFileSizeBasedCompactionStrategy", *twins) == ["x", "y", "z"]


DAYS = [file_slice(f"2026/11/{day:02d}", f"d{day}", MB, base=MB) for day in (5, 18, 20, 23)]


def test_day_based_takes_the_latest_partitions_of_the_table_latest_first() -> None:
    assert taken("DayBasedCompactionStrategy", *DAYS) == ["d23", "d20", "d18", "d5"]
    assert taken("DayBasedCompactionStrategy", *DAYS, days="2") == ["d23", "d20"]
    # A later partition without logs takes a place, too.
    everywhere = {file_slice.partition for file_slice in DAYS} | {"2026/11/24"}
    assert taken("DayBasedCompactionStrategy", *DAYS, partitions=everywhere, days="2") == ["d23"]
    assert taken("DayBasedCompactionStrategy", *DAYS, io="3") == ["d23"]


def test_bounded_partition_aware_takes_the_last_days_and_later_unbounded_the_rest() -> None:
    assert taken("BoundedPartitionAwareCompactionStrategy", *DAYS, days="3") == ["d23", "d20", "d18"]
    assert taken("UnBoundedPartitionAwareCompactionStrategy", *DAYS, days="3") == ["d5"]
    assert taken("BoundedPartitionAwareCompactionStrategy", *DAYS, days="999999999") == ["d23", "d20", "d18", "d5"]


def test_a_day_is_read_from_hive_style_paths_and_nothing_else_is_a_day() -> None:
    assert (
        day_of("2026/11/05") == day_of("year=2026/month=11/day=05") == day_of("dt=2026/11/5/hr=3") == date(2026, 11, 5)
    )
    for path in ("", "2026-11-05", "a", "2026/13/05", "region=eu/2026/11"):
        with pytest.raises(ConfigError, match="is not a day as yyyy/MM/dd"):
            day_of(path)


def test_a_partition_regex_is_found_anywhere_in_the_path() -> None:
    eu, us = file_slice("region=eu/day=1", "eu", MB), file_slice("region=us/day=1", "us", MB)
    assert taken("PartitionRegexBasedCompactionStrategy", eu, us, regex="eu/") == ["eu"]
    assert taken("PartitionRegexBasedCompactionStrategy", eu, us, regex="^eu") == []
    with pytest.raises(ConfigError, match=r"partition\.path\.regex"):
        taken("PartitionRegexBasedCompactionStrategy", eu)
    with pytest.raises(ConfigError, match="not a regular expression"):
        taken("PartitionRegexBasedCompactionStrategy", eu, regex="(")


def test_a_chain_hands_on_what_each_took() -> None:
    chain = (
        f"{PACKAGE}PartitionRegexBasedCompactionStrategy, LogFileNumBasedCompactionStrategy,BoundedIOCompactionStrategy"
    )
    assert taken(chain, A, B, C, regex="[pq]", num="2") == ["c", "a"]
    assert taken(chain, A, B, C, regex="p") == ["a", "b"]


def test_the_event_time_strategy_stands_anywhere_in_a_chain_and_is_the_default() -> None:
    assert chosen_strategy(Options({}), TODAY).is_by_event_time
    named = {"hoodie.compaction.strategy": f"BoundedIOCompactionStrategy,{PACKAGE}EventTimeBasedCompactionStrategy"}
    chosen = chosen_strategy(Options(named), TODAY)
    assert chosen.is_by_event_time
    assert str(chosen) == "BoundedIOCompactionStrategy, EventTimeBasedCompactionStrategy"


@pytest.mark.parametrize("name", ["com.acme.BoundedIOCompactionStrategy", "boundedio", "UnBoundedCompactionStrategy,"])
def test_a_strategy_that_hudi_does_not_have_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match="is unknown"):
        chosen_strategy(Options({"hoodie.compaction.strategy": name}), TODAY)

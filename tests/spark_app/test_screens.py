"""The output for a table of many file slices fits a screen, and options show its files."""

import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from rich.cells import cell_len

from eventide import Table
from eventide.results.detail import WORST, Detail
from support.run.command_line import WIDE, run

PARTITIONS = 40
SCREEN = 24
T_MS = 1_790_000_005_000
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d{17}\b")

LONG = "city_with_a_rather_long_name_of_its_own"
VERBS = (
    ("show",),
    ("show", "--verbose"),
    ("plan", "--before", T_MS),
    ("plan", "--before", T_MS, "--verbose"),
    ("freshness",),
    ("freshness", "--by", "partition"),
    ("freshness", "--require", T_MS),
    ("status",),
    ("verify",),
    ("verify", "--verbose"),
    ("windows", "--every", "1h", "--consumer", "nightly"),
    ("read",),
    ("tag",),
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty file slices of a base file and two log files; half of the last log files hold nothing before T."""
    path = tmp_path_factory.mktemp("screens") / "t"
    names = [f"p{number:02}" for number in range(PARTITIONS)]

    def rows(times: list[int]) -> pa.Table:
        return pa.table({"id": names, "part": names, "ms": times})

    early, later = [T_MS - 2_000] * PARTITIONS, [T_MS + 1_000 * (-1) ** number for number in range(PARTITIONS)]
    first = rows(early)
    made = Table.create(str(path), schema=first.schema, record_key="id", partition="part", event_time="ms")
    made.upsert(first)
    made.upsert(rows(early))
    made.upsert(rows(later))
    return path


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, keys, partitions and columns with long names; it has a cut, a late record, and a log file after the cut."""
    path = tmp_path_factory.mktemp("long") / f"trips_of_the_region_{LONG}"
    names = [f"{LONG}_{number}" for number in range(4)]

    def rows(ms: int) -> pa.Table:
        columns = {"trip_identifier": names, "part": names, "when_the_trip_ended": [ms] * len(names)}
        return pa.table(columns | {f"a_measured_value_{number}": [1.5] * len(names) for number in range(4)})

    first = rows(T_MS - 2_123)
    made = Table.create(
        str(path), schema=first.schema, record_key="trip_identifier", partition="part", event_time="when_the_trip_ended"
    )
    made.upsert(first)
    made.upsert(rows(T_MS - 1_999))
    made.compact(made.plan_compaction(T_MS))
    made.upsert(rows(T_MS - 1_001))
    made.upsert(rows(T_MS + 7_200_001))
    made.tag("the_state_of_monday_evening_before_the_report_of_the_month")
    return path


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(map(str, words)))
def test_what_goes_to_a_pipe_is_as_wide_as_a_screen_and_times_are_whole(
    long_names: Path, words: tuple[object, ...], columns: int
) -> None:
    verb, *options = words
    text, whole = (run(verb, long_names, *options, columns=width).stdout for width in (columns, WIDE))
    assert text
    assert [line for line in text.splitlines() if cell_len(line) > columns] == []
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert Counter(TIME.findall(text)) == Counter(TIME.findall(whole))


def test_a_row_is_a_line_or_a_block_of_whole_values_in_a_pipe(long_names: Path) -> None:
    narrow, wide = (run("read", long_names, "--limit", 1, columns=width).stdout for width in (80, WIDE))
    assert "…" not in narrow
    assert f"{LONG}_" in narrow
    assert [len(text.splitlines()) for text in (narrow, wide)] == [8, 4]


def test_a_plan_of_many_slices_fits_a_screen_and_shows_its_files_on_request(table: Path) -> None:
    plan = Table.open(str(table)).plan_compaction(T_MS)
    assert len(plan.operations) == PARTITIONS
    short = str(plan)
    assert short.count("\n") < SCREEN
    assert (
        f"{PARTITIONS} slices to compact: {PARTITIONS + PARTITIONS // 2} log files merged, {PARTITIONS // 2} left over"
        in short
    )
    assert ".log." not in short
    whole = plan.explain(Detail(is_verbose=True))
    assert all(log.name in whole for op in plan.operations for log in op.compacted)
    of_one = plan.explain(Detail(partition="part=p07"))
    assert ("=p07 " in of_one, "=p08 " in of_one) == (True, False)
    assert "none of these file slices is in partition 'p07'" in plan.explain(Detail(partition="p07"))
    two = plan.explain(Detail(limit=2))
    assert ("=p01 " in two, "=p02 " in two, "... and 38 more" in two) == (True, False, True)


def test_show_of_many_slices_fits_a_screen_and_shows_its_files_on_request(table: Path) -> None:
    short = run("show", table).stdout
    assert short.count("\n") < SCREEN
    assert f"{PARTITIONS} in {PARTITIONS} partitions" in short
    assert ".log." not in short
    of_one = run("show", table, "--partition", "part=p07").stdout
    assert (of_one.count(".log."), "=p08 " in of_one) == (2, False)


def test_verify_of_many_damaged_slices_names_some_and_all_on_request(table: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "t"
    shutil.copytree(table, damaged)
    for number in range(20):
        for base in (damaged / f"part=p{number:02}").glob("*.parquet"):
            base.unlink()
    short, whole = run("verify", damaged), run("verify", damaged, "--verbose", "--output", "json")
    assert (short.exit_code, whole.exit_code) == (1, 1)
    (missing,) = [check for check in whole.document["checks"] if len(check["findings"]) == 20]
    assert sum(one["path"] in short.stdout for one in missing["findings"]) == WORST
    assert f"{missing['name']}: ... and {20 - WORST} more" in short.stdout
    of_one = run("verify", damaged, "--partition", "part=p07").stdout
    assert ("part=p07/" in of_one, "part=p08/" in of_one) == (True, False)


def test_a_plan_names_the_first_slices_that_keep_records_before_t_in_log_files(table: Path) -> None:
    chain = "EventTimeBasedCompactionStrategy,PartitionRegexBasedCompactionStrategy"
    options = {"hoodie.compaction.strategy": chain, "hoodie.compaction.partition.path.regex": "p0[0-2]"}
    plan = Table.open(str(table), options).plan_compaction(T_MS)
    left_out = PARTITIONS - len(plan.operations)
    assert left_out == PARTITIONS - 3
    text = plan.explain()
    assert f"{left_out} slices will still hold records before T in log files:" in text
    assert f"... and {left_out - WORST} more" in text
    assert [held["earliest_event_time_ms"] for held in plan.to_json()["held"]] == [T_MS - 2_000] * left_out
    assert text.count("\n") < SCREEN

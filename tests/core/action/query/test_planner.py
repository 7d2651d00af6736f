"""Which instants a query means."""

import pytest

from eventide_core.action.query.planner import parse_time, plan_slices, span
from eventide_core.errors import InstantNotFoundError
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("20261121060113021", "20261121060113021"),
        ("20261121060113", "20261121060113"),
        ("earliest", "0"),
        ("2026-11-21", "20261121000000000"),
        ("2026-11-21 06:01:13.021", "20261121060113021"),
        ("2026-11-21T06:01:13.021Z", 1795240873021),
        ("2026-11-21T07:01:13.021+01:00", 1795240873021),
        ("1795240873", 1795240873000),
        ("1795240873021", 1795240873021),
        ("2026112106", "2026112106"),
        *((text, text) for text in ("000", "2026", "20260", "20261", "2026100", "2026103", "202610232", "20240229")),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_an_instant_is_read_as_hudi_writes_it_or_as_iso_and_a_moment_by_its_zone(text: str, time: str | int) -> None:
    assert parse_time(text) == time


def test_a_time_in_whole_seconds_means_the_end_of_the_second_for_time_travel() -> None:
    assert parse_time("2026-11-21 06:01:13", is_end=True) == "20261121060113999"
    assert parse_time("2026-11-21 06:01:13.000", is_end=True) == "20261121060113000"
    assert parse_time("2026-11-21", is_end=True) == "20261121000000000"
    assert parse_time("2026-11-21T06:01:13Z", is_end=True) == 1795240873999
    assert parse_time("1795240873", is_end=True) == 1795240873999


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01",
        "202611210601130210",
        "99",
        "20262",
        "20261332",
        "20260230",
        "2026112124",
        "9" * 17,
    ],
)
def test_an_invalid_instant_is_refused(text: str) -> None:
    with pytest.raises(InstantNotFoundError, match="cannot read"):
        parse_time(text)


def delta(requested: str, completion: str | None) -> Instant:
    return Instant(requested, Action.DELTA_COMMIT, State.COMPLETED, completion)


def test_a_span_excludes_its_begin_and_includes_its_end() -> None:
    timeline = Timeline.of([delta("20260101000001000", None), delta("20260101000002000", None)])
    assert [i.requested_time for i in span(timeline.writes, "20260101000001000", "20260101000002000")] == [
        "20260101000002000"
    ]
    assert len(span(timeline.writes, "0", None)) == 2


def test_from_version_8_on_a_span_is_measured_by_completion_times() -> None:
    slow = delta("20260101000001000", "20260101000009000")
    fast = delta("20260101000002000", "20260101000003000")
    timeline = Timeline.of([slow, fast])
    assert span(timeline.writes, "20260101000002500", "20260101000005000") == (fast,)
    assert span(timeline.writes, "20260101000003000", None) == (slow,)


def test_a_slice_is_plain_if_its_base_file_alone_has_the_rows_of_the_query() -> None:
    def slice_of(instant: str, *logs: str) -> FileSlice:
        names = [LogFileName.parse(log) for log in logs]
        base = BaseFile(BaseFileName("f", "0-1-0", instant), f"part=a/f_0-1-0_{instant}.parquet", 10)
        log_files = tuple(LogFile(name, f"part=a/{name}", 10) for name in names if name is not None)
        return FileSlice("part=a", "f", instant, base, log_files)

    since, before = "20260101000002000", "20260101000001000"
    slices = [slice_of(since), slice_of(before), slice_of(since, f".f_{since}.log.1_0-1-0")]
    blocks = BlockFilter(frozenset(), None)
    assert [read.is_plain for read in plan_slices(slices, blocks, schema_since=since)] == [True, False, False]
    assert not any(read.is_plain for read in plan_slices(slices, blocks))

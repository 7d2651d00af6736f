"""Flights of New York as they landed, three hours a commit, with a round of the table service every six.

At each round T is four hours ago. At each commit and round the read-optimized table is held to the flights themselves.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eventide import Table
from eventide.demo.flights import EVENT_TIME, KEY, PARTITION, SCHEMA, Reports
from eventide.rows.reader import Rows
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS, THRESHOLD
from support.run.command_line import run_json
from support.run.reach import reached
from support.tables.flights import flights, reports

pytestmark = pytest.mark.slow

# A flight of the tenth leaves nineteen hours late.
LOADED, END = datetime(2013, 1, 10, 6, tzinfo=UTC), datetime(2013, 1, 12, tzinfo=UTC)
COMMIT_EVERY, ROUND_EVERY, LATENCY = timedelta(hours=3), timedelta(hours=6), timedelta(hours=4)
OPTIONS = {
    CLOCK_SKEW_MS: "1",
    "hoodie.keep.min.commits": "4",
    "hoodie.keep.max.commits": "6",
    "hoodie.cleaner.commits.retained": "3",
}
Statuses = dict[str, tuple[datetime, str]]


def known_at(moment: datetime) -> Statuses:
    """The last thing that was said of each flight before a moment: when it was due, and its status."""
    known: Statuses = {}
    for flight in flights(12):
        said = [(at, status) for status, at in reports(flight) if LOADED - timedelta(days=10) <= at < moment]
        if said:
            known[flight["id"]] = (flight["scheduled"], max(said)[1])
    return known


def before(known: Statuses, epoch_ms: int) -> Statuses:
    bound = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return {key: row for key, row in known.items() if row[0] < bound}


def statuses(rows: Rows) -> Statuses:
    table = rows.to_arrow([KEY, EVENT_TIME, "status"])
    known = {row[KEY]: (row[EVENT_TIME], row["status"]) for row in table.to_pylist()}
    assert len(known) == table.num_rows, "a flight is there twice"
    return known


@pytest.mark.broad
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.proof), 9])
def test_everything_before_the_cut_is_read_optimized_at_each_step_of_a_replay(version: int, tmp_path: Path) -> None:
    feed = Reports.load()
    table = Table.create(
        str(tmp_path / "flights"),
        schema=SCHEMA,
        record_key=KEY,
        partition=PARTITION,
        event_time=EVENT_TIME,
        version=version,
        options={BUCKETS: 1, **OPTIONS},
    )
    table.upsert(feed.between(LOADED - timedelta(days=10), LOADED))
    words = [word for key, value in OPTIONS.items() for word in ("--option", f"{key}={value}")]
    now, cut_ms, late, left_over = LOADED, 0, 0, 0
    while now < END:
        table.upsert(feed.between(now, now + COMMIT_EVERY))
        now += COMMIT_EVERY
        truth = known_at(now)
        assert statuses(table.snapshot()) == truth
        freshness = table.freshness()
        late += freshness.late_records
        if freshness.watermark_ms is not None:
            assert before(statuses(table.read_optimized()), freshness.watermark_ms) == before(
                truth, freshness.watermark_ms
            )
        if (now - LOADED) % ROUND_EVERY:
            continue
        threshold_ms = int((now - LATENCY).timestamp()) * 1000
        said = run_json(
            "serve", table.uri, "--rounds", 1, "--engine", "local", *words, "--option", f"{THRESHOLD}={threshold_ms}"
        )
        assert (said["state"], said["troubles"]) == ("compacted", [])
        assert said["watermark_ms"] == said["cut_ms"] == threshold_ms > cut_ms, "freshness rises"
        assert said["late_records"] == 0
        cut_ms = threshold_ms
        assert before(statuses(table.read_optimized()), cut_ms) == before(truth, cut_ms)
        assert statuses(table.snapshot()) == truth
        left_over += sum(len(file_slice.log_files) for file_slice in table.state().view.latest_slices())
    assert late > 0
    assert left_over > 0
    assert len(table.state().timeline.writes) < (END - LOADED) / COMMIT_EVERY, "old instants were archived"
    reached("rounds of the flights' replay", int((END - LOADED) / ROUND_EVERY))

"""The demo's steps, with their measurements.

1. load      writes the reports until the second last day to base files
2. arrivals  writes later reports, three hours per commit, to log files; some of the reports are late
3. before    shows what the queries return, without a guarantee of freshness
4. plan      shows what a compaction of everything before T would do; T is a midnight
5. compact   compacts on Spark, or in this process
6. after     the read-optimized view is complete before T; the snapshot has not changed
7. queries   runs a snapshot, a read-optimized, an as-of, and an incremental query
8. freshness checks the watermark against the rows
9. late      writes the rest of the day: a report from before T lowers the watermark at once
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.demo.flights import EVENT_TIME, KEY, PARTITION, SCHEMA, Reports, data_file
from eventide.report.axis import Axis
from eventide.report.coverage import Role, SliceCoverage
from eventide.report.drawing import MARGIN, WIDTH, draw_coverage
from eventide.report.style import key, page
from eventide.report.tables import shown, wide
from eventide.results.plan import Plan
from eventide.rows.own_place import require_own_place
from eventide.table.table import Table
from eventide_core import config as keys
from eventide_core.config import Options
from eventide_core.errors import ConfigError, counted, format_timestamp
from eventide_core.ports import Progress

_HOUR_MS = 3_600_000
_SHOWN_BEFORE_MS = 30 * _HOUR_MS  # how far before T the picture begins: the base files reach further back
_KEY = {Role.BASE: "base file", Role.MERGED: "log, to be merged", Role.REMAINING: "log, left over"}

Coverage = Sequence[SliceCoverage]


def draw(before: Coverage, after: Coverage, threshold_ms: int, sentences: Sequence[str]) -> str:
    """The page as HTML. Times are in UTC."""
    ranges = [file.event_times for slice_coverage in (*before, *after) for file in slice_coverage.files]
    last_ms = max(times.max_ms for times in ranges if times is not None and times.max_ms is not None)
    end_ms = max(last_ms, threshold_ms + _HOUR_MS)
    axis = Axis(threshold_ms - _SHOWN_BEFORE_MS, end_ms, 10 + MARGIN, WIDTH - 10, margin_before=MARGIN)
    marks = {"T": threshold_ms}
    drawings = "".join(
        f"<h2>{title}</h2>"
        + wide(title, draw_coverage(slices, axis, marks, name=title.lower(), title=f"{title} the compaction"))
        for title, slices in (("Before", before), ("After", after))
    )
    steps = "".join(f"<li>{shown(sentence)}</li>" for sentence in sentences)
    body = f"""<h1>Compaction of everything before {format_timestamp(threshold_ms)}</h1>
<p>Each bar is a file, as long as the event times it holds; a group of bars is a file slice.</p>
{key(_KEY)}{drawings}
<h2>What happened</h2><ol>{steps}</ol>"""
    return page("eventide demo", body)


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)
DAYS_MAX = 364
# One flight of January 10 leaves nineteen hours late, long after its day was compacted.
DAYS_DEFAULT = 10
COMMIT_EVERY = timedelta(hours=3)
COMPACTED_AT = timedelta(hours=15)  # after T: in New York, the morning's flights have left
BUCKETS = 2
_TABLE = "flights"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the demo.

    `name` is one of those in the module's list. `sentence` is the text for people, and `facts` are the measurements behind
    it, by name, as values for JSON.
    """

    name: str
    sentence: str
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Demo:
    """The result of a demo. `watermark_ms` is the compaction's. `is_right` is true if every check passed.

    `steps` are in the order in which they ran. `table` is the table's directory, and `report` the page that shows it before
    and after the compaction.
    """

    steps: tuple[Step, ...]
    table: Path
    report: Path
    watermark_ms: int | None
    is_right: bool


def check_needs(directory: Path) -> None:
    """Raises ConfigError if the demo's data is not installed, or the directory is not one for a new table."""
    data_file()
    nearest = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    if not nearest.is_dir():
        raise ConfigError(f"directory {str(directory)!r} cannot be made: {str(nearest)!r} is a file; name another one")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise ConfigError(f"directory {str(directory)!r} cannot be written: no permission in {str(nearest)!r}")
    if (directory / _TABLE / ".hoodie").exists():
        raise ConfigError(f"directory {str(directory)!r} has a table of an earlier demo: name another one")
    require_own_place(str(directory / _TABLE), Options({}))


def run_demo(
    directory: Path,
    *,
    days: int,
    table_version: int,
    spark: "SparkSession | None",
    progress: Progress,
    tell: Callable[[Step], None],
) -> Demo:
    """Runs the demo in a directory. Calls `tell` after each step. Raises ConfigError if the directory has a table."""
    return _Story(directory, days, table_version, spark, progress, tell).run()


@dataclass(slots=True)
class _Story:
    directory: Path
    days: int
    table_version: int
    spark: "SparkSession | None"
    progress: Progress
    tell: Callable[[Step], None]
    steps: list[Step] = field(default_factory=list[Step])
    is_right: bool = True

    def run(self) -> Demo:
        threshold = FIRST_DAY + timedelta(days=self.days)
        reports = Reports.load()
        path = self.directory / _TABLE
        table = Table.create(
            str(path),
            schema=SCHEMA,
            record_key=KEY,
            partition=PARTITION,
            event_time=EVENT_TIME,  # equal in all reports of a flight: the last committed report wins
            version=self.table_version,
            options={keys.BUCKETS: BUCKETS},
            engine=self.spark,
        )
        loaded = self._load(table, reports, threshold)
        last_but_one = self._arrivals(table, reports, threshold)

        snapshot = table.snapshot().to_arrow()
        self._views("before", table, snapshot, threshold)
        plan = table.plan_compaction(threshold.isoformat())
        self._plan(plan)
        before = table.coverage(plan)
        self._compact(table, plan)
        after = table.coverage()
        self._views("after", table, snapshot, threshold)
        self._queries(table, snapshot, loaded, last_but_one)
        watermark_ms = self._freshness(table, threshold)
        self._late(table, reports, threshold)
        return Demo(tuple(self.steps), path, self._picture(before, after, threshold), watermark_ms, self.is_right)

    def _load(self, table: Table, reports: Reports, threshold: datetime) -> str:
        records = reports.between(FIRST_DAY, threshold - timedelta(days=1))
        instant = table.upsert(records).instant
        self._step(
            "load",
            f"loaded {counted(len(records), 'flight')} of {counted(self.days - 1, 'day')} into base files, "
            "partitioned by airport",
            {"instant": instant, "rows": len(records)},
        )
        return instant

    def _arrivals(self, table: Table, reports: Reports, threshold: datetime) -> str:
        """Commits the arrivals. Returns the instant of the second last commit."""
        begin, end = threshold - timedelta(days=1), threshold + COMPACTED_AT
        instants: list[str] = []
        rows = late = 0
        self.progress.start("commits", -((begin - end) // COMMIT_EVERY))
        while begin < end:
            records = reports.between(begin, begin + COMMIT_EVERY)
            instants.append(table.upsert(records).instant)
            rows += len(records)
            late += _count_before(records, begin)
            begin += COMMIT_EVERY
            self.progress.advance()
        self._step(
            "arrivals",
            f"appended {counted(rows, 'report')} to log files in {counted(len(instants), 'commit')}, as the flights "
            "departed and landed; "
            f"{late} of them are of flights that were due before their commit's three hours began",
            {"commits": len(instants), "rows": rows, "late_rows": late, "instants": instants},
        )
        return instants[-2]

    def _views(self, name: str, table: Table, snapshot: pa.Table, threshold: datetime) -> None:
        optimized = table.read_optimized().to_arrow()
        complete, wanted = _count_before(optimized, threshold), _count_before(snapshot, threshold)
        facts: dict[str, Any] = {
            "read_optimized_rows": len(optimized),
            "read_optimized_max_event_time_ms": _max_ms(optimized),
            "read_optimized_rows_before_t": complete,
            "snapshot_rows": len(snapshot),
            "snapshot_rows_before_t": wanted,
        }
        sentence = (
            f"read-optimized has {len(optimized)} rows up to {format_timestamp(_max_ms(optimized))}, and {complete} of "
            f"the {wanted} flights before {format_timestamp(_ms(threshold))}"
        )
        if name == "after":
            facts["snapshot_unchanged"] = _own(table.snapshot().to_arrow()) == _own(snapshot)
            facts["every_report_before_t"] = _before(optimized, threshold) == _before(snapshot, threshold)
            self._check(facts["snapshot_unchanged"] and facts["every_report_before_t"])
            same = "as before" if facts["snapshot_unchanged"] else "NOT as before"
            sentence += f", each as in the snapshot; the snapshot of {len(snapshot)} rows is {same}"
        self._step(name, sentence, facts)

    def _plan(self, plan: Plan) -> None:
        document = plan.to_json()
        merged = sum(len(op["compacted"]) for op in document["operations"])
        left = sum(len(op["remaining"]) for op in document["operations"])
        self._step(
            "plan",
            f"compacting everything before {format_timestamp(plan.cut_ms)} merges {counted(merged, 'log file')} and "
            f"leaves {left}: "
            f"{document['link_mode']}, {document['link_reason']}",
            {"logs_merged": merged, "logs_left_over": left, "explanation": plan.explain(), "plan": document},
        )

    def _compact(self, table: Table, plan: Plan) -> None:
        engine = "local" if self.spark is None else f"Spark {self.spark.version}"
        begin = time.monotonic()
        result = table.compact(plan, progress=self.progress)
        seconds = round(time.monotonic() - begin, 1)
        self._step(
            "compact",
            f"compacted at {result.instant} on {engine} in {seconds} s: "
            f"{counted(result.metrics['operations'], 'slice')}, {counted(result.metrics['records_written'], 'record')}, "
            f"{counted(result.metrics['log_files_linked'], 'left-over file')} made",
            {"instant": result.instant, "engine": engine, "seconds": seconds, "metrics": dict(result.metrics)},
        )

    def _queries(self, table: Table, snapshot: pa.Table, loaded: str, last_but_one: str) -> None:
        state = table.state()
        begin = state.timeline.completion_time(last_but_one) or last_but_one
        counts = {
            "snapshot": table.snapshot().count(),
            "read_optimized": table.read_optimized().count(),
            "as_of": table.as_of(loaded).count(),
            "incremental": table.incremental(begin).count(),
        }
        self._check(counts["snapshot"] == len(snapshot))
        self._step(
            "queries",
            f"snapshot {counts['snapshot']} rows, read-optimized {counts['read_optimized']}, "
            f"as of the first load {counts['as_of']}, incremental since the last commit but one {counts['incremental']}",
            {**counts, "as_of_instant": loaded, "incremental_begin": begin},
        )

    def _freshness(self, table: Table, threshold: datetime) -> int | None:
        fresh = table.freshness()
        self._check(fresh.watermark_ms == _ms(threshold))
        self._step(
            "freshness",
            f"watermark {format_timestamp(fresh.watermark_ms)}: everything before it that was reported is in the "
            "read-optimized view",
            {"watermark_ms": fresh.watermark_ms, "cut_ms": fresh.cut_ms, "late_records": fresh.late_records},
        )
        return fresh.watermark_ms

    def _late(self, table: Table, reports: Reports, threshold: datetime) -> None:
        records = reports.between(threshold + COMPACTED_AT, threshold + timedelta(days=1))
        table.upsert(records)
        fresh = table.freshness()
        late = _count_before(records, threshold)
        self._check(fresh.late_records == late)
        moved = (
            f"lower the watermark to {format_timestamp(fresh.watermark_ms)}"
            if late
            else "leave the watermark where it is"
        )
        self._step(
            "late",
            f"{counted(len(records), 'report')} of the rest of the day, {late} of them from before T, {moved}; "
            "the next compaction takes them in",
            {"rows": len(records), "late_records": fresh.late_records, "watermark_ms": fresh.watermark_ms},
        )

    def _picture(self, before: Coverage, after: Coverage, threshold: datetime) -> Path:
        path = self.directory / "report.html"
        path.write_text(draw(before, after, _ms(threshold), [step.sentence for step in self.steps]), encoding="utf-8")
        return path

    def _check(self, holds: bool) -> None:
        self.is_right = self.is_right and holds

    def _step(self, name: str, sentence: str, facts: Mapping[str, Any]) -> None:
        step = Step(name, sentence, facts)
        self.steps.append(step)
        self.tell(step)


def _own(rows: pa.Table) -> pa.Table:
    """The columns without Hudi's meta columns, sorted by key: a compaction changes the file name in the meta columns."""
    own = [name for name in rows.column_names if not name.startswith("_hoodie_")]
    return rows.select(own).sort_by(KEY)


def _before(rows: pa.Table, moment: datetime) -> pa.Table:
    return _own(rows.filter(pc.less(rows[EVENT_TIME], pa.scalar(moment, rows.schema.field(EVENT_TIME).type))))


def _count_before(rows: pa.Table, moment: datetime) -> int:
    return len(_before(rows, moment))


def _max_ms(rows: pa.Table) -> int | None:
    latest = pc.max(rows[EVENT_TIME]).as_py()
    return None if latest is None else _ms(latest)


def _ms(moment: datetime) -> int:
    return int(moment.timestamp()) * 1000

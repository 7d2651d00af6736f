"""SQL table functions on Spark 4.1: `SELECT * FROM eventide_freshness('/lake/trips')`.

    eventide_freshness(path)             a row with watermark, cut and late records; and a row for each partition
    eventide_plan(path, before => T)     a row for each slice that a compaction would rewrite; none if there is nothing to do
    eventide_compact(path, before => T)  compacts; a row with the instant, or with the reason why there was nothing to do
    eventide_verify(path)                a row for each check, or for each finding of a failed check

Each function takes options => map('hoodie....', '...'), as `Table.open` does. A function runs as one task, on the threads
of one Python worker of an executor: for a large compaction, use `Table.compact(engine=spark)`. Spark may run a task again,
which is harmless: if everything before T is compacted, the compaction returns the earlier result (`already_reached`).
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from eventide.rows.given import CutName
from eventide.table.table import Table
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import NothingToDoError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_Options = Mapping[str, str] | None
_Row = tuple[Any, ...]


class FreshnessFunction:
    """`eventide_freshness`."""

    COLUMNS: Final = (
        "partition string, watermark timestamp, cut timestamp, watermark_ms bigint, cut_ms bigint, late_records bigint, "
        "unknown_event_time_records bigint, complete boolean, unreadable_event_time_records bigint, basis string, "
        "held_back_by string"
    )

    def eval(
        self, path: str, event_time: str | None = None, by_partition: bool = False, options: _Options = None
    ) -> Iterator[_Row]:
        table = _table(path, event_time, options)
        yield _freshness(None, table.freshness())
        if by_partition:
            for name, fresh in table.freshness_by_partition().items():
                yield _freshness(name, fresh)


class PlanFunction:
    """`eventide_plan`."""

    COLUMNS: Final = (
        "partition string, file_id string, compacted_logs int, remaining_logs int, fallback string, reason string, "
        "link_mode string, cut timestamp, predicted_watermark timestamp"
    )

    def eval(
        self,
        path: str,
        before: Any = None,
        cut: CutName | None = None,
        link_mode: str | None = None,
        event_time: str | None = None,
        options: _Options = None,
    ) -> Iterator[_Row]:
        plan = _table(path, event_time, options).plan_compaction(_text(before), cut=cut, link_mode=link_mode)
        if plan.idle is not None:
            return
        for op in plan.operations:
            yield (
                op.partition,
                op.file_id,
                len(op.compacted),
                len(op.left_overs),
                None if op.fallback is None else str(op.fallback),
                op.reason,
                str(plan.draft.plan.link_mode),
                _moment(plan.cut_ms),
                _moment(plan.predicted_watermark_ms),
            )


class CompactFunction:
    """`eventide_compact`."""

    COLUMNS: Final = (
        "instant string, already_reached boolean, nothing_to_do string, watermark timestamp, watermark_ms bigint, "
        "late_records bigint"
    )

    def eval(
        self,
        path: str,
        before: Any = None,
        cut: CutName | None = None,
        link_mode: str | None = None,
        event_time: str | None = None,
        options: _Options = None,
    ) -> Iterator[_Row]:
        table = _table(path, event_time, options)
        try:
            result = table.compact(before=_text(before), cut=cut, link_mode=link_mode)
        except NothingToDoError as nothing:
            yield None, False, str(nothing), *_reached(table.freshness())
        else:
            yield result.instant, result.is_already_reached, None, *_reached(result.freshness)


class VerifyFunction:
    """`eventide_verify`."""

    COLUMNS: Final = "check string, invariant string, status string, path string, problem string, cure string"

    def eval(
        self, path: str, deep: bool = False, event_time: str | None = None, options: _Options = None
    ) -> Iterator[_Row]:
        for check in _table(path, event_time, options).verify(deep=deep).checks:
            about = (check.name, check.invariant, str(check.status))
            if not check.findings:
                yield *about, None, None, None
            for finding in check.findings:
                yield *about, finding.path, finding.problem, finding.cure


_FUNCTIONS: Final[Mapping[str, tuple[type, str]]] = {
    "eventide_freshness": (FreshnessFunction, FreshnessFunction.COLUMNS),
    "eventide_plan": (PlanFunction, PlanFunction.COLUMNS),
    "eventide_compact": (CompactFunction, CompactFunction.COLUMNS),
    "eventide_verify": (VerifyFunction, VerifyFunction.COLUMNS),
}


def register_functions(spark: "SparkSession") -> None:
    """Registers the functions with a session whose workers have eventide's packages."""
    from pyspark.sql.functions import udtf

    for name, (function, columns) in _FUNCTIONS.items():
        made: Any = udtf(function, returnType=columns)
        spark.udtf.register(name, made)


def _table(path: str, event_time: str | None, options: _Options) -> Table:
    own: dict[str, str] = {} if event_time is None else {EVENT_TIME_FIELD: event_time}
    return Table.open(path, {**(options or {}), **own})


def _freshness(partition: str | None, fresh: Freshness) -> _Row:
    return (
        partition,
        _moment(fresh.watermark_ms),
        _moment(fresh.cut_ms),
        fresh.watermark_ms,
        fresh.cut_ms,
        fresh.late_records,
        fresh.unknown_event_time_records,
        fresh.is_complete,
        fresh.unreadable_event_time_records,
        fresh.basis,
        fresh.held_back_by,
    )


def _reached(fresh: Freshness) -> _Row:
    return _moment(fresh.watermark_ms), fresh.watermark_ms, fresh.late_records


def _text(before: Any) -> Any:
    """T with a zone. Spark passes a timestamp without its zone, in the worker's local time."""
    return before.astimezone(UTC) if isinstance(before, datetime) and before.tzinfo is None else before


def _moment(epoch_ms: int | None) -> datetime | None:
    """The time in UTC; None for None, and for a time outside of Python's and Spark's calendars."""
    try:
        return None if epoch_ms is None else _EPOCH + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return None

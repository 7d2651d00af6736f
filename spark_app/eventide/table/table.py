"""The public API: one table with its writes, compaction by event time, four queries and freshness."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from eventide.bootstrap import Application, assemble
from eventide.catalog import located
from eventide.formatting import sanitize
from eventide.notebook import html_facts
from eventide.options.compaction_request import Overrides, compaction_request
from eventide.table.arguments import options_of, progress_of, require_given_texts, require_number, require_texts, uri_of
from eventide.table.maintenance import TableMaintenance
from eventide.table.open_table import task_engine, traced
from eventide.table.schema import TableSchema
from eventide.table.writes import TableWrites
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.freshness.arrival import with_arrival
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.config import SANITIZE_NAMES
from eventide_core.errors import ConfigError, EventideError, NothingToDoError
from eventide_core.ports import Progress, UnreadableEventTime
from eventide_core.service.common.state.table import TableState, read_from
from eventide_core.table.records.event_time import Moment
from eventide_core.table.timeline.contents.plans import CutMode

# A method imports what only it needs.
if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.report import Report, SliceCoverage
    from eventide.results.history import HistoryEntry
    from eventide.results.plan import Plan
    from eventide.results.show import TableDescription
    from eventide.rows.given import CutName, TaskEngine
    from eventide.table.sources import TableSources
    from eventide.table.table_service import TableService
    from eventide_core.service.compaction.result import CompactionResult, Ended
    from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan


@dataclass(frozen=True, slots=True)
class Table(TableWrites, TableSchema, TableMaintenance):
    """A Hudi table. Every method reads the table's state again."""

    uri: str
    options: Mapping[str, str] = field(repr=False)  # may contain secrets
    _application: Application = field(repr=False)

    def __new__(cls, *args: Any, **more: Any) -> Self:
        if len(args) + len(more) != len(fields(cls)):
            raise ConfigError("Table(...) makes no table: use Table.open(path), or Table.create(path, schema=...)")
        return object.__new__(cls)

    def __hash__(self) -> int:
        return hash(self.uri)

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[str, Mapping[str, str]]]:
        """A copy opens the table again, and runs its tasks on threads: a SparkSession stays in its process."""
        return type(self).open, (self.uri, dict(self.options))

    @classmethod
    def open(
        cls,
        uri: str | PathLike[str],
        options: Mapping[str, Any] | None = None,
        *,
        engine: "TaskEngine | None" = None,
    ) -> "Table":
        """Opens the table at a URI or path, or one of a catalog by its name, such as `hive://lake.trips`.

        `options` are the keys of Hudi (`hoodie.*`), of eventide and of the storage. `engine` runs the tasks: a SparkSession,
        or threads of this process if omitted.

        Raises NotAHudiTableError, UnsupportedTableError, ConfigError; for a name CatalogError, too.
        """
        running = None if engine is None else task_engine(engine)
        uri, texts = located(uri_of(uri), options_of(options), running)
        application = assemble(uri, texts, engine=running)
        application.files.config()
        return cls(uri, texts, application)

    @classmethod
    def create(
        cls,
        uri: str | PathLike[str],
        *,
        schema: Any,
        record_key: str | Sequence[str],
        partition: str | Sequence[str] | None = None,
        ordering: str | None = None,
        event_time: str | None = None,
        version: int | None = None,
        sanitize: bool = False,
        options: Mapping[str, Any] | None = None,
        engine: "TaskEngine | None" = None,
    ) -> "Table":
        """Creates an empty table and opens it. The default version is 9.

        `schema` is an Arrow or Spark schema, or an Avro schema as JSON. Of two records of a key, the one with the greater
        value of `ordering` wins. The default of `ordering` is the event time; without either, the record that was written
        last wins. Hudi's bucket index assigns keys to file groups: `hoodie.bucket.index.num.buckets` (4) in each partition.
        A partition field `field:TIMESTAMP`, beside others of the form `field:SIMPLE`, turns a time into a directory.

        With `sanitize`, a character that Avro can't hold in a column name becomes two underscores, as in Hudi: `trip id` is
        `trip__id`. The records that the returned table writes are changed alike; a table that you open later needs
        `hoodie.streamer.source.sanitize.invalid.schema.field.names`.

        Raises ConfigError, also if the table exists, InvalidColumnNameError for a name that Avro can't hold, and
        UnsupportedTableError for a column of a type that Hudi doesn't have.
        """
        from eventide.rows.writer import create_table

        uri = uri_of(uri)
        require_given_texts(ordering=ordering, event_time=event_time)
        texts = options_of(options)
        if sanitize:
            texts[SANITIZE_NAMES] = "true"
        create_table(
            uri,
            schema,
            texts,
            record_key=record_key,
            partition=partition,
            ordering=ordering,
            event_time=event_time,
            version=version,
        )
        return cls.open(uri, texts, engine=engine)

    def plan_compaction(
        self,
        before: Moment | None = None,
        *,
        data_latency_seconds: int | None = None,
        cut: "CutName | None" = None,
        link_mode: str | None = None,
        align: str | None = None,
        time_zone: str | None = None,
    ) -> "Plan":
        """Plans a compaction without writing anything. `print(plan.explain())` describes the plan.

        `before` is T: ISO-8601 with a time zone, a datetime with one, or epoch milliseconds; T itself is excluded. With
        `data_latency_seconds`, T is the current time minus the latency. Without either, the options decide: the strategy
        selects what is compacted, and the trigger whether a compaction is due (`plan.idle`). `align`, such as 1d or 1h,
        floors T to the start of a day or an hour in `time_zone` (UTC).
        """
        from eventide.results.plan import Plan

        given = Overrides(before, data_latency_seconds, cut, link_mode, align, time_zone)
        request = compaction_request(self.options, given)
        return Plan(request, self._application.scheduler.plan(request), self._application.offending.read)

    def schedule(self, plan: "Plan", *, is_for_later: bool = True) -> "Plan":
        """Puts the plan on the timeline. It merges nothing yet.

        Plans again if the table has changed since, if T follows the clock, or if the plan is of other options.
        If there is nothing to do, it writes nothing, and `idle` of the returned plan states the reason. A plan without
        operations only publishes its cut, and stock Hudi fails on it. So it is put only with `is_for_later=False`, for a
        caller that executes it at once.
        """
        given = _plan_of(plan)
        return _schedule(self._application, given.request, given.draft, is_for_later=is_for_later)

    @traced
    def compact(
        self,
        plan: "Plan | None" = None,
        *,
        before: Moment | None = None,
        data_latency_seconds: int | None = None,
        cut: "CutName | None" = None,
        link_mode: str | None = None,
        align: str | None = None,
        time_zone: str | None = None,
        engine: "TaskEngine | None" = None,
        progress: Progress | None = None,
    ) -> "CompactionResult":
        """Schedules and runs the compaction of `plan`, or of the other arguments, which are as in `plan_compaction`.

        It first completes or rolls back what dead runs left (`resume`), and the result reports it. You can repeat it
        safely: if everything before T is compacted already, it returns the result of the compaction that published the
        cut, with `is_already_reached`. `engine` is a SparkSession, or threads of this process if omitted.

        Raises NothingToDoError if the trigger is not due, or if there is nothing to compact; `plan.idle` says so
        beforehand. Raises BusyError while another process runs a compaction.
        """
        given = Overrides(before, data_latency_seconds, cut, link_mode, align, time_zone)
        if plan is not None and given != Overrides():
            raise ConfigError("pass either a plan, or its arguments")
        planned = None if plan is None else _plan_of(plan)
        request = compaction_request(self.options, given) if planned is None else planned.request
        ended = self.resume(engine=engine, progress=progress)
        # On the same engine, which thereby shows that it can merge the table.
        application = self._on(engine)
        drafted = None if planned is None else planned.draft
        scheduled = _schedule(application, request, drafted, is_for_later=False)
        if scheduled.idle is None:
            result = _execute(application, scheduled, progress)
        elif scheduled.is_reached:
            result = self._application.runner.reached()
        elif ended.resumed:
            result = self.execute(ended.resumed[-1])  # has completed: returns its result
        else:
            raise NothingToDoError(f"{self.uri}: {scheduled.idle}; nothing was written")
        if request.cut is CutMode.EXACT:
            result = replace(
                result, freshness=self._application.exact_views.with_exactness(self.state(), result.freshness)
            )
        return replace(result, ended=ended)

    @traced
    def resume(self, *, engine: "TaskEngine | None" = None, progress: Progress | None = None) -> "Ended":
        """Completes or rolls back what dead runs of eventide left, as `compact` does first, and returns what it did.

        It runs a pending compaction of eventide, also one that was scheduled but not started. It rolls back a compaction
        that no longer fits the table, and writes of dead writers. Raises BusyError while a live process runs a compaction.
        """
        from eventide.integrations.lineage import report_resumed

        application = self._on(engine)
        return report_resumed(application, application.pending.end(progress_of(progress)))

    def has_pending_runs(self) -> bool:
        """Whether `resume` has something to do. Writes nothing."""
        return self._application.pending.has_any()

    def execute(
        self,
        instant: "str | Plan",
        *,
        engine: "TaskEngine | None" = None,
        progress: Progress | None = None,
        force: bool = False,
    ) -> "CompactionResult":
        """Runs the compaction that any engine scheduled at an instant, or continues an interrupted one.

        Instead of the instant, pass the plan that `schedule` has just returned: it needn't be read again.

        With `force`, it takes over a plan that another engine has started, or whose rollback was interrupted while writers
        followed it (version 6). Nothing shows whether that process is alive: use it only if you know that it is dead.
        Without `force`, such a plan raises BusyError.
        """
        from eventide.results.plan import Plan

        if not isinstance(instant, Plan):
            require_texts(instant=instant)
        return _execute(self._on(engine), instant, progress, may_take_over=force)

    def service(self, *, cut: "CutName | None" = None, link_mode: str | None = None) -> "TableService":
        """The table service. The options set its strategy, its trigger, and T or the data latency."""
        from eventide.table.table_service import TableService

        return TableService(
            self._application, compaction_request(self.options, Overrides(cut=cut, link_mode=link_mode))
        )

    def freshness(self, *, is_exact: bool = True) -> Freshness:
        """The current freshness of the read-optimized table. It is no later than its sources have come.

        After an exact cut, it says whether the view is exact there, for which it reads the footer of each base file, unless
        `is_exact` is false.
        """

        def measured(state: TableState) -> Freshness:
            fresh = self._application.freshness.now(state)
            own = self._application.exact_views.with_exactness(state, fresh) if is_exact else fresh
            return self._application.arrival.freshness(state, own)

        return read_from(self.state, measured)

    @property
    def sources(self) -> "TableSources":
        """What vouches that everything before T has come: how far each source is, to declare one, and to forget it."""
        from eventide.table.sources import TableSources

        return TableSources(self._application)

    def freshness_by_partition(self) -> Mapping[str, Freshness]:
        def measured(state: TableState) -> Mapping[str, Freshness]:
            sources = self._application.arrival.progress(state)
            by_partition = self._application.freshness.by_partition(state)
            return {partition: with_arrival(own, sources) for partition, own in by_partition.items()}

        return read_from(self.state, measured)

    def unreadable_event_times(self) -> tuple[UnreadableEventTime, ...]:
        """A few of the log records whose event time cannot be read, and because of which there is no watermark."""
        return read_from(self.state, self._application.freshness.unreadable)

    def __repr__(self) -> str:
        return f"<Table {self.uri}: {', '.join(value for _, value in self._facts())}>"

    def _repr_html_(self) -> str:
        return html_facts(self.uri, self._facts())

    def _facts(self) -> tuple[tuple[str, str], ...]:
        try:
            config = self._application.files.config()
        except EventideError as error:
            return (("cannot be read", sanitize(error)),)
        kind = "copy-on-write" if config.is_copy_on_write else "merge-on-read"
        return (
            ("name", config.name),
            ("type", f"{kind}, version {config.version}"),
            ("record key", f"keyed by {', '.join(config.record_key_fields) or 'nothing'}"),
            ("partitions", f"partitioned by {', '.join(config.partition_fields) or 'nothing'}"),
        )

    @property
    def schema(self) -> "pa.Schema":
        """The columns of a snapshot, Hudi's meta columns first."""
        return self._application.reader.schema_of(self.state().shape(None))

    @property
    def version(self) -> int:
        """The version of the table's format: 6, 8 or 9."""
        return self._application.files.config().version

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's own settings, from `.hoodie/hoodie.properties`."""
        return MappingProxyType(dict(self._application.files.config().properties))

    def history(self, limit: int | None = None) -> "tuple[HistoryEntry, ...]":
        """The actions of the active timeline, newest first: commits, compactions, cleans, and what is pending."""
        from eventide.results.history import history

        require_number(limit=limit)
        return history(self.state(), limit)

    def describe(self) -> "TableDescription":
        """Settings, timeline, pending actions, and the files of each slice with the event times of its log files."""
        from eventide.results.show import describe

        return describe(self._application)

    def publish_metrics(self) -> None:
        """Measures the table, and sends the metrics to the sink of `hoodie.metrics.*`. A compaction does so by itself."""
        from eventide.integrations.metrics import publish_metrics

        publish_metrics(self._application)

    def report(self, path: str | Path) -> "Report":
        """Writes a report on the table's freshness as one HTML page to a local file, and returns its numbers.

        Raises ConfigError if the file can't be written.
        """
        from eventide.report import gather, render, write_page

        target = Path(uri_of(path))
        report = gather(self._application)
        write_page(target, render(report))
        return report

    def coverage(self, plan: "Plan | None" = None) -> "tuple[SliceCoverage, ...]":
        """The event times in each file of each slice. Log files that `plan` merges are marked."""
        from eventide.report import coverage

        return coverage(self._application, merged=frozenset() if plan is None else _plan_of(plan).merged_log_files)


def _plan_of(plan: object) -> "Plan":
    from eventide.results.plan import Plan

    if not isinstance(plan, Plan):
        raise ConfigError(f"{plan!r} isn't a plan: pass one of `plan_compaction`, or T as `before` of `compact`")
    return plan


def _schedule(
    application: Application, request: CompactionRequest, drafted: "DraftPlan | None", *, is_for_later: bool
) -> "Plan":
    from eventide.results.plan import Plan

    draft = application.scheduler.schedule(request, is_for_later=is_for_later, drafted=drafted)
    return Plan(request, draft, application.offending.read)


def _execute(
    application: Application, scheduled: "str | Plan", progress: Progress | None, *, may_take_over: bool = False
) -> "CompactionResult":
    from eventide.integrations.lineage import run_compaction
    from eventide.integrations.metrics import publish_metrics
    from eventide.table.sync import update_catalog

    instant, put = (scheduled, None) if isinstance(scheduled, str) else (scheduled.instant, scheduled.draft.put)
    result = run_compaction(application, instant, progress_of(progress), may_take_over=may_take_over, put=put)
    publish_metrics(application)
    return update_catalog(application, result)

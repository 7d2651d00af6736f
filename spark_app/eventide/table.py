"""The public face: one table, its writes, compaction by event time, its four queries, its freshness."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.bootstrap import Application, assemble
from eventide.compaction_request import Overrides, compaction_request
from eventide.metrics import publish_metrics
from eventide.plan import Plan
from eventide.report import Report, SliceCoverage, coverage, gather, render, write_page
from eventide.show import TableDescription, describe
from eventide.sync import sync_options, tell_catalog
from eventide.table_queries import TableQueries
from eventide.table_service import TableService
from eventide.table_tags import TableTags
from eventide.writer import create_table, incoming_records
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.freshness import Freshness
from eventide_core.action.pending_write import WriteResult
from eventide_core.action.verification.result import Verification
from eventide_core.errors import ConfigError, NothingToDoError
from eventide_core.ports import Engine, NoProgress, Progress
from eventide_core.service.compaction.run import CompactionResult, Ended
from eventide_core.service.maintenance.clean import CleanResult
from eventide_core.service.maintenance.sync import SyncResult
from eventide_core.service.state.table import TableState
from eventide_core.table.write_shape import WriteOperation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Table(TableQueries, TableTags):
    """A Hudi merge-on-read table. Every method looks at the table anew."""

    uri: str
    options: Mapping[str, str] = field(repr=False)  # there may be secrets among them
    _application: Application = field(repr=False)

    @classmethod
    def open(
        cls,
        uri: str,
        options: Mapping[str, Any] | None = None,
        *,
        engine: "SparkSession | Engine | None" = None,
    ) -> "Table":
        """The table at a URI or path; `options` are Hudi's `hoodie.*` keys, eventide's, and the storage's.

        `engine` runs whatever has tasks: a SparkSession, or this process when omitted.

        Raises NotAHudiTableError, UnsupportedTableError, ConfigError.
        """
        texts = {key: _text(value) for key, value in (options or {}).items()}
        application = assemble(uri, texts, engine=None if engine is None else _engine(engine))
        application.files.config()
        return cls(uri, texts, application)

    @classmethod
    def create(
        cls,
        uri: str,
        *,
        schema: Any,
        record_key: str | Sequence[str],
        partition: str | Sequence[str] | None = None,
        ordering: str | None = None,
        event_time: str | None = None,
        version: int | None = None,
        options: Mapping[str, Any] | None = None,
        engine: "SparkSession | Engine | None" = None,
    ) -> "Table":
        """Makes an empty table, of version 9 unless said otherwise, and opens it.

        `schema` is Arrow's, Spark's, or an Avro one as JSON. Of two records of a key the one with the greater value of
        `ordering` wins, which is the event time where nothing is said; without either the last one written. Keys find
        their file groups by Hudi's bucket index: `hoodie.bucket.index.num.buckets` (4) of them in each partition. A
        partition field of the form `field:TIMESTAMP`, among others that are `field:SIMPLE`, makes a folder of a time.

        Raises ConfigError, for a table that is there already too, and UnsupportedTableError for a column of a type that
        Hudi does not have.
        """
        texts = {key: _text(value) for key, value in (options or {}).items()}
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

    def upsert(self, records: Any, *, progress: Progress | None = None) -> WriteResult:
        """Writes records in place of those of the same keys, or beside them where there are none.

        `records` are an Arrow table, record batch or reader, or a Spark DataFrame. Of several records of a key only the
        latest is written. Raises InvalidRecordError, naming row and column, before anything is written.
        """
        return self._write(WriteOperation.UPSERT, records, progress)

    def insert(self, records: Any, *, progress: Progress | None = None) -> WriteResult:
        """Writes records as new ones: nobody looks whether their keys are there already, but for the bucket index."""
        return self._write(WriteOperation.INSERT, records, progress)

    def bulk_insert(self, records: Any, *, progress: Progress | None = None) -> WriteResult:
        """Writes many new records, as a first load does: into new file groups wherever the index allows it."""
        return self._write(WriteOperation.BULK_INSERT, records, progress)

    def delete(self, records: Any, *, progress: Progress | None = None) -> WriteResult:
        """Deletes keys: rows with the columns of key and partition.

        With the ordering column a delete has its place in the order; without it, it deletes whatever is there.
        """
        return self._write(WriteOperation.DELETE, records, progress)

    def plan_compaction(
        self,
        before: str | int | None = None,
        *,
        data_latency_seconds: int | None = None,
        cut: str | None = None,
        link_mode: str | None = None,
        align: str | None = None,
        time_zone: str | None = None,
    ) -> Plan:
        """What a compaction would do; writes nothing. `print(plan.explain())` tells it to a person.

        `before` is T: ISO-8601 with a zone, or epoch milliseconds; data at T itself is not included. Instead
        `data_latency_seconds` takes T as the time now less that. Without either, the options say: their strategy what
        is compacted, their trigger whether a compaction is due (`plan.idle`). `align`, such as 1d or 1h, floors T to the
        start of a day or an hour in `time_zone` (UTC).
        """
        given = Overrides(before, data_latency_seconds, cut, link_mode, align, time_zone)
        request = compaction_request(self.options, given)
        return Plan(request, self._application.scheduler.plan(request), self._application.offending.read)

    def schedule(self, plan: Plan, *, is_for_later: bool = True) -> Plan:
        """Puts the same plan, made anew from the table as it is, on the timeline; nothing is merged yet.

        Where nothing is to be done the plan it returns says so (`idle`), and nothing was written. A plan without
        operations, which would just publish its cut, is put there only for who executes it at once (not `is_for_later`):
        stock Hudi fails over it.
        """
        return self._schedule(plan.request, is_for_later=is_for_later)

    def _schedule(self, request: CompactionRequest, *, is_for_later: bool) -> Plan:
        draft = self._application.scheduler.schedule(request, is_for_later=is_for_later)
        return Plan(request, draft, self._application.offending.read)

    def compact(
        self,
        plan: Plan | None = None,
        *,
        before: str | int | None = None,
        data_latency_seconds: int | None = None,
        cut: str | None = None,
        link_mode: str | None = None,
        align: str | None = None,
        time_zone: str | None = None,
        engine: "SparkSession | Engine | None" = None,
        progress: Progress | None = None,
    ) -> CompactionResult:
        """Schedules and runs the plan's compaction, or the one that these words ask for, as in `plan_compaction`.

        On a SparkSession, or in this process when omitted.

        First ends what runs that died have left (`resume`); the result says what. Running it again is harmless: where
        everything before T is compacted already, the result is that of the compaction that published the cut, with
        `is_already_reached`. Raises NothingToDoError where the trigger is not due, or there is nothing to compact:
        `plan.idle` says so beforehand. Raises BusyError while another process runs a compaction.
        """
        given = Overrides(before, data_latency_seconds, cut, link_mode, align, time_zone)
        if plan is not None and given != Overrides():
            raise ConfigError("give either a plan, or the words that one is made of")
        request = compaction_request(self.options, given) if plan is None else plan.request
        ended = self.resume(engine=engine, progress=progress)
        scheduled = self._schedule(request, is_for_later=False)
        if scheduled.idle is None:
            result = self.execute(scheduled.instant, engine=engine, progress=progress)
        elif scheduled.is_reached:
            result = self._application.runner.reached()
        elif ended.resumed:
            result = self.execute(ended.resumed[-1])  # which has completed: its answer
        else:
            raise NothingToDoError(f"{self.uri}: {scheduled.idle}; nothing was written")
        return replace(result, ended=ended)

    def resume(self, *, engine: "SparkSession | Engine | None" = None, progress: Progress | None = None) -> Ended:
        """Ends what runs of eventide that died have left, as `compact` does first: what was run, what was rolled back.

        A pending compaction of eventide is run, also one that was scheduled and that nobody has begun; one that fits the
        table no more is rolled back, and so are writes whose writers are known to be dead. Raises BusyError while a process
        that is alive runs one.
        """
        application = self._application if engine is None else self._on(engine)
        return application.pending.end(progress or NoProgress())

    def has_pending_runs(self) -> bool:
        """Whether `resume` has something to do. Writes nothing."""
        return self._application.pending.has_any()

    def execute(
        self,
        instant: str,
        *,
        engine: "SparkSession | Engine | None" = None,
        progress: Progress | None = None,
        force: bool = False,
    ) -> CompactionResult:
        """Runs the compaction scheduled at an instant, by whatever engine, or goes on with one that was broken off.

        With `force`, takes over a plan that another engine has begun. Nothing shows whether that engine is alive: pass it
        only if you know that its process is dead. Without `force` such a plan raises BusyError.
        """
        application = self._application if engine is None else self._on(engine)
        result = application.runner.execute(instant, progress or NoProgress(), may_take_over=force)
        publish_metrics(application)
        return tell_catalog(application, result)

    def rollback(self, instant: str, *, force: bool = False) -> tuple[str, ...]:
        """Undoes the action at an instant; returns the paths that were removed.

        A completed one only where nothing is lost with it: RefusedError says why not. BusyError while its writer is alive.
        A pending one without a heartbeat only with `force`: nothing tells whether its writer is alive.
        """
        return self._application.rollback.undo(instant, force=force)

    def clean(self, retain_commits: int | None = None, *, dry_run: bool = False) -> CleanResult:
        """Removes the files that no retained slice, pending plan, savepoint or link needs; with `dry_run` says which.

        `retain_commits` goes before the options' policy (`hoodie.cleaner.policy` and its like).
        """
        cleaner = self._application.cleaner
        return cleaner.plan(retain_commits) if dry_run else cleaner.clean(retain_commits)

    def archive(self) -> tuple[str, ...]:
        """Moves old instants to the archived timeline; their requested times, oldest first.

        By `hoodie.keep.min.commits` and `hoodie.keep.max.commits`; never one that cleaning, a savepoint or something pending
        still needs.
        """
        return self._application.archiver.archive()

    def service(self, *, cut: str | None = None, link_mode: str | None = None) -> TableService:
        """The table service, by the strategy, the trigger and T or the data's latency that the options name."""
        return TableService(
            self._application, compaction_request(self.options, Overrides(cut=cut, link_mode=link_mode))
        )

    def restore(self, savepoint: str) -> tuple[str, ...]:
        """Undoes every write after a savepoint; returns their instants, newest first."""
        return self._application.restorer.restore(savepoint)

    def freshness(self) -> Freshness:
        """How fresh the read-optimized table is now."""
        return self._application.freshness.now(self.state())

    def freshness_by_partition(self) -> Mapping[str, Freshness]:
        return self._application.freshness.by_partition(self.state())

    def verify(
        self,
        *,
        deep: bool = False,
        engine: "SparkSession | Engine | None" = None,
        progress: Progress | None = None,
    ) -> Verification:
        """Whether the table keeps its promises, check by check: what is damaged, and what was not looked at.

        Writes nothing. By names, sizes, headers and footers; `deep` reads every record of the latest slices, too. Damage is
        an answer, not an error.
        """
        application = self._application if engine is None else self._on(engine)
        return application.verifier.verify(is_deep=deep, progress=progress or NoProgress())

    def sync(
        self,
        catalog: str = "hive",
        *,
        database: str | None = None,
        name: str | None = None,
        engine: "SparkSession | Engine | None" = None,
    ) -> SyncResult:
        """Tells a catalog the table: its `_ro` and `_rt` tables, partitions, schema and freshness; only what has changed.

        By Hudi's keys for its hive sync, `hoodie.datasource.hive_sync.*`; `database` and `name` go before them. `catalog`
        is `hive`: a Hive Metastore, through the SparkSession that is the engine where that has Hive support, else by Thrift.
        Raises CatalogError where the catalog fails, DatabaseNotFoundError, ConfigError, and RefusedError where another table
        has the name.
        """
        options = sync_options(self.options, catalog, database, name)
        asked = self._application.engine if engine is None else _engine(engine)
        return assemble(self.uri, options, engine=asked, storage=self._application.storage).sync.sync()

    def state(self) -> TableState:
        """Settings, timeline and file slices, as they are now."""
        return self._application.state()

    def describe(self) -> TableDescription:
        """Settings, timeline, what is pending, and each slice's files with the event times of its logs."""
        return describe(self._application)

    def publish_metrics(self) -> None:
        """Tells the sink that `hoodie.metrics.*` names what is measured of the table now; a compaction does by itself."""
        publish_metrics(self._application)

    def report(self, path: str | Path) -> Report:
        """What a person wants to know of the table's freshness, written as one HTML page to a local file.

        Raises ConfigError where the file cannot be written.
        """
        found = gather(self._application)
        write_page(Path(path), render(found))
        return found

    def coverage(self, plan: Plan | None = None) -> tuple[SliceCoverage, ...]:
        """Which event times each file of each slice holds; logs that the plan merges are told apart."""
        return coverage(self._application, merged=frozenset() if plan is None else plan.merged_logs)

    def _write(self, operation: WriteOperation, records: Any, progress: Progress | None) -> WriteResult:
        incoming = incoming_records(self._application, operation, records)
        return self._application.append.write(operation, incoming, progress or NoProgress())

    def _on(self, engine: "SparkSession | Engine") -> Application:
        return assemble(self.uri, self.options, engine=_engine(engine), storage=self._application.storage)


def _engine(engine: "SparkSession | Engine") -> Engine:
    if isinstance(engine, Engine):
        return engine
    # Imported here: reading and planning work where pyspark is not installed.
    from eventide.spark.engine import SparkEngine

    return SparkEngine(engine)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

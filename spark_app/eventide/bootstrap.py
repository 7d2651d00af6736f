"""The composition root: builds storage, lock, codec, engine, and the use cases over them from a URI and options.

The only module that knows both a service and an adapter.
"""

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, partial
from os import getpid
from typing import TYPE_CHECKING
from uuid import uuid4

from eventide.engine_local import LocalEngine, RequestEngine
from eventide.options.compaction_request import tag_schedule
from eventide.options.queries import DELETE_FIELD, DELETE_MARKER
from eventide.options.sections import check_options
from eventide_adapters.format.columns.time_patterns import event_time_texts
from eventide_adapters.format.merge.record_mergers import check_merger, mergers_of
from eventide_adapters.lock.heartbeats import FileHeartbeats
from eventide_adapters.lock.open import open_lock
from eventide_adapters.lock.traced import TracedLock
from eventide_adapters.metrics.open import open_sink, open_tracer
from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.secret_texts import secrets_in, without_secrets
from eventide_core.access.requests import Requests
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import ArchivedTimeline, Clock, Engine, Heartbeats, Storage, TableLock, Tracer
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.table.records.record_shape import DeleteMarker
from eventide_core.table.settings.table_config import TableConfig

if TYPE_CHECKING:
    from eventide_adapters.format.comparison.change_reader import ArrowChangeReader
    from eventide_adapters.format.comparison.content_audit import ArrowContentAudit
    from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
    from eventide_core.ports import ArrivalSource, BaseContent, CountRows, LogContent, MarkerTarget
    from eventide_core.service.compaction.pending import PendingCompactions
    from eventide_core.service.compaction.run import CompactionRunner
    from eventide_core.service.facts.arrival import ArrivalReader
    from eventide_core.service.facts.exact_view import ExactViews
    from eventide_core.service.facts.freshness import FreshnessReader
    from eventide_core.service.facts.log_facts import LogFactsReader
    from eventide_core.service.maintenance.archive import Archiver
    from eventide_core.service.maintenance.clean import Cleaner
    from eventide_core.service.maintenance.declared_sources import SourceDeclarations
    from eventide_core.service.maintenance.sync import Sync
    from eventide_core.service.metadata_table.rebuild import MetadataRebuilder
    from eventide_core.service.metadata_table.upkeep import MetadataTableUpkeep
    from eventide_core.service.query.done_markers import DoneMarkers
    from eventide_core.service.query.offending_records import OffendingRecordsReader
    from eventide_core.service.query.read import QueryService
    from eventide_core.service.query.record_index_lookup import RecordIndexLookup
    from eventide_core.service.query.windows import WindowService
    from eventide_core.service.repair.lost_keys import LostKeysReader
    from eventide_core.service.repair.lost_settings import SettingsRecovery
    from eventide_core.service.repair.repair import Repairer
    from eventide_core.service.rollback.instant import Rollback
    from eventide_core.service.rollback.restore import Restorer
    from eventide_core.service.rollback.savepoint import Savepoints
    from eventide_core.service.rollback.watermark_tags import WatermarkTags
    from eventide_core.service.scheduling.schedule import CompactionScheduler
    from eventide_core.service.scheduling.slice_facts import SliceFactsReader
    from eventide_core.service.scheduling.split_judge import SplitJudge
    from eventide_core.service.state.liveness import Liveness
    from eventide_core.service.verification.verify import Verifier
    from eventide_core.service.write.alter import Alter
    from eventide_core.service.write.append import Append
    from eventide_core.table.settings.declared_sources import DeclaredSource

# Requests to storage, such as listing a directory or reading a commit, take about 20 ms each.
_REQUESTS_AT_ONCE = 16


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    def local_offset_ms(self, epoch_ms: int, /) -> int:
        return time.localtime(epoch_ms // 1000).tm_gmtoff * 1000


@dataclass(eq=False, repr=False)
class Application:
    """The use cases over one table. `engine` runs their tasks. Raises ConfigError for an invalid option.

    A use case is built when it is first used, and its modules are imported then: a verb needs few of them. `new_uuid` names
    what no other process has, such as a runner of windows.
    """

    storage: Storage
    _lock: TableLock
    heartbeats: Heartbeats
    engine: Engine
    clock: Clock
    options: Options
    new_uuid: Callable[[], str]
    tracer: Tracer

    def __post_init__(self) -> None:
        self.metrics = open_sink(self.options)
        self.files = _table_files(self.storage, self.engine, self.clock, self.options, self.tracer)
        self.ordering_units: dict[str, dict[int, float]] = {}
        self._tag_schedule = tag_schedule(self.options)

    def traced(self, name: str) -> AbstractContextManager[object]:
        """A span of the trace, which says which table it is about."""
        return self.tracer.span(name, table=without_secrets(self.storage.root, ()))

    def state(self) -> TableState:
        """The current settings, timeline and file slices."""
        return TableState.load(self.files)

    @cached_property
    def scheduler(self) -> "CompactionScheduler":
        from eventide_core.service.scheduling.draft import CompactionDrafter
        from eventide_core.service.scheduling.schedule import CompactionScheduler
        from eventide_core.service.scheduling.settings import CompactionSettings

        settings = CompactionSettings.of(self.options)
        drafter = CompactionDrafter(
            self.files,
            self._splits,
            self._slice_facts,
            self.freshness,
            self.arrival,
            self.metadata,
            self.exact_views,
            self.options,
            settings,
        )
        return CompactionScheduler(self.files, drafter, check_merger, self.engine, self._lock, settings)

    @cached_property
    def runner(self) -> "CompactionRunner":
        from eventide_adapters.format.merge.slice_merger import ArrowSliceMerger
        from eventide_core.service.compaction.compact_slice import SliceCompactor
        from eventide_core.service.compaction.run import CompactionRunner
        from eventide_core.service.compaction.run_foreign import ForeignCompactionRunner
        from eventide_core.service.scheduling.replan import Replanner
        from eventide_core.service.state.ownership import Ownership

        compact_slice = SliceCompactor(self.storage, ArrowSliceMerger(self.storage), time.time_ns)
        settings = self.scheduler.settings
        return CompactionRunner(
            self.files,
            self.scheduler,
            Replanner(self._slice_facts, self._splits),
            self.freshness,
            self.metadata,
            compact_slice,
            ForeignCompactionRunner(self.files, self.metadata, compact_slice, self.engine, self._lock, settings),
            self.engine,
            Ownership(self._lock, self._liveness),
            self._lock,
            settings,
        )

    @cached_property
    def pending(self) -> "PendingCompactions":
        from eventide_core.service.compaction.pending import PendingCompactions

        return PendingCompactions(self.files, self.runner, self.rollback, self.scheduler.settings)

    @cached_property
    def rollback(self) -> "Rollback":
        from eventide_core.service.rollback.instant import Rollback

        return Rollback(self.files, self.metadata, self._lock, self._liveness)

    @cached_property
    def cleaner(self) -> "Cleaner":
        from eventide_core.service.maintenance.clean import Cleaner

        return Cleaner(self.files, self.metadata, self.rollback, self._lock, self._liveness, self.options)

    @cached_property
    def archiver(self) -> "Archiver":
        from eventide_core.service.maintenance.archive import Archiver

        return Archiver(self.files, self.cleaner, self._lock, self.options)

    @cached_property
    def savepoints(self) -> "Savepoints":
        from eventide_core.service.rollback.savepoint import Savepoints

        return Savepoints(self.files, self.exact_views, self._lock)

    @cached_property
    def watermark_tags(self) -> "WatermarkTags":
        from eventide_core.service.rollback.watermark_tags import WatermarkTags

        return WatermarkTags(self.savepoints, self.arrival, self._tag_schedule)

    @cached_property
    def restorer(self) -> "Restorer":
        from eventide_core.service.rollback.restore import Restorer

        return Restorer(self.files, self.metadata, self._lock, self._liveness)

    @cached_property
    def append(self) -> "Append":
        from eventide_core.service.write.append import Append
        from eventide_core.service.write.instants import WriteInstants

        instants = WriteInstants(self.files, self.metadata, self.rollback, self._lock, self._liveness, self.options)
        return Append(self.files, self.metadata, instants, self.options, self.new_uuid)

    @cached_property
    def alter(self) -> "Alter":
        from eventide_core.service.write.alter import Alter

        return Alter(self.append)

    @cached_property
    def queries(self) -> "QueryService":
        from eventide_core.service.query.read import QueryService

        return QueryService(self.files)

    @cached_property
    def key_lookup(self) -> "RecordIndexLookup":
        from eventide_core.service.query.record_index_lookup import RecordIndexLookup

        return RecordIndexLookup(self.files, self.options)

    def windows(self, runner: str) -> "WindowService":
        """The windows of the table's consumers, for a runner of that name."""
        from eventide_adapters.format.comparison.window_content import ArrowWindowContent
        from eventide_core.service.query.windows import WindowService

        return WindowService(
            self.files, lambda: ArrowWindowContent(self.storage), self.engine, self.options, self.arrival, runner
        )

    def done_markers(self, target: "MarkerTarget") -> "DoneMarkers":
        """What sends the target the windows that are done."""
        from eventide_adapters.format.comparison.window_content import ArrowWindowContent
        from eventide_core.service.query.done_markers import DoneMarkers

        content = partial(ArrowWindowContent, self.storage)
        return DoneMarkers(
            self.files, content, self.engine, self.options, self.arrival, self._uuid, self.freshness, target
        )

    @cached_property
    def offending(self) -> "OffendingRecordsReader":
        from eventide_core.service.query.offending_records import OffendingRecordsReader

        return OffendingRecordsReader(self.files, self._log_content, self.options)

    @cached_property
    def arrival(self) -> "ArrivalReader":
        from eventide_core.service.facts.arrival import ArrivalReader

        return ArrivalReader(self.files, self.options, partial(_open_source, self.options), self._counts_of)

    def _counts_of(self, state: TableState, instant: str | None) -> "CountRows":
        def count(spans: "Sequence[tuple[int, int]]") -> "Sequence[int]":
            from eventide_adapters.format.comparison.window_content import ArrowWindowContent
            from eventide_core.service.facts.event_time_field import event_time_field_of
            from eventide_core.service.query.read import QueryService

            queries, field = QueryService(self.files, state), event_time_field_of(state, self.options)
            plan = queries.snapshot() if instant is None else queries.as_of(instant)
            return ArrowWindowContent(self.storage).counts(plan.slices, plan.shape, field, spans, self.engine)

        return count

    @cached_property
    def declared_sources(self) -> "SourceDeclarations":
        from eventide_core.service.maintenance.declared_sources import SourceDeclarations

        return SourceDeclarations(self.files, self._lock, partial(_open_source, self.options))

    @cached_property
    def freshness(self) -> "FreshnessReader":
        from eventide_core.service.facts.freshness import FreshnessReader

        return FreshnessReader(self._log_facts, self.options)

    @cached_property
    def verifier(self) -> "Verifier":
        from eventide_core.service.verification.facts import FactsReader
        from eventide_core.service.verification.records import RecordsReader
        from eventide_core.service.verification.verify import Verifier

        facts = FactsReader(self.files, self.freshness, self._content_audit, self.engine, self._liveness, self.options)
        return Verifier(self.files, facts, RecordsReader(self._content_audit, self.engine))

    @cached_property
    def repairer(self) -> "Repairer":
        from eventide_core.service.repair.repair import Repairer

        return Repairer(
            self.files, self.verifier, self._content_audit, self.runner, self.metadata_rebuilder, self._lock, self.clock
        )

    @cached_property
    def lost_keys(self) -> "LostKeysReader":
        from eventide_core.service.repair.lost_keys import LostKeysReader

        return LostKeysReader(self.verifier, self._content_audit, self.metadata, self.engine)

    @cached_property
    def settings_recovery(self) -> "SettingsRecovery":
        from eventide_core.service.repair.lost_settings import SettingsRecovery

        return SettingsRecovery(self.files, self._lock, self.clock)

    @cached_property
    def sync(self) -> "Sync":
        from eventide.catalog import catalogs_of, open_catalog
        from eventide_core.service.maintenance.sync import CatalogSync, DatasetSync, SyncOfEach

        def of(catalog: str) -> "Sync":
            kind = DatasetSync if catalog == "datahub" else CatalogSync
            opened = partial(open_catalog, catalog, self.options, self.engine)
            return kind(self.files, self.freshness, self.arrival, opened, self.options)

        syncs = tuple(map(of, catalogs_of(self.options)))
        return syncs[0] if len(syncs) == 1 else SyncOfEach(syncs)

    @cached_property
    def metadata(self) -> "MetadataTableUpkeep":
        from eventide_core.service.metadata_table.compaction import MetadataCompactor
        from eventide_core.service.metadata_table.upkeep import MetadataTableUpkeep

        compactor = MetadataCompactor(self.storage, self.files.metadata_table, self.files.codec, self.engine)
        return MetadataTableUpkeep(compactor, self.options)

    @cached_property
    def metadata_rebuilder(self) -> "MetadataRebuilder":
        from eventide_core.service.metadata_table.rebuild import MetadataRebuilder

        return MetadataRebuilder(self.files, self._lock)

    @cached_property
    def reader(self) -> "ArrowSliceReader":
        from eventide_adapters.format.merge.slice_reader import ArrowSliceReader

        return ArrowSliceReader(self.storage)

    @cached_property
    def change_reader(self) -> "ArrowChangeReader":
        from eventide_adapters.format.comparison.change_reader import ArrowChangeReader

        return ArrowChangeReader(self.storage)

    @cached_property
    def bases(self) -> "BaseContent":
        from eventide_adapters.format.base_file.event_times import ParquetBaseContent

        return ParquetBaseContent(self.storage)

    @cached_property
    def exact_views(self) -> "ExactViews":
        from eventide_core.service.facts.exact_view import ExactViews

        return ExactViews(lambda: self.bases, self._log_facts.request_engine)

    @cached_property
    def _uuid(self) -> str:
        return self.new_uuid()

    @cached_property
    def _log_content(self) -> "LogContent":
        from eventide_adapters.format.log_content.content import ArrowLogContent

        return ArrowLogContent(self.storage)

    @cached_property
    def _content_audit(self) -> "ArrowContentAudit":
        from eventide_adapters.format.comparison.content_audit import ArrowContentAudit

        return ArrowContentAudit(self.storage)

    @cached_property
    def _log_facts(self) -> "LogFactsReader":
        from eventide_core.service.facts.log_facts import LogFactsReader

        engine = self.engine
        request_engine = RequestEngine(engine.threads) if isinstance(engine, LocalEngine) else engine
        return LogFactsReader(self._log_content, engine, request_engine)

    @cached_property
    def _slice_facts(self) -> "SliceFactsReader":
        from eventide_core.service.scheduling.slice_facts import SliceFactsReader

        return SliceFactsReader(self._log_facts, self.options)

    @cached_property
    def _splits(self) -> "SplitJudge":
        from eventide_core.service.scheduling.split_judge import SplitJudge

        return SplitJudge(self._log_content, self.engine)

    @cached_property
    def _liveness(self) -> "Liveness":
        from eventide_core.service.state.liveness import Liveness

        return Liveness.of(self.storage, self.heartbeats, self.clock, self.options)


def assemble(
    uri: str,
    options: Mapping[str, str],
    *,
    engine: Engine | None = None,
    storage: Storage | None = None,
    lock: TableLock | None = None,
    clock: Clock | None = None,
    new_uuid: Callable[[], str] = lambda: str(uuid4()),
    tracer: Tracer | None = None,
) -> Application:
    """The use cases over the table at `uri`. Ports that are not passed are built from the URI and the options.

    `new_uuid` names new file groups and this process. Raises ConfigError for an invalid option, and warns about an
    unknown one.
    """
    check_options(options)
    typed = Options(dict(options))
    clock = clock or SystemClock()
    engine = engine or LocalEngine()
    storage = storage or open_storage(uri, typed)
    owner = f"eventide {socket.gethostname()} {getpid()} {uuid4()}"
    lock = lock or open_lock(typed.get(LOCK_PROVIDER), storage, typed, clock, owner)
    heartbeats = FileHeartbeats(storage, typed, owner=new_uuid(), host=socket.gethostname(), pid=getpid())
    tracer = tracer or open_tracer()
    return Application(storage, TracedLock(lock, tracer), heartbeats, engine, clock, typed, new_uuid, tracer)


def _open_source(options: Options, source: "DeclaredSource") -> "ArrivalSource":
    from eventide.formatting import MaskedSource, masking
    from eventide_adapters.arrival.open import open_source

    secrets = secrets_in({**options.values, **source.settings}.items())
    with masking(secrets):
        return MaskedSource(open_source(source, options), secrets)


def _table_files(storage: Storage, engine: Engine, clock: Clock, options: Options, tracer: Tracer) -> TableFiles:
    from eventide_adapters.format.metadata_table.table import HudiMetadataTable
    from eventide_adapters.format.timeline.codec import HudiMetadataCodec

    return TableFiles(
        storage,
        HudiMetadataCodec(),
        HudiMetadataTable(storage, engine),
        _archived_timeline,
        # On threads from the first request if the storage is a server.
        Requests((LocalEngine if storage.is_remote else RequestEngine)(_REQUESTS_AT_ONCE)),
        clock,
        tracer,
        _delete_marker(options),
        mergers_of(options),
        event_time_texts(options),
    )


def _archived_timeline(storage: Storage, config: TableConfig) -> ArchivedTimeline:
    from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline

    return open_archived_timeline(storage, config)


def _delete_marker(options: Options) -> DeleteMarker | None:
    name, value = options.get(DELETE_FIELD), options.get(DELETE_MARKER)
    if name is None and value is None:
        return None
    if name is None or value is None:
        raise ConfigError(f"options {DELETE_FIELD} and {DELETE_MARKER} belong together: set both or neither")
    return DeleteMarker(name, value)

"""The composition root: builds storage, lock, codec, engine, and the use cases over them from a URI and options.

The only module that knows both a service and an adapter.
"""

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import getpid
from uuid import uuid4

from eventide.catalog import open_catalog
from eventide.compaction_request import tag_schedule
from eventide.engine_local import LocalEngine
from eventide.options.queries import DELETE_FIELD, DELETE_MARKER
from eventide.options.sections import warn_of_unknown_options
from eventide_adapters.format.base_file.event_times import ParquetBaseContent
from eventide_adapters.format.merge.change_reader import ArrowChangeReader
from eventide_adapters.format.merge.content_audit import ArrowContentAudit
from eventide_adapters.format.merge.log_content import ArrowLogContent
from eventide_adapters.format.merge.record_mergers import mergers_of
from eventide_adapters.format.merge.slice_merger import ArrowSliceMerger
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.metadata_table.table import HudiMetadataTable
from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.lock.heartbeats import FileHeartbeats
from eventide_adapters.lock.open import open_lock
from eventide_adapters.metrics.open import open_sink
from eventide_adapters.storage.open import open_storage
from eventide_core.config import LOCK_PROVIDER, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import BaseContent, Clock, Engine, Heartbeats, MetricsSink, Storage, TableLock, Unreported
from eventide_core.service.compaction.compact_slice import SliceCompactor
from eventide_core.service.compaction.draft import CompactionDrafter
from eventide_core.service.compaction.pending import PendingCompactions
from eventide_core.service.compaction.replan import Replanner
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.compaction.schedule import CompactionScheduler
from eventide_core.service.compaction.slice_facts import SliceFactsReader
from eventide_core.service.compaction.split_judge import SplitJudge
from eventide_core.service.facts.freshness import FreshnessReader
from eventide_core.service.facts.log_facts import LogFactsReader
from eventide_core.service.maintenance.archive import Archiver
from eventide_core.service.maintenance.clean import Cleaner
from eventide_core.service.maintenance.metadata_rebuild import MetadataRebuilder
from eventide_core.service.maintenance.sync import CatalogSync
from eventide_core.service.query.offending_records import OffendingRecordsReader
from eventide_core.service.query.read import QueryService
from eventide_core.service.repair.repair import Repairer
from eventide_core.service.rollback.instant import Rollback
from eventide_core.service.rollback.restore import Restorer
from eventide_core.service.rollback.savepoint import Savepoints
from eventide_core.service.rollback.watermark_tags import WatermarkTags
from eventide_core.service.state.liveness import Liveness
from eventide_core.service.state.metadata_table import MetadataTableUpkeep
from eventide_core.service.state.ownership import Ownership
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.service.verification.facts import FactsReader
from eventide_core.service.verification.records import RecordsReader
from eventide_core.service.verification.verify import Verifier
from eventide_core.service.write.append import Append
from eventide_core.service.write.batch import BatchWriter
from eventide_core.table.record_shape import DeleteMarker

# Requests to storage, such as listing a directory or reading a commit, take about 20 ms each.
_QUESTIONS_AT_ONCE = 16


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def sleep(self, milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    def local_offset_ms(self) -> int:
        return time.localtime().tm_gmtoff * 1000


@dataclass(frozen=True, slots=True)
class Application:
    """The use cases over one table. `engine` runs their tasks."""

    storage: Storage
    files: TableFiles
    scheduler: CompactionScheduler
    runner: CompactionRunner
    pending: PendingCompactions
    rollback: Rollback
    cleaner: Cleaner
    archiver: Archiver
    savepoints: Savepoints
    watermark_tags: WatermarkTags
    restorer: Restorer
    append: Append
    batches: BatchWriter
    queries: QueryService
    offending: OffendingRecordsReader
    freshness: FreshnessReader
    verifier: Verifier
    repairer: Repairer
    sync: CatalogSync
    metadata: MetadataTableUpkeep
    metadata_rebuilder: MetadataRebuilder
    reader: ArrowSliceReader
    change_reader: ArrowChangeReader
    bases: BaseContent
    metrics: MetricsSink | Unreported | None
    engine: Engine
    clock: Clock
    options: Options

    def state(self) -> TableState:
        """The current settings, timeline and file slices."""
        return TableState.load(self.files)


def assemble(
    uri: str,
    options: Mapping[str, str],
    *,
    engine: Engine | None = None,
    storage: Storage | None = None,
    lock: TableLock | None = None,
    clock: Clock | None = None,
    new_uuid: Callable[[], str] = lambda: str(uuid4()),
) -> Application:
    """The use cases over the table at `uri`. Ports that are not passed are built from the URI and the options.

    `new_uuid` names new file groups and this process. Raises ConfigError for an invalid option, and warns about an
    unknown one.
    """
    warn_of_unknown_options(options)
    typed = Options(dict(options))
    clock = clock or SystemClock()
    engine = engine or LocalEngine()
    storage = storage or open_storage(uri, typed)
    owner = f"eventide {socket.gethostname()} {getpid()} {uuid4()}"
    lock = lock or open_lock(typed.get(LOCK_PROVIDER), storage, typed, clock, owner)
    heartbeats = FileHeartbeats(storage, typed, owner=new_uuid(), host=socket.gethostname(), pid=getpid())
    return _application(storage, lock, heartbeats, engine, clock, typed, new_uuid)


def _application(
    storage: Storage,
    lock: TableLock,
    heartbeats: Heartbeats,
    engine: Engine,
    clock: Clock,
    typed: Options,
    new_uuid: Callable[[], str],
) -> Application:
    files = _table_files(storage, engine, clock, typed)
    content, audit = ArrowLogContent(storage), ArrowContentAudit(storage)
    facts = LogFactsReader(content, engine)
    freshness = FreshnessReader(content, facts, engine, typed)
    metadata = MetadataTableUpkeep(storage, files.metadata_table, typed)
    liveness = Liveness(storage, heartbeats, clock, typed)
    ownership = Ownership(lock, heartbeats, liveness)
    splits = SplitJudge(content, engine)
    runner = _compaction_runner(files, SliceFactsReader(facts, typed), splits, freshness, metadata, ownership, engine)
    rollback = Rollback(files, metadata, lock, heartbeats, clock, typed)
    cleaner = Cleaner(files, metadata, rollback, lock, heartbeats, clock, typed)
    append = Append(files, metadata, rollback, lock, heartbeats, clock, typed, new_uuid)
    savepoints = Savepoints(files, lock, clock)
    verifier = Verifier(
        files, FactsReader(files, freshness, audit, engine, liveness, typed), RecordsReader(audit, engine)
    )
    return Application(
        storage=storage,
        files=files,
        scheduler=runner.scheduler,
        runner=runner,
        pending=PendingCompactions(files, runner, rollback, clock, typed),
        rollback=rollback,
        cleaner=cleaner,
        archiver=Archiver(files, cleaner, lock, clock, typed),
        savepoints=savepoints,
        watermark_tags=WatermarkTags(savepoints, tag_schedule(typed)),
        restorer=Restorer(files, metadata, lock, heartbeats, clock, typed),
        append=append,
        batches=BatchWriter(files, append),
        queries=QueryService(files),
        offending=OffendingRecordsReader(files, content, typed),
        freshness=freshness,
        verifier=verifier,
        repairer=Repairer(files, verifier, audit, runner, lock, clock),
        sync=CatalogSync(files, freshness, lambda: open_catalog(typed, engine), typed),
        metadata=metadata,
        metadata_rebuilder=MetadataRebuilder(files, files.metadata_table, lock, clock),
        reader=ArrowSliceReader(storage),
        change_reader=ArrowChangeReader(storage),
        bases=ParquetBaseContent(storage),
        metrics=open_sink(typed),
        engine=engine,
        clock=clock,
        options=typed,
    )


def _table_files(storage: Storage, engine: Engine, clock: Clock, options: Options) -> TableFiles:
    return TableFiles(
        storage,
        HudiMetadataCodec(),
        HudiMetadataTable(storage, engine),
        open_archived_timeline,
        LocalEngine(_QUESTIONS_AT_ONCE),
        clock,
        _delete_marker(options),
        mergers_of(options),
    )


def _compaction_runner(
    files: TableFiles,
    slice_facts: SliceFactsReader,
    splits: SplitJudge,
    freshness: FreshnessReader,
    metadata: MetadataTableUpkeep,
    ownership: Ownership,
    engine: Engine,
) -> CompactionRunner:
    """The services that plan and run compactions."""
    storage, lock, clock, options = files.storage, ownership.lock, files.clock, metadata.options
    merger = ArrowSliceMerger(storage)
    drafter = CompactionDrafter(files, splits, slice_facts, freshness, metadata, clock, options)
    return CompactionRunner(
        files,
        CompactionScheduler(files, drafter, merger, engine, lock, clock, options),
        Replanner(slice_facts, splits),
        freshness,
        metadata,
        SliceCompactor(storage, merger),
        engine,
        ownership,
        lock,
        clock,
        options,
    )


def _delete_marker(options: Options) -> DeleteMarker | None:
    name, value = options.get(DELETE_FIELD), options.get(DELETE_MARKER)
    if name is None and value is None:
        return None
    if name is None or value is None:
        raise ConfigError(f"options {DELETE_FIELD} and {DELETE_MARKER} belong together: set both or neither")
    return DeleteMarker(name, value)

"""What all use cases of a table stand on: its ports, its files, and the readers of their content."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from eventide.engine_local import LocalEngine, RequestEngine
from eventide.options.compaction_request import tag_schedule
from eventide.options.queries import DELETE_FIELD, DELETE_MARKER
from eventide_adapters.format.encoding.columns.time_patterns import event_time_texts
from eventide_adapters.format.slice.merge.record_mergers import mergers_of
from eventide_adapters.metrics.open import open_sink
from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.access.requests import Requests
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import ArchivedTimeline, Clock, Engine, Heartbeats, Storage, TableLock, Tracer
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.records.record_shape import DeleteMarker
from eventide_core.table.settings.table_config import TableConfig

if TYPE_CHECKING:
    from eventide_adapters.format.slice.comparison.change_reader import ArrowChangeReader
    from eventide_adapters.format.slice.comparison.content_audit import ArrowContentAudit
    from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
    from eventide_core.ports import BaseContent, LogContent
    from eventide_core.service.common.state.liveness import Liveness


# Requests to storage, such as listing a directory or reading a commit, take about 20 ms each.
_REQUESTS_AT_ONCE = 16


@dataclass(eq=False, repr=False)
class Foundation:
    """The ports of one table and its files. `engine` runs tasks. Raises ConfigError for an invalid option."""

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
    def reader(self) -> "ArrowSliceReader":
        from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader

        return ArrowSliceReader(self.storage)

    @cached_property
    def change_reader(self) -> "ArrowChangeReader":
        from eventide_adapters.format.slice.comparison.change_reader import ArrowChangeReader

        return ArrowChangeReader(self.storage)

    @cached_property
    def bases(self) -> "BaseContent":
        from eventide_adapters.format.slice.base_file.event_times import ParquetBaseContent

        return ParquetBaseContent(self.storage)

    @cached_property
    def _uuid(self) -> str:
        return self.new_uuid()

    @cached_property
    def _log_content(self) -> "LogContent":
        from eventide_adapters.format.slice.log_content.content import ArrowLogContent

        return ArrowLogContent(self.storage)

    @cached_property
    def _content_audit(self) -> "ArrowContentAudit":
        from eventide_adapters.format.slice.comparison.content_audit import ArrowContentAudit

        return ArrowContentAudit(self.storage)

    @cached_property
    def _liveness(self) -> "Liveness":
        from eventide_core.service.common.state.liveness import Liveness

        return Liveness.of(self.storage, self.heartbeats, self.clock, self.options)


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

"""Describes the current table, as text and as JSON: settings, timeline, slices, pending actions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eventide.bootstrap import Application
from eventide_core.config import EVENT_TIME_FIELD, LOCK_PROVIDER
from eventide_core.errors import ConfigError, EventideError, UnsupportedTableError
from eventide_core.service.common.facts.event_time_field import are_stats_proof, event_time_field_of, zone_notes
from eventide_core.service.common.state.single_writers import single_writer_note, writes_of_single_writers
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.settings.metadata_table import MetadataTableStatus
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant

_DEFAULT_LOCK = "FileSystemBasedLockProvider"


@dataclass(frozen=True, slots=True)
class TableDescription:
    """A table at one moment.

    `state` has the settings, the timeline and the file slices, as one load found them. `event_time_field` is None if neither
    the table nor an option names it. `facts` are of the log files of the latest slices, by path; `problems` states why
    a log file has none. `plans` are the pending compactions', by instant. `single_writers` are open writes whose
    writers expect to be the only writer. `metadata_table` is None if the table has none. `unused_lock` is the lock provider
    that the table's settings name but the options don't. `zone_notes` state how event times are read, if the table doesn't.
    """

    uri: str
    state: TableState = field(repr=False)
    event_time_field: str | None
    facts: Mapping[str, LogFacts] = field(repr=False)
    problems: Mapping[str, str]
    plans: Mapping[str, CompactionPlan | ForeignPlan]
    single_writers: tuple[Instant, ...] = ()
    metadata_table: MetadataTableStatus | None = None
    unused_lock: str | None = None
    zone_notes: tuple[str, ...] = ()

    @property
    def file_slices(self) -> tuple[FileSlice, ...]:
        """The slices that a query reads now."""
        return self.state.view.latest_slices()

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the table's writers, and about its event times."""
        alone = (*map(single_writer_note, self.single_writers), *self.zone_notes)
        if self.unused_lock is None:
            return alone
        lock = f"hoodie.properties names the lock {self.unused_lock}: writes are refused until {LOCK_PROVIDER} is set"
        return (*alone, lock)

    def to_json(self) -> dict[str, Any]:
        """The description as plain values. Event times are in epoch milliseconds, sizes in bytes."""
        config = self.state.config
        return {
            "table": {
                "uri": self.uri,
                "name": config.name,
                "version": config.version,
                "type": "COPY_ON_WRITE" if config.is_copy_on_write else "MERGE_ON_READ",
                "merge_mode": str(config.merge_rule),
                "payload_class": config.payload_class,
                "record_key_fields": list(config.record_key_fields),
                "partition_fields": list(config.partition_fields),
                "ordering_fields": list(config.ordering_fields),
                "event_time_field": self.event_time_field,
                "event_time_texts": dict(config.event_time_texts.settings),
                "metadata_partitions": list(config.metadata_partitions),
                "metadata_delta_commits": None if self.metadata_table is None else self.metadata_table.delta_commits,
                "metadata_last_compaction": None
                if self.metadata_table is None
                else self.metadata_table.last_compaction,
                "cut_ms": self.state.cut_ms,
            },
            "timeline": [_instant(instant) for instant in self.state.timeline.instants],
            "file_slices": [self._slice(file_slice) for file_slice in self.file_slices],
            "pending": [self._pending(instant) for instant in self.state.timeline.pending],
            "single_writers": [write.requested_time for write in self.single_writers],
            "notes": list(self.notes),
        }

    def _slice(self, file_slice: FileSlice) -> dict[str, Any]:
        base = file_slice.base_file
        return {
            "partition": file_slice.partition,
            "file_id": file_slice.file_id,
            "base_instant": file_slice.base_instant,
            "base_file": None if base is None else {"path": base.path, "size": base.size},
            "log_files": [self._log(log) for log in file_slice.log_files],
        }

    def _log(self, log: LogFile) -> dict[str, Any]:
        fact = self.facts.get(log.path)
        return {
            "path": log.path,
            "size": log.size,
            "min_event_time_ms": None if fact is None else fact.event_times.min_ms,
            "max_event_time_ms": None if fact is None else fact.event_times.max_ms,
            "unknown_event_time_records": None if fact is None else fact.event_times.unknown_records,
            "unreadable_event_time_records": None if fact is None else fact.event_times.unreadable_records,
            "deletes": None if fact is None else fact.delete_count,
            "problem": self.problems.get(log.path),
        }

    def _pending(self, instant: Instant) -> dict[str, Any]:
        about: dict[str, Any]
        match self.plans.get(instant.requested_time):
            case CompactionPlan() as plan:
                about = {"scheduled_by_eventide": True, "cut_ms": plan.cut_ms, "slices": len(plan.operations)}
            case ForeignPlan() as plan:
                about = {"scheduled_by_eventide": False, "cut_ms": None, "slices": len(plan.file_groups)}
            case None:
                about = {"scheduled_by_eventide": None, "cut_ms": None, "slices": None}
        return {**_instant(instant), **about}


def describe(application: Application) -> TableDescription:
    """The table as it is now. A log file that cannot be read is a problem to report, not an error.

    Raises UnsupportedTableError if the last log file of a slice holds what eventide doesn't read.
    """
    files = application.files
    state = TableState.load(files)
    logs = [log for file_slice in state.view.latest_slices() for log in file_slice.log_files]
    try:
        field = event_time_field_of(state, application.options)
    except ConfigError:
        field = None
    facts: dict[str, LogFacts] = {}
    problems: dict[str, str] = {}
    errors = _error_of_last(application, state, logs)
    if field is None:
        problems = dict.fromkeys((log.path for log in logs), f"the event-time field is unknown: set {EVENT_TIME_FIELD}")
    elif logs:
        shape = state.shape(field)
        proof = are_stats_proof(shape, application.options, state.config.properties)
        facts, read_errors = application.freshness.facts.read_each(state, shape, logs, are_stats_proof=proof)
        errors |= read_errors
    for error in errors.values():
        if isinstance(error, UnsupportedTableError):
            raise error
    problems |= {path: str(error) for path, error in errors.items()}
    plans = {
        instant.requested_time: files.plan(state.config, instant.requested_time)
        for instant in state.timeline.pending
        if instant.action is Action.COMPACTION
    }
    alone = writes_of_single_writers(files, state.config, state.timeline)
    metadata_table = files.metadata_table.load().facts.status if state.config.metadata_partitions else None
    lock = state.config.properties.get(LOCK_PROVIDER)
    is_used = lock is None or application.options.get(LOCK_PROVIDER) is not None or lock.endswith(_DEFAULT_LOCK)
    unused_lock = None if is_used else lock
    return TableDescription(
        files.storage.root,
        state,
        field,
        facts,
        problems,
        plans,
        alone,
        metadata_table,
        unused_lock,
        zone_notes(state, application.options),
    )


def _error_of_last(application: Application, state: TableState, logs: Sequence[LogFile]) -> dict[str, EventideError]:
    """The error that merging the last log file would raise. The last log file shows what writers currently write."""
    if not logs:
        return {}
    last = max(logs, key=lambda log: log.name.reader_order)
    try:
        application.freshness.facts.check([(last,)], state.blocks(), state.shape(None))
    except EventideError as error:
        return {last.path: error}
    return {}


def _instant(instant: Instant) -> dict[str, Any]:
    return {
        "requested_time": instant.requested_time,
        "action": str(instant.action),
        "state": str(instant.state),
        "completion_time": instant.completion_time,
    }

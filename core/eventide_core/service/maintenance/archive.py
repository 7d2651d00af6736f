"""Archives a table's old instants, so that the active timeline stays short.

Order of writes, all inside the table lock, and what a crash after each leaves:

1. The archived timeline gets the instants. So every reader finds each of them in at least one place.
2. Oldest first: an instant's requested and inflight files, then its completed file. A crash leaves instants in both places,
   of which the active one counts; the next archival finds that they are archived, and removes them.
3. Small files of the archived timeline are merged (its adapters state the order of writes). A crash loses no instant.
4. The same for the timeline of Hudi's metadata table.
5. The outcomes of compactions that are no longer needed are removed, in any order: see `settled_outcomes`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eventide_core import config as keys
from eventide_core.access.timeline_files import TimelineFiles, delete_each
from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.action.maintenance.archive_planner import (
    ArchiveFacts,
    ArchiveTerms,
    bounds_of_metadata_table,
    instants_to_archive,
)
from eventide_core.action.metadata_table.compaction import earliest_needed
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import ArchivedAction, ArchivedFile, ArchivedTimeline, FileInfo, Lease, TableLock
from eventide_core.service.common.facts.arrival import mark_sources
from eventide_core.service.common.facts.stray_files import stray_files
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.outcome import settled_outcomes
from eventide_core.service.maintenance.clean import Cleaner
from eventide_core.service.rollback.savepoint import settled_state
from eventide_core.table.property_keys import CREATE_SCHEMA
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import MergeLimits
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.instant import Action, Instant, State

_LEVEL_BYTES_MAX = 128 * 1024**2  # a merge holds the merged file in memory; Hudi's limit is 1 GB
_WITHOUT_SCHEMA = frozenset(("CLUSTER", "COMPACT", "INDEX", "LOG_COMPACT"))
"""The operations whose commits Hudi doesn't ask for the table's schema."""
_STEPS = (State.REQUESTED, State.INFLIGHT, State.COMPLETED)
_States = Mapping[tuple[str, bool], list[tuple[Instant, FileInfo]]]


@dataclass(frozen=True, slots=True)
class Archiver:
    files: TableFiles
    cleaner: Cleaner
    lock: TableLock
    options: Options

    def archive(self) -> tuple[str, ...]:
        """Archives the instants that may be archived. Returns their requested times, oldest first.

        Raises ConfigError for options that contradict each other, BusyError while a rollback or restore is under way.
        """
        terms = self._terms()
        with self.lock.acquire() as lease:
            state = settled_state(self.files, lease)
            check_undoing(state.timeline)
            chosen = instants_to_archive(self._facts(state), terms)
            for (
                instant
            ) in chosen:  # also what another engine's commits say of sources is looked for in the archive then
                known = state.commits.get(instant.requested_time)
                if known is not None and mark_sources(self.files, known.extra_metadata):
                    break
            self._move(state.config.timeline_path, state.archive, chosen, lease)
            self._archive_metadata_table(state.config, terms, lease)
            self._remove_outcomes(state, lease)
        return tuple(instant.requested_time for instant in chosen)

    def _archive_metadata_table(self, config: TableConfig, terms: ArchiveTerms, lease: Lease) -> None:
        """Archives the metadata table's own timeline, which by Hudi's rule keeps one more write than the table's."""
        if (
            not config.metadata_partitions
            or self.options.get(keys.METADATA_TABLE) is not keys.MetadataTableChoice.UPDATE
        ):
            return
        own = self.files.metadata_table.load()
        timeline = own.facts.timeline
        if len(timeline.writes) <= terms.max_commits + 1:
            return
        followed = bounds_of_metadata_table(self.files.timeline(config), is_beyond_savepoint=terms.is_beyond_savepoint)
        compactions = [i.requested_time for i in timeline.completed if i.action is Action.COMMIT]
        slices = (s for name in own.facts.partitions for kept in own.view(name).slices.values() for s in kept)
        facts = ArchiveFacts(timeline, (earliest_needed(own.facts, slices), *followed), compactions)
        own_terms = replace(
            terms,
            min_commits=terms.min_commits + 1,
            max_commits=terms.max_commits + 1,
            max_delta_commits=self.options.get(keys.METADATA_COMPACT_AFTER),
        )
        self._move(own.timeline_path, own.archive, instants_to_archive(facts, own_terms), lease)

    def _move(self, path: str, archive: ArchivedTimeline, chosen: Sequence[Instant], lease: Lease) -> None:
        """Moves the instants from the active timeline at `path` to the archived one."""
        if not chosen:
            return
        states = self._listed(path)
        lease.check()
        archive.append([self._action(i, states) for i in chosen], lease)
        for instant in chosen:
            for _, entry in states.get(_family(instant), ()):
                lease.check()
                self.files.storage.delete(entry.path)
        archive.merge(self._merge_limits(), lease)

    def _remove_outcomes(self, state: TableState, lease: Lease) -> None:
        """`state` is from before the archival: it has the metadata of what has just been archived."""

        def publishes(instant: str) -> bool:
            write = None if instant in state.commits else state.archive.find(instant)
            commit = state.commits.get(instant) or (None if write is None else state.commit(write))
            publication = None if commit is None else CompactionExtraMetadata.of(instant, commit)
            return publication is not None and publication.has_cut

        timeline = self.files.timeline(state.config)
        in_use = {file.parsed.instant for file in state.listing if file.parsed is not None}
        now_ms = self.files.clock.now_ms()
        delete_each(
            self.files.storage, settled_outcomes(self.files.storage, timeline, in_use, now_ms, publishes), lease
        )

    def _merge_limits(self) -> MergeLimits:
        merges = self.options.get(keys.ARCHIVE_MERGE)
        return MergeLimits(
            level_files=self.options.get(keys.ARCHIVE_LEVEL_FILES),
            level_bytes_max=_LEVEL_BYTES_MAX,
            log_files=self.options.get(keys.ARCHIVE_MERGE_FILES) if merges else None,
            small_log_bytes_max=self.options.get(keys.ARCHIVE_SMALL_FILE_BYTES),
        )

    def _terms(self) -> ArchiveTerms:
        least = self.options.get(keys.ARCHIVE_MIN_COMMITS)
        most = self.options.get(keys.ARCHIVE_MAX_COMMITS)
        if not 0 < least < most:
            raise ConfigError(
                f"options {keys.ARCHIVE_MIN_COMMITS}={least} and {keys.ARCHIVE_MAX_COMMITS}={most}: the first "
                "must be at least 1, and less than the second"
            )
        return ArchiveTerms(
            min_commits=least,
            max_commits=most,
            is_beyond_savepoint=self.options.get(keys.ARCHIVE_BEYOND_SAVEPOINT),
            max_delta_commits=max(1, self.options.get(keys.MAX_DELTA_COMMITS)),
        )

    def _facts(self, state: TableState) -> ArchiveFacts:
        retained = self.cleaner.earliest_retained(state)
        replaced = {time for group, time in state.replaced_at.items() if group in state.view.slices}
        return ArchiveFacts(
            timeline=state.timeline,
            bounds={*retained, *replaced, *_sources_of_schema(state)},
            compactions=[time for time, metadata in state.commits.items() if metadata.is_compacted],
            strays=frozenset(stray_files(self.files, state).values()),
            earliest_retained=min(retained, default=None),
            followed_until=self._last_compaction_of_metadata_table(state.config),
        )

    def _last_compaction_of_metadata_table(self, config: TableConfig) -> str | None:
        """Its instant, empty if there was none; None without a metadata table.

        Readers of Hudi's metadata table ask the table's active timeline which log files since then count.
        """
        if not config.metadata_partitions:
            return None
        return self.files.metadata_table.load().facts.last_compaction

    def _listed(self, timeline_path: str) -> _States:
        """The timeline's files by instant, in the order of their states."""
        states: dict[tuple[str, bool], list[tuple[Instant, FileInfo]]] = {}
        entries = TimelineFiles(self.files.storage, timeline_path).entries()
        for instant, entry in sorted(entries, key=lambda pair: _STEPS.index(pair[0].state)):
            states.setdefault(_family(instant), []).append((instant, entry))
        return states

    def _action(self, completed: Instant, states: _States) -> ArchivedAction:
        files = tuple(
            ArchivedFile(instant, self.files.storage.read(entry.path), entry.modified_ms)
            for instant, entry in states.get(_family(completed), ())
        )
        return ArchivedAction(completed, files)


def _sources_of_schema(state: TableState) -> list[str]:
    """The write from which Hudi's readers have the table's schema; none if the table's properties state the same one.

    They ask the last commit that isn't of a table service, else the properties, else a file of the last commit with files.
    Without any, they show no row.
    """
    created, known = state.config.properties.get(CREATE_SCHEMA), state.known_schema
    if created and known is not None and AvroSchema.of(created).without_meta_fields().parsed == known.parsed:
        return []
    commits = [(i.requested_time, state.commits[i.requested_time]) for i in state.timeline.writes]
    stating = [t for t, commit in commits if commit.schema and commit.operation_type not in _WITHOUT_SCHEMA]
    with_files = [] if created else [time for time, commit in commits if commit.stats]
    return sorted([*stating, *with_files])[-1:]


def _family(instant: Instant) -> tuple[str, bool]:
    """A savepoint's files are separate from its commit's."""
    return instant.requested_time, instant.action is Action.SAVEPOINT

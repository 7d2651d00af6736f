"""Repairs a table: verifies it, plans the repairs of what was found, and applies them, each with a backup.

One repair may make visible what another one has to repair: a timeline that can be read again shows the file slices. So the
table is verified again after each pass, until nothing is left that can be repaired. A pass happens under the table lock,
except for a compaction that is run again: to everyone else, it is a pending compaction of eventide. The metadata table comes
last: a rebuild takes the lock itself. A repair that died before its end is completed by the next one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from eventide_core.access.block_headers import block_headers
from eventide_core.action.repair.planner import plan_repairs
from eventide_core.action.repair.repairs import (
    BACKUP_DIRECTORY,
    Change,
    Copying,
    HistoryRebuilding,
    PlannedChange,
    Rebuilding,
    Remerging,
    Removal,
    Repair,
    RepairPlan,
    Replacement,
    RollbackRebuilding,
    SettingsChange,
    Truncation,
    Unrepaired,
)
from eventide_core.action.verification.checks import CHECKS
from eventide_core.action.verification.result import Verification
from eventide_core.errors import (
    BusyError,
    ConfigError,
    CorruptBaseFileError,
    CorruptLogBlockError,
    CorruptTimelineError,
    EventideError,
    NothingToDoError,
    RefusedError,
    StorageError,
)
from eventide_core.ports import ArchivedAction, ArchivedFile, Clock, ContentAudit, Lease, Progress, TableLock
from eventide_core.service.common.facts.planning import instant_beyond
from eventide_core.service.common.metadata_table.rebuild import MetadataRebuilder
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.outcome import instants_with_outcome
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.repair.backup import RepairBackup, backups_of
from eventide_core.service.repair.remerge import merged_again
from eventide_core.service.verification.verify import Verifier
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.log_block import BlockType
from eventide_core.table.settings.properties import settings_text, with_settings
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.contents.rollback_metadata import RollbackMetadata
from eventide_core.table.timeline.instant import Action, Instant, State

_PASSES_MAX: Final = 6  # late instants, timeline, files, compactions, metadata table; and one more
_COUNT_OFFSET: Final = 4  # an Avro block's content begins with its version, then the number of records


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What was repaired or, in a dry run, would be. `backups` are the instants of the backups that hold what was changed.

    `repairs` are in the order in which they were made, `unrepaired` the damage that is left. `completed` is an interrupted
    repair that this one completed first. `verification` is that after the last repair.
    """

    repairs: tuple[Repair, ...]
    unrepaired: tuple[Unrepaired, ...]
    backups: tuple[str, ...]
    verification: Verification
    completed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoneRepair:
    """The repair at `instant`, and the files that are as they were before it: `paths` from the table's root."""

    instant: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repairer:
    files: TableFiles
    verifier: Verifier
    audit: ContentAudit
    runner: CompactionRunner
    rebuilder: MetadataRebuilder
    lock: TableLock
    clock: Clock

    def plan(self, checks: Sequence[str], *, is_deep: bool, progress: Progress) -> RepairResult:
        """What a repair of these checks' findings would do; of all checks if none is named. Writes nothing.

        Raises ConfigError for an unknown check.
        """
        wanted = _known(checks)
        plan, verification = self._planned(wanted, is_deep, progress)
        return RepairResult(plan.repairs, plan.unrepaired, (), verification)

    def apply(self, checks: Sequence[str], *, is_deep: bool, progress: Progress) -> RepairResult:
        """Completes an interrupted repair or undo, then repairs. Raises ConfigError; RefusedError, LockError."""
        wanted = _known(checks)
        with self.lock.acquire() as lease:
            completed = tuple(self._complete(lease))
        for backup in self._backups():
            if not backup.is_undone:
                self._run_again(backup, progress)
                self._rebuild(backup)
        repairs: list[Repair] = []
        backups: list[str] = []
        for _ in range(_PASSES_MAX):
            with self.lock.acquire() as lease:
                plan, verification = self._planned(wanted, is_deep, progress)
                if not plan.repairs:
                    break
                backup = RepairBackup(self.files.storage, self._unused_instant())
                now = _first(plan.repairs)
                reruns = sorted({repair.rerun for repair in now if repair.rerun is not None})
                rebuilt = next((r.rebuilt_indexes for r in now if r.rebuilt_indexes is not None), None)
                backup.begin(
                    _changes(now), [repair.described() for repair in now], reruns, lease, rebuilt_indexes=rebuilt
                )
                backup.apply(lease)
                self.files.forget()
            repairs += now
            self._run_again(backup, progress)
            self._rebuild(backup)
            backups.append(backup.instant)
        else:
            plan, verification = self._planned(wanted, is_deep, progress)
        return RepairResult(tuple(repairs), plan.unrepaired, tuple(backups), verification, completed)

    def undo(self, instant: str | None = None) -> UndoneRepair:
        """Undoes the repair at that instant, or the latest one.

        Raises NothingToDoError if there is none, and RefusedError if an action has begun on the timeline since, or a file
        has been changed by someone else.
        """
        with self.lock.acquire() as lease:
            known = [b for b in self._backups() if b.can_be_undone and instant in (None, b.instant)]
            if not known:
                which = "" if instant is None else f" {instant}"
                raise NothingToDoError(f"{self.files.storage.root} has no repair{which} to undo")
            backup = known[-1]
            self._check_nothing_since(backup.instant)
            undone = UndoneRepair(backup.instant, backup.undo(lease))
            self.files.forget()
            return undone

    def _run_again(self, backup: RepairBackup, progress: Progress) -> None:
        """Runs the repair's compactions that are still pending. If one fails, undoes the repair, and raises."""
        pending = {i.requested_time for i in self.files.timeline(self.files.config()).pending_plans}
        for instant in backup.reruns:
            if instant not in pending:
                continue
            try:
                self.runner.execute(instant, progress)
            except EventideError as error:
                # A busy table or a failing storage leaves the compaction pending: the next repair runs it.
                if error.exit_code not in (BusyError.exit_code, StorageError.exit_code):
                    with self.lock.acquire() as lease:
                        backup.undo(lease, is_forced=True)
                raise

    def _rebuild(self, backup: RepairBackup) -> None:
        """Rebuilds the metadata table, if the repair has to and has not yet."""
        indexes = backup.indexes_to_rebuild
        if indexes is not None:
            self.rebuilder.rebuild(indexes)
            backup.end_rebuild()

    def _check_nothing_since(self, instant: str) -> None:
        timeline = self.files.timeline(self.files.config())
        later = [i.requested_time for i in timeline.instants if i.requested_time > instant]
        if later:
            raise RefusedError(
                f"the repair {instant} cannot be undone: {later[0]} began after it and may build on it; copy single files "
                f"from {BACKUP_DIRECTORY}/{instant}/before if you need them"
            )

    def _planned(self, checks: frozenset[str], is_deep: bool, progress: Progress) -> tuple[RepairPlan, Verification]:
        facts, verification = self.verifier.examine(is_deep=is_deep, progress=progress)
        plan = plan_repairs(facts, verification, checks, instants_with_outcome(self.files.storage))
        repairs: list[Repair] = []
        unrepaired = list(plan.unrepaired)
        for repair in plan.repairs:
            try:
                changes = tuple(chain.from_iterable(map(self._with_bytes, repair.changes)))
                repairs.append(replace(repair, changes=changes))
            except (CorruptTimelineError, CorruptBaseFileError, CorruptLogBlockError) as error:
                unrepaired.append(Unrepaired(repair.check, repair.path, repair.problem, str(error)))
        return RepairPlan(tuple(repairs), tuple(unrepaired)), verification

    def _complete(self, lease: Lease) -> Iterator[str]:
        for backup in self._backups():
            if backup.is_interrupted:
                if backup.is_undoing:
                    backup.undo(lease)
                else:
                    backup.complete(lease)
                self.files.forget()
                yield backup.instant

    def _backups(self) -> list[RepairBackup]:
        return backups_of(self.files.storage)

    def _unused_instant(self) -> str:
        config = self.files.config()
        taken = {*instants_with_outcome(self.files.storage), *(b.instant for b in self._backups())}
        return instant_beyond(self.files.timeline(config), taken, config, self.clock)

    def _with_bytes(self, change: PlannedChange) -> Iterator[Change]:
        """The changes, with the bytes of a file that is cut or merged again, or of what else is written again."""
        storage, path = self.files.storage, "" if isinstance(change, Remerging) else change.path
        time = path.rpartition("/")[2].partition(".")[0].partition("_")[0]
        match change:
            case Remerging():
                merger = self.runner.compact_slice.merger
                yield from merged_again(self.files, merger, self.runner.settings.codec, change)
            case HistoryRebuilding():
                actions = [self._archived(instant, metadata) for instant, metadata in sorted(change.commits.items())]
                yield Replacement(path, self.files.archive(self.files.config()).encode(actions))
            case SettingsChange():
                text = settings_text(storage.read_range, storage.root)
                yield Replacement(path, with_settings(text, change.values).encode())
            case Truncation(size=size):
                data = storage.read(path)
                if data[size:] not in data[:size]:
                    raise CorruptLogBlockError(
                        f"{path}: what follows byte {size} does not repeat what precedes it, so it may hold other records; "
                        "a person has to compare them"
                    )
                yield Replacement(path, data[:size])
            case RollbackRebuilding():
                done = RollbackMetadata.of_plan(self.files.rollback_plan(self.files.config(), time))
                yield Replacement(path, self.files.codec.encode_rollback(done, storage.root))
            case Rebuilding():
                yield Replacement(path, self._encoded(change.metadata, time))
            case _:
                yield change

    def _archived(self, time: str, metadata: CommitMetadata) -> ArchivedAction:
        """Readers take the requested time for a completion time that nobody knows."""
        done = Instant(time, Action.DELTA_COMMIT, State.COMPLETED, time)
        return ArchivedAction(done, (ArchivedFile(done, self._encoded(metadata, time), self.clock.now_ms()),))

    def _encoded(self, metadata: CommitMetadata, time: str) -> bytes:
        stats = {
            partition: tuple(self._counted(stat, time) for stat in of_partition)
            for partition, of_partition in metadata.write_stats.items()
        }
        return self.files.codec.encode_commit(replace(metadata, write_stats=stats), self.files.config().version)

    def _counted(self, stat: WriteStat, time: str) -> WriteStat:
        if BaseFileName.parse(stat.path.rpartition("/")[2]) is not None:
            rows = self.audit.row_count(stat.path)
            return stat._replace(num_writes=rows, num_inserts=rows)
        return stat._replace(num_writes=self._records(stat, time))

    def _records(self, stat: WriteStat, time: str) -> int:
        """The records in the Avro blocks that the write added to a log file. Raises CorruptTimelineError for others."""
        storage, records = self.files.storage, 0
        for block in block_headers(storage, stat.path, stat.file_size_bytes):
            if block.instant_time != time or block.block_type in (BlockType.DELETE, BlockType.COMMAND):
                continue
            if block.block_type is not BlockType.AVRO_DATA:
                raise CorruptTimelineError(
                    f"{stat.path}: the records of a {block.block_type.name} block are not counted"
                )
            records += int.from_bytes(storage.read_range(stat.path, block.content_offset + _COUNT_OFFSET, 4), "big")
        return records


def _known(checks: Sequence[str]) -> frozenset[str]:
    names = {check.name for check in CHECKS}
    for name in checks:
        if name not in names:
            raise ConfigError(f"there is no check {name!r}; there is {', '.join(sorted(names))}")
    return frozenset(checks)


def _first(repairs: Sequence[Repair]) -> tuple[Repair, ...]:
    """The repairs of a pass: changes of files, then compactions that run again, and last the metadata table."""
    of_files = tuple(repair for repair in repairs if repair.rerun is None and repair.rebuilt_indexes is None)
    return of_files or tuple(repair for repair in repairs if repair.rerun is not None) or tuple(repairs)


def _changes(repairs: Sequence[Repair]) -> list[Change]:
    """The changes in order; each file once."""
    changes: dict[str, Change] = {}
    for repair in repairs:
        for change in repair.changes:
            assert isinstance(change, (Removal, Replacement, Copying))
            changes.setdefault(change.path, change)
    return list(changes.values())

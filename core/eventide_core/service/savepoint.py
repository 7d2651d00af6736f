"""Keep the table as of a commit, or keep it no longer.

Order of writes, inside the table lock: `<t>.savepoint.inflight`, then the completed file with the names of all files of the
slices as of t. From then on nothing of them is cleaned, rolled back or archived. A crash in between leaves an inflight that
nobody heeds and that a second run completes. Deleting goes the other way round.
"""

from dataclasses import dataclass

from eventide_core.action.clean_planner import paths_of
from eventide_core.action.compaction_trigger import check_undoing
from eventide_core.errors import BusyError, InstantNotFoundError, RefusedError
from eventide_core.ports import Clock, TableLock
from eventide_core.service.history import check_history
from eventide_core.service.needed_files import savepoints_of
from eventide_core.service.planning_facts import unused_instant
from eventide_core.service.table import TableState
from eventide_core.service.table_files import TableFiles
from eventide_core.table.file_name import LogFileName
from eventide_core.table.instant import Action, Instant, State
from eventide_core.table.savepoint_metadata import SavepointMetadata


@dataclass(frozen=True, slots=True)
class Savepoints:
    files: TableFiles
    lock: TableLock
    clock: Clock

    def save(self, instant: str, *, comments: str = "") -> SavepointMetadata:
        """Keeps the table as of the completed write at `instant`; one that is kept already is answered as it is.

        Raises InstantNotFoundError; RefusedError where files of that time are gone; BusyError while a clean or a restore is
        under way.
        """
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            known = savepoints_of(self.files, state).get(instant)
            if known is not None:
                return known
            self._check(state, instant)
            metadata = SavepointMetadata("eventide", self.clock.now_ms(), comments, _files_as_of(state, instant))
            timeline = state.config.timeline_path
            inflight = Instant(instant, Action.SAVEPOINT, State.INFLIGHT)
            lease.check()
            self.files.storage.put_if_absent(f"{timeline}/{inflight.file_name}", b"")
            completion = unused_instant(state, self.clock) if state.config.slices_by_completion_time else None
            completed = Instant(instant, Action.SAVEPOINT, State.COMPLETED, completion)
            lease.check()
            self.files.storage.put_if_absent(
                f"{timeline}/{completed.file_name}", self.files.codec.encode_savepoint(metadata)
            )
            return metadata

    def delete(self, instant: str) -> None:
        """Keeps it no longer. Raises InstantNotFoundError, and BusyError while a restore is under way."""
        with self.lock.acquire() as lease:
            config = self.files.config()
            timeline = self.files.timeline(config)
            check_undoing(timeline)
            found = [i for i in timeline.instants if (i.action, i.requested_time) == (Action.SAVEPOINT, instant)]
            if not found:
                raise InstantNotFoundError(f"{self.files.storage.root}: there is no savepoint at {instant}")
            pending = (Instant(instant, Action.SAVEPOINT, step) for step in (State.INFLIGHT, State.REQUESTED))
            for step in (*found, *pending):
                lease.check()
                self.files.storage.delete(f"{config.timeline_path}/{step.file_name}")

    def _check(self, state: TableState, instant: str) -> None:
        check_undoing(state.timeline)
        cleaning = next((i for i in state.timeline.pending if i.action is Action.CLEAN), None)
        if cleaning is not None:
            raise BusyError(f"a clean is pending at {cleaning.requested_time}; end it with `clean`, then try again")
        found = state.timeline.find(instant)
        if found is None or found not in state.timeline.writes:
            what = "there is no instant" if found is None else f"there is a {found.state} {found.action}"
            raise InstantNotFoundError(
                f"{what} at {instant}; a savepoint keeps a completed write of the active timeline"
            )
        for replaced, time in state.replaced_at.items():
            if time > instant and replaced not in state.view.slices:
                raise RefusedError(f"files of {replaced[0]}/{replaced[1]} as of {instant} have been cleaned")
        check_history(state, instant)


def _files_as_of(state: TableState, instant: str) -> dict[str, tuple[str, ...]]:
    files: dict[str, tuple[str, ...]] = {}
    for found in state.view.latest_slices(instant):
        names = tuple(path.rpartition("/")[2] for path in paths_of(found))
        files[found.partition] = files.get(found.partition, ()) + tuple(
            name for name in names if not _is_later(state, name, instant)
        )
    return files


def _is_later(state: TableState, name: str, instant: str) -> bool:
    """Whether a log is later than the commit: from version 8 on its name says so, on version 6 a log of the slice stays."""
    log = LogFileName.parse(name)
    return state.config.slices_by_completion_time and log is not None and log.instant > instant

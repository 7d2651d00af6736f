"""Keeps the table as of a commit, optionally under a tag, or stops keeping it.

Order of writes, inside the table lock: `<t>.savepoint.inflight`, then the completed file with the names of all files of
the slices as of t. From then on nothing of them is cleaned, rolled back or archived. A crash in between leaves an
inflight that no process reads and that a second run completes. Deleting uses the reverse order.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.action.maintenance.clean_planner import paths_of
from eventide_core.action.maintenance.rollback_planner import check_cleaning
from eventide_core.errors import InstantNotFoundError, RefusedError, TagNotFoundError
from eventide_core.ports import Clock, TableLock
from eventide_core.service.facts.exact_view import ExactViews
from eventide_core.service.facts.history import check_history
from eventide_core.service.facts.needed_files import is_left_over_of_pending, savepoints_of
from eventide_core.service.facts.planning import unused_instant
from eventide_core.service.facts.watermark_views import base_files_of, last_write_of, view_as_of_watermark
from eventide_core.service.state.table import TableState
from eventide_core.service.state.table_files import TableFiles
from eventide_core.service.transaction.timeline_files import delete_each
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.savepoint_metadata import SavepointMetadata, comments_with_tag, remarks_with_exactness


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for the table as of the commit at `instant`, its requested time.

    `savepoint` keeps the files; its comments have the name.
    """

    name: str
    instant: str
    savepoint: SavepointMetadata


@dataclass(frozen=True, slots=True)
class Savepoints:
    files: TableFiles
    exact: ExactViews
    lock: TableLock
    clock: Clock

    def save(self, instant: str, *, comments: str = "", tag: str | None = None) -> SavepointMetadata:
        """Keeps the table as of the completed write at `instant`; one that is kept already is answered as it is.

        Raises InstantNotFoundError; ConfigError for a tag that is no name; RefusedError if files of that time are gone,
        the tag is another commit's, or the commit is kept without it already; BusyError while a clean or a restore is
        under way.
        """
        text = comments_with_tag(tag, comments)
        with self.lock.acquire() as lease:
            state = TableState.load(self.files)
            saved = savepoints_of(self.files, state)
            _check_tag(saved, instant, tag)
            known = saved.get(instant)
            if known is not None:
                return known
            self._check(state, instant)
            metadata = SavepointMetadata("eventide", self.clock.now_ms(), text, _files_as_of(state, instant))
            timeline = self.files.on_timeline(state.config)
            inflight = Instant(instant, Action.SAVEPOINT, State.INFLIGHT)
            timeline.put(inflight, lease)
            completion = unused_instant(state, self.clock) if state.config.layout.records_completion_times else None
            completed = Instant(instant, Action.SAVEPOINT, State.COMPLETED, completion)
            timeline.put(completed, lease, self.files.codec.encode_savepoint(metadata))
            return metadata

    def save_tag(self, name: str, *, instant: str | None, before_ms: int | None, comments: str) -> Tag:
        """Keeps the table under a name: as of `instant`, or its view as of watermark `before_ms`, or else as it is.

        Of a view, the tag states whether it holds nothing at or after T. Raises as `save` and `view_as_of_watermark` do.
        """
        if instant is None:
            state = TableState.load(self.files)
            if before_ms is None:
                if not state.timeline.writes:
                    raise InstantNotFoundError("nothing has been written yet, so there is nothing to keep")
                instant = state.timeline.writes[-1].requested_time
            else:
                view = view_as_of_watermark(state, before_ms)
                instant = last_write_of(state, view)
                field = state.cut_field or ""
                exactness = self.exact.of(base_files_of(state, view), field, before_ms)
                comments = remarks_with_exactness(comments, is_exact=exactness.is_exact)
        return Tag(name, instant, self.save(instant, comments=comments, tag=name))

    def tags(self) -> tuple[Tag, ...]:
        """The savepoints that have a tag, by it."""
        saved = savepoints_of(self.files, TableState.load_committed(self.files))
        return tuple(sorted(_tags(saved), key=lambda tag: tag.name))

    def tagged(self, name: str) -> Tag:
        """Raises TagNotFoundError, which names the tags there are."""
        return find_tag(self.files, TableState.load_committed(self.files), name)

    def delete_tag(self, name: str) -> str:
        """Deletes the savepoint with the tag; returns its instant. Raises TagNotFoundError, BusyError."""
        instant = self.tagged(name).instant
        self.delete(instant)
        return instant

    def delete(self, instant: str) -> None:
        """Deletes the savepoint. Raises InstantNotFoundError, and BusyError while a restore is in progress."""
        with self.lock.acquire() as lease:
            config = self.files.config()
            timeline = self.files.timeline(config)
            check_undoing(timeline)
            states = [i for i in timeline.instants if (i.action, i.requested_time) == (Action.SAVEPOINT, instant)]
            if not states:
                raise InstantNotFoundError(f"{self.files.storage.root}: there is no savepoint at {instant}")
            pending = (Instant(instant, Action.SAVEPOINT, step) for step in (State.INFLIGHT, State.REQUESTED))
            paths = map(self.files.on_timeline(config).path, (*states, *pending))
            delete_each(self.files.storage, paths, lease)

    def _check(self, state: TableState, instant: str) -> None:
        check_undoing(state.timeline)
        check_cleaning(state.timeline)
        write = state.timeline.find(instant)
        if write is None or write not in state.timeline.writes:
            what = "there is no instant" if write is None else f"there is a {write.state} {write.action}"
            raise InstantNotFoundError(
                f"{what} at {instant}; a savepoint keeps a completed write of the active timeline"
            )
        for replaced, time in state.replaced_at.items():
            if time > instant and replaced not in state.view.slices:
                raise RefusedError(f"files of {replaced[0]}/{replaced[1]} as of {instant} were cleaned")
        check_history(state, instant)


def find_tag(files: TableFiles, state: TableState, name: str) -> Tag:
    """The tag of that name. Raises TagNotFoundError, which names the tags there are."""
    known = {tag.name: tag for tag in _tags(savepoints_of(files, state))}
    if name not in known:
        raise TagNotFoundError(
            f"{files.storage.root}: there is no tag {name!r}; there is {', '.join(sorted(known)) or 'none'}"
        )
    return known[name]


def _tags(saved: Mapping[str, SavepointMetadata]) -> list[Tag]:
    return [Tag(kept.tag, instant, kept) for instant, kept in saved.items() if kept.tag is not None]


def _check_tag(saved: Mapping[str, SavepointMetadata], instant: str, tag: str | None) -> None:
    """Raises RefusedError if the tag is another commit's, or the commit is kept without it already."""
    if tag is None:
        return
    for kept in _tags(saved):
        if kept.name == tag and kept.instant != instant:
            raise RefusedError(f"the tag {tag} belongs to {kept.instant}; delete it first, or use another name")
    if instant in saved and saved[instant].tag != tag:
        other = saved[instant].tag
        how = "without a tag" if other is None else f"under the tag {other}"
        raise RefusedError(f"{instant} already has a savepoint {how}; use that one, or delete it first")


def _files_as_of(state: TableState, instant: str) -> dict[str, tuple[str, ...]]:
    files: dict[str, tuple[str, ...]] = {}
    for file_slice in state.view.latest_slices(instant):
        names = tuple(path.rpartition("/")[2] for path in paths_of(file_slice))
        files[file_slice.partition] = files.get(file_slice.partition, ()) + tuple(
            name for name in names if _is_kept(state, name, instant)
        )
    return files


def _is_kept(state: TableState, name: str, instant: str) -> bool:
    """Whether a file of the slice as of the commit is of that time.

    A log file with a later instant isn't: on version 6, it is in the slice that a pending compaction begins. The
    left-overs of such a compaction disappear if it is undone; their original log files are kept.
    """
    log = LogFileName.parse(name)
    return log is None or (log.instant <= instant and not is_left_over_of_pending(state, log))

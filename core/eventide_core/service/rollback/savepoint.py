"""Keeps the table as of a commit, optionally under a tag, or stops keeping it.

Order of writes, inside the table lock: `<t>.savepoint.inflight` with the names of all files of the slices as of t, the
*pin*; then the completed file with the same content. From then on nothing of them is cleaned, rolled back or archived. A
crash in between leaves the pin. Whoever would clean, roll back, restore or archive next completes it first, or removes it
if a file of it is gone (`end_pins`): so a process that wakes up before its completed file finds its files as it left them.
Deleting records that first, and then removes the pin, so that the savepoint of a process that is paused can't come back.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.access.timeline_files import delete_each
from eventide_core.action.compaction.trigger import check_undoing
from eventide_core.action.maintenance.clean_planner import paths_of
from eventide_core.action.maintenance.rollback_planner import check_cleaning
from eventide_core.errors import InstantNotFoundError, RefusedError, TagNotFoundError
from eventide_core.ports import Lease, TableLock
from eventide_core.service.common.facts.exact_view import ExactViews
from eventide_core.service.common.facts.history import check_history
from eventide_core.service.common.facts.needed_files import is_left_over_of_pending, savepoints_of
from eventide_core.service.common.facts.planning import unused_instant
from eventide_core.service.common.facts.watermark_views import base_files_of, last_write_of, view_as_of_watermark
from eventide_core.service.common.state.begun_cleans import begun_cleans
from eventide_core.service.common.state.committed_files import looked_again
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.common.transaction.outcome import record_undone
from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.timeline.contents.savepoint_metadata import (
    SavepointMetadata,
    comments_with_tag,
    remarks_with_exactness,
)
from eventide_core.table.timeline.instant import Action, State
from eventide_core.table.timeline.outcome_file import record_of, undone_path


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

    def save(self, instant: str, *, comments: str = "", tag: str | None = None) -> SavepointMetadata:
        """Keeps the table as of the completed write at `instant`; one that is kept already is answered as it is.

        Raises InstantNotFoundError; ConfigError for a tag that isn't a name; RefusedError if files of that time are gone,
        the tag is another commit's, or the commit is kept without it already; BusyError while a clean or a restore is
        under way.
        """
        text = comments_with_tag(tag, comments)
        with self.lock.acquire() as lease:
            state = settled_state(self.files, lease)
            saved = savepoints_of(self.files, state)
            _check_tag(saved, instant, tag)
            known = saved.get(instant)
            if known is not None:
                return known
            self._check(state, instant)
            metadata = SavepointMetadata("eventide", self.files.clock.now_ms(), text, _files_as_of(state, instant))
            data = self.files.codec.encode_savepoint(metadata)
            self.files.storage.delete(undone_path(record_of(instant, Action.SAVEPOINT)))
            _savepoint(self.files, state, instant).put(lease, State.INFLIGHT, data)
            _complete(self.files, state, instant, data, lease)
            return metadata

    def save_tag(
        self, name: str, *, instant: str | None, threshold_ms: int | None, comments: str, compaction: str | None = None
    ) -> Tag:
        """Keeps the table under a name: as of `instant`, or its view as of watermark `threshold_ms`, or else as it is.

        The view is the one that `compaction` left, if it is given.

        Of a view, the tag states whether it holds nothing at or after T. Raises as `save` and `view_as_of_watermark` do.
        """
        if instant is None:
            state = TableState.load(self.files)
            if threshold_ms is None:
                if not state.timeline.writes:
                    raise InstantNotFoundError("nothing has been written yet, so there is nothing to keep")
                instant = state.timeline.writes[-1].requested_time
            else:
                view = view_as_of_watermark(state, threshold_ms, compaction=compaction)
                instant = last_write_of(state, view)
                exactness = self.exact.of(
                    base_files_of(state, view), state.shape(state.published_cut.event_time_field), threshold_ms
                )
                comments = remarks_with_exactness(comments, is_exact=exactness.is_exact)
        return Tag(name, instant, self.save(instant, comments=comments, tag=name))

    def tags(self) -> tuple[Tag, ...]:
        """The savepoints that have a tag, by it."""
        saved = looked_again(lambda: savepoints_of(self.files, TableState.load_committed(self.files)))
        return tuple(sorted(_tags(saved), key=lambda tag: tag.name))

    def tagged(self, name: str) -> Tag:
        """Raises TagNotFoundError, which names the tags there are."""
        return looked_again(lambda: find_tag(self.files, TableState.load_committed(self.files), name))

    def delete_tag(self, name: str) -> str:
        """Deletes the savepoint with the tag; returns its instant. Raises TagNotFoundError, BusyError."""
        instant = self.tagged(name).instant
        self.delete(instant)
        return instant

    def delete(self, instant: str) -> None:
        """Deletes the savepoint. Raises InstantNotFoundError, and BusyError while a restore is in progress."""
        with self.lock.acquire() as lease:
            config = self.files.config()
            check_undoing(self.files.timeline(config))
            timeline = self.files.on_timeline(config)
            states = [i for i, _ in timeline.entries() if (i.action, i.requested_time) == (Action.SAVEPOINT, instant)]
            if not states:
                raise InstantNotFoundError(f"{self.files.storage.root}: there is no savepoint at {instant}")
            record_undone(self.files.storage, record_of(instant, Action.SAVEPOINT))
            pin_first = sorted(states, key=lambda one: one.is_completed)
            delete_each(self.files.storage, map(timeline.path, pin_first), lease)

    def _check(self, state: TableState, instant: str) -> None:
        check_undoing(state.timeline)
        check_cleaning(begun_cleans(self.files, state.config, state.timeline))
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


def settled_state(files: TableFiles, lease: Lease, *, requires_files: bool = True) -> TableState:
    """The table's state under the lock, when what paused and dead processes left on the timeline has been settled.

    Files that don't count are removed, and savepoints that were begun are completed or removed.
    """
    state = TableState.load(files, requires_files=requires_files)
    files.sweep(state.config, state.timeline, lease)
    if not end_pins(files, state, lease):
        return state
    return TableState.load(files, requires_files=requires_files)


def end_pins(files: TableFiles, state: TableState, lease: Lease) -> bool:
    """Completes the savepoints that were begun, under the lock. Whether there were any.

    One whose files are gone, or whose tag another commit has, is removed: its process was paused before it put the pin,
    and doesn't rely on it. One of another engine is left to that engine.
    """
    ended = False
    for pin in state.timeline.pending:
        if pin.action is not Action.SAVEPOINT or pin.state is not State.INFLIGHT:
            continue
        data = files.on_timeline(state.config).read(pin)
        if data:
            ended = True
            kept = files.codec.decode_savepoint(data, files.on_timeline(state.config).path(pin))
            tagged = {tag.name: tag.instant for tag in _tags(savepoints_of(files, state))}
            is_free = kept.tag is None or tagged.get(kept.tag, pin.requested_time) == pin.requested_time
            is_whole = kept.paths <= {file.path for file in state.listing}
            if is_free and is_whole and state.find_write(pin.requested_time) is not None:
                _complete(files, state, pin.requested_time, data, lease)
            else:
                files.on_timeline(state.config).delete(pin, lease)
    return ended


def _savepoint(files: TableFiles, state: TableState, instant: str) -> Transaction:
    return files.transaction(state.config, Kind.SAVEPOINT, Action.SAVEPOINT, instant)


def _complete(files: TableFiles, state: TableState, instant: str, data: bytes, lease: Lease) -> None:
    completion = state.config.layout.recorded_completion(unused_instant(state, files.clock))
    _savepoint(files, state, instant).put(lease, State.COMPLETED, data, completion=completion)


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

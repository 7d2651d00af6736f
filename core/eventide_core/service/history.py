"""Whether the table as of an instant can still be told: cleaning removes old slices."""

from collections.abc import Callable

from eventide_core.errors import CleanedHistoryError
from eventide_core.service.table import TableState
from eventide_core.table.file_name import BaseFileName
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.file_system_view import FileGroup
from eventide_core.table.instant import Instant

_NO_COMMIT = (None, "", "null")  # as Hudi writes that a base file is the first of its file group


def check_history(state: TableState, instant: str) -> None:
    """Raises CleanedHistoryError where a file group's slice as of `instant` is gone, or a part of it.

    A savepoint keeps all of them.
    """
    if state.timeline.has_savepoint(instant):
        return
    check_history_when(state, lambda time: time <= instant, instant)


def check_history_when(state: TableState, is_shown: Callable[[str], bool], moment: str) -> None:
    """The same as of the moment when the writes of these requested times had been shown.

    1. The first base file above the moment, if there is one, says in its write stat which slice it was made of.
    2. If that is the first of its file group, nothing was there before. Else the slice below must be that very one, with its
       base file: what has been cleaned away, and all below it, is gone. What has been left of such a slice, for a link leads
       to it, goes by the instant of the first log there is.
    3. A file group without any file was cleaned whole after it was replaced.
    """
    for group, replaced_at in state.replaced_at.items():
        if not is_shown(replaced_at) and group not in state.view.slices:
            raise _gone(group, moment)
    for group, slices in state.view.slices.items():
        for below, above in zip((None, *slices), slices, strict=False):
            if not is_shown(above.base_instant) and above.base_file is not None:
                _check_slice(state, group, moment, below, above)
                break


def _check_slice(state: TableState, group: FileGroup, instant: str, below: FileSlice | None, above: FileSlice) -> None:
    assert above.base_file is not None
    write: Instant | None = state.timeline.find(above.base_instant) or state.archive.find(above.base_instant)
    if write is None:
        return
    stat = next((s for s in state.commit(write).stats if s.path == above.base_file.path), None)
    if stat is None or stat.prev_commit in _NO_COMMIT:
        return
    is_whole = below is not None and below.base_instant == stat.prev_commit
    if is_whole and below is not None and below.base_file is None:
        # An archived stat no longer says whether there was a base file below.
        is_whole = not stat.prev_base_file and not _began_with_base(state, group, below.base_instant)
    if not is_whole:
        raise _gone(group, instant)


def _began_with_base(state: TableState, group: FileGroup, base_instant: str) -> bool:
    """Whether the write that began a slice, if it is known, wrote its base file."""
    write = state.timeline.find(base_instant) or state.archive.find(base_instant)
    if write is None or not write.is_completed:
        return False
    paths = (stat.path for stat in state.commit(write).stats if (stat.partition, stat.file_id) == group)
    return any(BaseFileName.parse(path.rpartition("/")[2]) is not None for path in paths)


def _gone(group: FileGroup, instant: str) -> CleanedHistoryError:
    return CleanedHistoryError(
        f"the table as of {instant} can no longer be told: files of {group[0]}/{group[1]} of that time have been cleaned; "
        "ask for a later instant, and keep more with hoodie.cleaner.commits.retained or a savepoint"
    )

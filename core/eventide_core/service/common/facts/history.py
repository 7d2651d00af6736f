"""Whether the table as of an instant can still be read: cleaning removes old slices."""

from collections.abc import Callable, Mapping

from eventide_core.errors import CleanedHistoryError
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.file_system_view import FileGroup


def check_history(state: TableState, instant: str) -> None:
    """Raises CleanedHistoryError if a file group's slice as of `instant`, or a part of it, no longer exists.

    A savepoint keeps all of them.
    """
    if state.timeline.has_savepoint(instant):
        return
    check_history_when(state, lambda time: time <= instant, instant)


def check_history_when(state: TableState, is_shown: Callable[[str], bool], moment: str) -> None:
    """Raises CleanedHistoryError if a slice is gone that was current when exactly these writes were visible.

    1. The first base file of a later write, if there is one, states in its write stat the slice that it was made of.
    2. If it is the first one of its file group, nothing existed before. Otherwise, the slice below must be exactly that
       one, with its base file: if it has been cleaned, it and all below it no longer exist. If a part of such a slice
       still exists, because a link leads to it, the slice has the instant of the first existing log file.
    3. A file group without any file was cleaned as a whole after it was replaced.
    """
    for group, replaced_at in state.replaced_at.items():
        if not is_shown(replaced_at) and group not in state.view.slices:
            raise _gone(group, moment)
    written = _Written(state)
    for group, slices in state.view.slices.items():
        for below, above in zip((None, *slices), slices, strict=False):
            if not is_shown(above.base_instant) and above.base_file is not None:
                _check_slice(written, group, moment, below, above)
                break


class _Written:
    """The write stats of the table's writes, by path, looked up by the instant of the write."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._stats: dict[str, Mapping[str, WriteStat]] = {}
        self._with_base: dict[str, frozenset[FileGroup]] = {}

    def stats(self, instant: str) -> Mapping[str, WriteStat]:
        """The write stats; none if the write is not known, or has not completed."""
        if instant not in self._stats:
            write = self._state.find_write(instant)
            is_known = write is not None and write.is_completed
            stats = self._state.commit(write).stats if write is not None and is_known else ()
            self._stats[instant] = {stat.path: stat for stat in stats}
        return self._stats[instant]

    def began_with_base(self, group: FileGroup, instant: str) -> bool:
        """Whether the write, if it is known, wrote a base file of that file group."""
        if instant not in self._with_base:
            self._with_base[instant] = frozenset(
                (stat.partition, stat.file_id)
                for path, stat in self.stats(instant).items()
                if BaseFileName.parse(path.rpartition("/")[2]) is not None
            )
        return group in self._with_base[instant]


def _check_slice(written: _Written, group: FileGroup, instant: str, below: FileSlice | None, above: FileSlice) -> None:
    assert above.base_file is not None
    stat = written.stats(above.base_instant).get(above.base_file.path)
    if stat is None or not stat.has_slice_below:
        return
    is_whole = below is not None and below.base_instant == stat.prev_commit
    if is_whole and below is not None and below.base_file is None:
        # An archived stat no longer states whether there was a base file below.
        is_whole = not stat.prev_base_file and not written.began_with_base(group, below.base_instant)
    if not is_whole:
        raise _gone(group, instant)


def _gone(group: FileGroup, instant: str) -> CleanedHistoryError:
    return CleanedHistoryError(
        f"the table as of {instant} can no longer be read, because files of {group[0]}/{group[1]} of "
        "that time were cleaned; use a later instant, and keep more with "
        "hoodie.cleaner.commits.retained or a savepoint"
    )

"""The data files that nothing needs, because what made them was undone, or lost against another attempt."""

from collections.abc import Iterator, Mapping

from eventide_core.access.block_headers import is_of_one_write, rolls_back
from eventide_core.ports import Storage
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.file_group_write import stage_of
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.instant import Action, Instant, State


def stray_files(files: TableFiles, state: TableState) -> Mapping[str, str]:
    """The files of instants that were undone: left-overs, which Hudi's own rollback does not remove, and late files.

    For each path, the instant that made it. For an instant before the active timeline, eventide's own record of the undoing
    decides, or an archived rollback: the instant may also have been archived and forgotten. Nothing else has the name of
    such a file but, on version 6, a writer's log file in the slice of a plan. A base file of another attempt at a plan is
    one, too, if the commit names its own.
    """
    return dict(_strays(files, state))


def _strays(files: TableFiles, state: TableState) -> Iterator[tuple[str, str]]:
    start, undone = state.timeline.start, state.timeline.undone
    gone = {
        instant
        for instant in sorted(state.ended | undone)
        if state.timeline.find(instant) is None
        and (instant in undone or (start is not None and instant > start))
        and not files.on_timeline(state.config).exists(Instant(instant, Action.COMPACTION, State.REQUESTED))
    }
    for file in state.listing:
        match file.parsed:
            case LogFileName() as log if log.instant in gone and state.config.layout.may_be_left_over(log):
                yield file.path, log.instant
            case BaseFileName() as base if base.instant in gone and base.instant in undone:
                yield file.path, base.instant
            case _:
                pass
    yield from ((base.path, base.name.instant) for base in state.view.overtaken)
    if gone and not state.config.layout.names_logs_by_write:
        yield from _late_logs(files.storage, state, gone & undone)


def _late_logs(storage: Storage, state: TableState, gone: set[str]) -> Iterator[tuple[str, str]]:
    """On version 6, the log files that an undone write put after it was undone: no command block rolls them back."""
    by_stage = {stage_of(instant): instant for instant in gone}
    for file in state.listing:
        log = file.sliced
        if not isinstance(log, LogFile):
            continue
        instant = by_stage.get(log.name.write_token.partition("-")[2].partition("-")[0])
        if instant is None or not is_of_one_write(storage, file, instant):
            continue  # a write of another day may have the same token
        if not any(rolls_back(storage, other, instant) for other in _from(log, state)):
            yield file.path, instant


def _from(log: LogFile, state: TableState) -> Iterator[DataFile]:
    """The log files of the same slice from this one on, in reader order."""
    place = log.name.file_id, log.name.instant
    for file in state.listing:
        other = file.parsed
        if not isinstance(other, LogFileName) or (other.file_id, other.instant) != place:
            continue
        if other.reader_order >= log.name.reader_order:
            yield file

"""Lists the keys that lost or damaged files take with them. Writes nothing.

1. The record index of Hudi's metadata table has every key of the table with its file group. The keys of a file group that
   its remaining files don't show are lost.
2. Without a record index, the previous file slice gives the keys of a base file, if it is whole: the write of the base file
   read it.
3. Otherwise, nothing does.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from eventide_core.action.repair.lost_keys import KeySource, LostKeys
from eventide_core.action.verification.facts import TableFacts
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import ContentAudit, Engine, KeyIndex, Progress
from eventide_core.service.common.metadata_table.upkeep import MetadataTableUpkeep
from eventide_core.service.common.state.table import TableState
from eventide_core.service.verification.verify import Verifier
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.timeline.file_system_view import FileGroup


@dataclass(frozen=True, slots=True)
class LostKeysReader:
    verifier: Verifier
    audit: ContentAudit
    metadata: MetadataTableUpkeep
    engine: Engine

    def read(self, progress: Progress) -> tuple[LostKeys, ...]:
        """The lost keys of each file group whose latest file slice lacks files, or has files that can't be read.

        Raises BusyError if files disappear all the time, and CorruptTimelineError while the timeline is damaged.
        """
        facts, _ = self.verifier.examine(is_deep=False, progress=progress)
        if facts.view is None or facts.unreadable:
            place = next(iter(facts.unreadable), "the timeline")
            raise CorruptTimelineError(f"{place} cannot be read, so the file slices are not known: repair it first")
        state = TableState.load(self.verifier.files, requires_files=False)
        lost = lost_files(facts)
        index = self.metadata.record_index(state.config, state.timeline) if lost else None
        groups = sorted(lost)
        indexed = _indexed(index, groups, self.engine, progress)
        shape = state.shape(None)
        tasks = [_task(facts, state, group, lost[group]) for group in groups]
        progress.start("reading what is left", len(tasks))
        shown_keys = partial(self.audit.shown_keys, shape=shape)
        kept = self.engine.map(shown_keys, [task.left for task in tasks], on_done=progress.advance)
        answers: list[LostKeys] = []
        for task, shown in zip(tasks, kept, strict=True):
            source, known = None, frozenset[str]()
            if indexed is not None:
                source, known = KeySource.RECORD_INDEX, indexed.get(task.group, known)
            elif task.whole is not None:
                source, known = KeySource.PREVIOUS_SLICE, self.audit.shown_keys(task.whole, shape)
            keys = tuple(sorted(known - shown))
            answers.append(LostKeys(*task.group, task.paths, task.commits, source, keys))
        return tuple(answers)


def lost_files(facts: TableFacts) -> Mapping[FileGroup, Sequence[str]]:
    """The missing and the damaged files of the latest file slices, by file group."""
    lost: dict[FileGroup, list[str]] = defaultdict(list)
    for path, (_, stat) in facts.missing.items():
        lost[stat.partition, stat.file_id].append(path)
    for file_slice in facts.latest_slices:
        if file_slice.base_file is not None and file_slice.base_file.path in facts.bases.problems:
            lost[file_slice.file_group].append(file_slice.base_file.path)
        lost[file_slice.file_group] += (log.path for log in file_slice.log_files if not facts.is_readable(log.path))
    return {group: sorted(set(paths)) for group, paths in lost.items() if paths}


@dataclass(frozen=True, slots=True)
class _Task:
    """What is left of a file group.

    `left` are the files of the latest slice that can be read. `whole` are the same log files on top of the previous slice,
    which show what they showed on top of the lost base file; None if no base file is lost, or that slice isn't whole.
    """

    group: FileGroup
    paths: tuple[str, ...]
    commits: tuple[str, ...]
    left: SliceRead
    whole: SliceRead | None


def _task(facts: TableFacts, state: TableState, group: FileGroup, paths: Sequence[str]) -> _Task:
    assert facts.view is not None
    slices = facts.view.slices.get(group, ())
    bases = facts.known_bases.get(group, {})
    instant = max(bases, default="")  # without a base file, all log files are of one slice
    base = bases.get(instant)
    if base in paths:
        base = None
    logs = tuple(
        (log.path, log.size)
        for one in slices
        for log in one.log_files
        if (not bases or facts.slice_of(log.path, bases) == instant) and facts.is_readable(log.path)
    )
    commits = sorted({time for path in paths for time, _ in facts.committed.get(path, ())})
    left = SliceRead(*group, base, logs, state.blocks())
    is_base_lost = any(BaseFileName.parse(path.rpartition("/")[2]) is not None for path in paths)
    previous = _previous(facts, group, instant) if is_base_lost else None
    if previous is None or previous.base_file is None:
        return _Task(group, tuple(paths), tuple(commits), left, None)
    below = tuple((log.path, log.size) for log in previous.log_files)
    whole = SliceRead(*group, previous.base_file.path, (*below, *logs), state.blocks())
    return _Task(group, tuple(paths), tuple(commits), left, whole)


def _previous(facts: TableFacts, group: FileGroup, instant: str) -> FileSlice | None:
    """The slice before the one of that instant, with the log files of its own, if all that was written to it is there."""
    bases = facts.known_bases.get(group, {})
    before = max((other for other in bases if other < instant), default=None)
    if before is None:
        return None
    previous = facts.slice_at(group, before)
    base = None if previous is None else previous.base_file
    if previous is None or base is None or base.path in facts.bases.problems:
        return None
    written = {
        path
        for path, stats in facts.committed.items()
        if (stats[-1][1].partition, stats[-1][1].file_id) == group and facts.slice_of(path, bases) == before
    }
    if not written <= facts.sizes.keys():
        return None
    logs = tuple(log for log in previous.log_files if facts.slice_of(log.path, bases) == before)
    if not all(facts.is_readable(log.path) for log in logs):
        return None
    return FileSlice(*group, before, base, logs)


def _indexed(
    index: KeyIndex | None, groups: Sequence[FileGroup], engine: Engine, progress: Progress
) -> Mapping[FileGroup, frozenset[str]] | None:
    """The keys of these file groups in the record index; None without one."""
    if index is None:
        return None
    progress.start("reading the record index", index.file_groups)
    keys_of = partial(index.keys_of, groups=frozenset(groups))
    parts = engine.map(keys_of, range(index.file_groups), on_done=progress.advance)
    return {group: frozenset(key for part in parts for key in part.get(group, ())) for group in groups}

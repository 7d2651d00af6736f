"""Compact one slice: the order of writes of an executor, and what a crash between two of them leaves.

1. Check that the log files named in the plan have the sizes that the plan saw: nothing was appended since, which a
   storage of keys cannot do. Begin to merge (`ports.SliceMerger`), up to the first bytes of the new base file. Nothing has
   been written so far.
2. Make the left-overs visible in the new slice, the last one first, each whole or not at all. A reader that meets them
   halfway sees a suffix of the slice's log files twice, which changes nothing. A prefix would change what it sees.
3. Merge into a file that nobody sees yet.
4. Put the log file of carried deletes. Readers meet it before all left-overs, so it is made after all of them. Put the
   change log, if the table captures changes.
5. Put the marker by which Hudi finds an unfinished base file, then give the base file its name.

An earlier attempt may have done any of these steps. What exists must be what this attempt would write. The result of a
base file that exists is in its footer. A crash between two steps leaves files that the plan names, and no others.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Final

from eventide_core.access.files import ChecksummedOutput, checksum_of_file, info_of_file
from eventide_core.access.requests import responses
from eventide_core.errors import MissingFileError, PlanMismatchError
from eventide_core.ports import FileInfo, KeyedFiles, MergeResult, MergeTask, OutputFile, SliceMerger, Storage
from eventide_core.table.files.checksum import RunningChecksum
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.timeline.contents.plans import LinkMode

RESULT_FOOTER_KEY: Final = "eventide.merge_result"
_NOT_IN_FOOTER: Final = ("new_base_path", "base_size", "base_checksum", "carried_checksum", "began_ns", "ended_ns")


def at_once() -> None:
    """The slice may be written without waiting for anything."""


@dataclass(frozen=True, slots=True)
class SliceCompactor:
    """Compacts one slice at each call. Picklable, re-runnable: a second run returns what the first one wrote.

    `now_ns` is the time of the machine that it runs on, in nanoseconds since the epoch.
    """

    storage: Storage
    merger: SliceMerger
    now_ns: Callable[[], int]

    def __call__(self, task: MergeTask, /, may_write: Callable[[], object] = at_once) -> MergeResult:
        """Calls `may_write` before the first write: what it raises ends the task, which then has only read.

        Raises PlanMismatchError, MissingFileError, and what reading the slice raises. It skips nothing.
        """
        began_ns = self.now_ns()
        result = self._compacted(task, may_write)
        return replace(result, began_ns=began_ns, ended_ns=self.now_ns())

    def _compacted(self, task: MergeTask, may_write: Callable[[], object]) -> MergeResult:
        self.merger.check(task.shape)
        planned = (*task.op.compacted, *(left.log_file for left in task.op.left_overs))
        grows = () if isinstance(self.storage, KeyedFiles) else planned
        # The first one is the file of an earlier attempt. If another process makes it from now on, `_merge` finds it.
        paths = (task.op.new_base_path, *(log.path for log in grows))
        earlier, *infos = responses(self.storage, partial(info_of_file, self.storage), paths)
        for log, info in zip(grows, infos, strict=True):
            check_size(info, log.path, log.size)
        if earlier is not None:
            may_write()
            link_left_overs(self.storage, task)
            done = self.finished(task)
            if done is not None:
                return done
        return self._merge(task, may_write)

    def finished(self, task: MergeTask) -> MergeResult | None:
        """The result of the attempt that wrote the base file; None if there is no base file yet.

        Raises PlanMismatchError if the file of that name is not this plan's.
        """
        info = info_of_file(self.storage, task.op.new_base_path)
        if info is None:
            return None
        text = self.merger.read_footer(task.op.new_base_path).get(RESULT_FOOTER_KEY, "{}")
        result = _decode_result(text, task, info.size)
        if result is None:
            raise PlanMismatchError(
                f"{task.op.new_base_path} exists, but the plan at {task.instant} didn't write it: roll the plan "
                "back and plan again"
            )
        self._check_carried(task, result)
        return self._with_checksums(task, result)

    def _with_checksums(self, task: MergeTask, result: MergeResult) -> MergeResult:
        """The result of an earlier attempt with the checksums of its files, which have to be read for that."""
        carried = None
        if task.op.carried_path is not None and result.carried_size is not None:
            carried = checksum_of_file(self.storage, task.op.carried_path, result.carried_size)
        base = checksum_of_file(self.storage, result.new_base_path, result.base_size)
        return replace(result, base_checksum=base, carried_checksum=carried)

    def _merge(self, task: MergeTask, may_write: Callable[[], object]) -> MergeResult:
        output = ChecksummedOutput(_LateOutput(partial(self._begin_to_write, task, may_write)))
        try:
            merged = self.merger.merge(task, output, lambda result: {RESULT_FOOTER_KEY: _encode_result(task, result)})
            self._put_same(task, task.op.carried_path, merged.carried)
            self._put_same(task, task.op.change_log_path, merged.changes)
            self.storage.put_if_absent(task.op.marker_path(task.instant), b"")
            is_published = output.commit()
        finally:
            output.abort()
        if is_published:
            return replace(merged.result, base_checksum=output.checksum, carried_checksum=_checksum(merged.carried))
        # The name was taken meanwhile. That file counts.
        done = self.finished(task)
        if done is None:
            raise MissingFileError(
                f"{task.op.new_base_path} was removed directly after another process wrote it, because the plan was "
                "rolled back"
            )
        return done

    def _begin_to_write(self, task: MergeTask, may_write: Callable[[], object]) -> OutputFile:
        may_write()
        link_left_overs(self.storage, task)
        return self.storage.open_output(task.op.new_base_path)

    def _put_same(self, task: MergeTask, path: str | None, data: bytes) -> None:
        if not data or path is None:
            return
        if not self.storage.put_if_absent(path, data) and self.storage.read(path) != data:
            raise PlanMismatchError(
                f"{path} exists with other content than the plan at {task.instant} makes: roll the plan back "
                "and plan again"
            )

    def _check_carried(self, task: MergeTask, result: MergeResult) -> None:
        if task.op.carried_path is not None and result.carried_size is not None:
            check_size(self.storage.stat(task.op.carried_path), task.op.carried_path, result.carried_size)
        if task.op.change_log_path is not None and result.change_log_size is not None:
            check_size(self.storage.stat(task.op.change_log_path), task.op.change_log_path, result.change_log_size)


class _LateOutput:
    """ports.OutputFile that `begin` opens, at the first write."""

    def __init__(self, begin: Callable[[], OutputFile]) -> None:
        self._begin = begin
        self._output: OutputFile | None = None

    def write(self, data: bytes | memoryview, /) -> int:
        if self._output is None:
            self._output = self._begin()
        return self._output.write(data)

    def commit(self) -> bool:
        assert self._output is not None, "a base file has a footer"
        return self._output.commit()

    def abort(self) -> None:
        if self._output is not None:
            self._output.abort()


def link_left_overs(storage: Storage, task: MergeTask) -> None:
    """Gives each left-over that needs one its name in the new slice, the last one first."""
    for left in reversed(task.op.left_overs):
        if left.new_name is None:
            continue
        source, target = left.log_file.path, task.op.path_of(left.new_name)
        match task.link_mode:
            case LinkMode.COPY:
                storage.copy_if_absent(source, target)
            case LinkMode.HARDLINK:
                storage.link_if_absent(source, target, is_symbolic=False)
            case LinkMode.SYMLINK:
                storage.link_if_absent(source, target, is_symbolic=True)
            case LinkMode.PREFIX:
                raise PlanMismatchError(
                    f"the plan at {task.instant} links {source} to {target} in mode prefix, which needs no links"
                )
        check_size(storage.stat(target), target, left.log_file.size)


def check_size(info: FileInfo | None, path: str, size: int) -> None:
    if info is None:
        raise MissingFileError(f"{path}, which the plan names, does not exist: roll the plan back and plan again")
    if info.size != size:
        raise PlanMismatchError(
            f"{path} has {info.size} bytes, but {size} in the plan: roll the plan back and plan again"
        )


def _checksum(data: bytes) -> str:
    checksum = RunningChecksum()
    checksum.add(data)
    return str(checksum)


def _identity(task: MergeTask) -> tuple[str, list[str], dict[str, int]]:
    """What identifies the base file of this task: its instant, the log files it merges, and those it merges early."""
    early = {path.rpartition("/")[2]: threshold_ms for path, threshold_ms in task.op.early.items()}
    return task.instant, [log.name for log in task.op.compacted], early


def _encode_result(task: MergeTask, result: MergeResult) -> str:
    counts = {k: v for k, v in asdict(result).items() if k not in _NOT_IN_FOOTER}
    instant, merged, early = _identity(task)
    return encoded_own({"instant": instant, "merged": merged, "early": early, "result": counts}).decode()


def _decode_result(text: str, task: MergeTask, base_size: int) -> MergeResult | None:
    """The result in a footer; None if there is none, or it is another task's.

    Raises UnsupportedTableError for one of a later eventide.
    """
    try:
        written = decoded_own(text, task.op.new_base_path)
        if (written.get("instant"), written.get("merged"), written.get("early", {})) != _identity(task):
            return None
        counts: dict[str, Any] = written["result"]
        counts |= {"new_base_path": task.op.new_base_path, "base_size": base_size}
        return MergeResult(**counts)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None

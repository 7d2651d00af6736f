"""How eventide runs a compaction plan of another engine, and how the timeline records the attempt.

Hudi's plan names no file that it makes: the names hold a write token, which each attempt chooses. An attempt of eventide
has a number, which it claims and no file of the instant has, and the slice at position n gets the token `n-<attempt>-0`.
When the files are made, the number goes into the inflight file, which Hudi leaves empty and never reads. So the inflight
file decides whose attempt counts:

    empty        another engine's attempt: running, or dead
    an attempt   eventide's, at its commit; a run that continues after a crash finds the number, and makes the same names
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from eventide_core.errors import PlanMismatchError
from eventide_core.ports import Storage
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    ForeignOperation,
    ForeignPlan,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup
from eventide_core.table.timeline.outcome_file import attempt_path

_ATTEMPT = "eventide.attempt"
_TAKEN_OVER = "eventide.taken.over"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An execution of another engine's plan, as the plan's inflight file states it.

    `number` counts from 1, and is in the write tokens of the base files, which keeps attempts apart. `is_taken_over`: that
    engine had begun the plan, and may still be at work. `is_unshared`: no inflight file has stated the number yet, so that
    no other process can continue the attempt, or commit its files.
    """

    number: int
    is_taken_over: bool = False
    is_unshared: bool = False

    def encode(self) -> bytes:
        return encoded_own({_ATTEMPT: self.number, _TAKEN_OVER: self.is_taken_over})

    @classmethod
    def decode(cls, data: bytes, path: str) -> "Attempt | None":
        """The attempt whose number an inflight file contains; None for another engine's file.

        Raises UnsupportedTableError for an attempt of a later eventide.
        """
        try:
            match decoded_own(data or b"{}", path):
                case {"eventide.attempt": int(number), "eventide.taken.over": bool(is_taken_over)}:
                    return cls(number, is_taken_over)
                case _:
                    return None
        except (ValueError, RecursionError):
            return None


def claim_attempt(storage: Storage, listing: Iterable[DataFile], plan: ForeignPlan) -> int:
    """A number that no other attempt has, above the number of each base file that an earlier one left, Hudi's included.

    It is claimed by a file, so that a process that was paused before its first base file makes none under the names of
    another one.
    """
    numbers = (int(name.write_token.split("-")[1]) for _, name in _bases_of(listing, plan.instant, plan.file_groups))
    number = 1 + max(numbers, default=0)
    while not storage.put_if_absent(attempt_path(plan.instant, number), b""):
        number += 1
    return number


def other_bases(
    listing: Iterable[DataFile], instant: str, groups: Iterable[FileGroup], own: Iterable[str]
) -> tuple[str, ...]:
    """The base files of these groups at the instant that are not in `own`, by path: other attempts left them."""
    kept = set(own)
    return tuple(sorted(file.path for file, _ in _bases_of(listing, instant, groups) if file.path not in kept))


def as_executed(state: TableState, plan: ForeignPlan, attempt: int) -> CompactionPlan:
    """The plan with the names of this attempt: it merges all log files of each slice and leaves nothing over.

    Raises PlanMismatchError if a file that the plan names is gone.
    """
    sizes = {file.path: file.size for file in state.listing}
    for path in plan.paths:
        if path not in sizes:
            raise PlanMismatchError(
                f"{path}, which the plan at {plan.instant} of another engine merges, does not exist; restore the "
                "file, or roll the plan back with the engine that scheduled it"
            )
    return CompactionPlan(
        instant=plan.instant,
        link_mode=LinkMode.COPY,
        link_reason="nothing is left over, so no link is needed",
        operations=tuple(
            _executed(op, f"{number}-{attempt}-0", plan.instant, sizes) for number, op in enumerate(plan.operations)
        ),
        schema=state.schema,
    )


def _executed(op: ForeignOperation, token: str, instant: str, sizes: dict[str, int]) -> PlannedOperation:
    ordered = sorted(op.log_paths, key=_reader_order)
    return PlannedOperation(
        partition=op.partition,
        file_id=op.file_id,
        base_instant=op.base_instant,
        base_path=op.base_path,
        base_size=0 if op.base_path is None else sizes[op.base_path],
        compacted=tuple(PlannedLog(path, sizes[path], None) for path in ordered),
        new_base_name=str(BaseFileName(op.file_id, token, instant)),
        reason="another engine planned the whole slice",
    )


def _reader_order(path: str) -> tuple[str, int, str, str]:
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None, f"{path} is not a log file"  # as decoded
    return name.reader_order


def _bases_of(
    listing: Iterable[DataFile], instant: str, of_groups: Iterable[FileGroup]
) -> Iterator[tuple[DataFile, BaseFileName]]:
    groups = set(of_groups)
    for file in listing:
        match file.parsed:
            case BaseFileName() as name if name.instant == instant and (file.partition, name.file_id) in groups:
                yield file, name
            case _:
                pass

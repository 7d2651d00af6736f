"""The files of left-overs: their names, targets, order, and how a plan describes them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from eventide.testing.histories import delete, put
from eventide.testing.living_table.table import LivingTable
from eventide_adapters.format.timeline import compaction_plan as plan_avro
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LinkChoice
from eventide_core.service.common.facts import needed_files
from eventide_core.service.compaction import compact_slice
from eventide_core.service.compaction.scheduling import draft
from eventide_core.service.maintenance import clean
from eventide_core.table.timeline.contents.plans import CompactionPlan, PlannedOperation
from support.mutants.mutant import (
    AFTER_T,
    BASE,
    BEFORE_T,
    PLAIN,
    Mutant,
    cleans,
    compacts,
    executes,
    history,
    living,
    plans,
    writes,
)


def _dies_at_every_write_of_the_execution(table: LivingTable) -> None:
    for number in range(12):
        table.execute(number)
        table.bench.process().rollback.undo_failed_writes()  # takes the lock from the dead


def _targets_ignored(patch: pytest.MonkeyPatch) -> None:
    for module in (clean, needed_files):
        patch.setattr(module, "links_of", lambda _: {})


def _links_to_links(patch: pytest.MonkeyPatch) -> None:
    def link(storage: MemoryStorage, source: str, target: str, *, is_symbolic: bool) -> bool:
        files = storage._files
        storage._write(files, target, b"", link_target=source)
        return is_symbolic

    patch.setattr(MemoryStorage, "link_if_absent", link)


def _named_like_a_writers_log(attribute: str) -> Callable[[pytest.MonkeyPatch], None]:
    def is_wrong(patch: pytest.MonkeyPatch) -> None:
        real: Any = vars(draft)["plan_compaction"]

        def plan(*arguments: Any) -> CompactionPlan:
            made: CompactionPlan = real(*arguments)
            return replace(made, operations=tuple(_renamed(op, attribute) for op in made.operations))

        patch.setattr(draft, "plan_compaction", plan)

    return is_wrong


def _renamed(op: PlannedOperation, attribute: str) -> PlannedOperation:
    def as_writers_do(name: str | None) -> str | None:
        return None if name is None else name.replace(".log.0_", ".log.1_")

    if attribute == "carried_name":
        return replace(op, carried_name=as_writers_do(op.carried_name))
    left_overs = tuple(replace(left, new_name=as_writers_do(left.new_name)) for left in op.left_overs)
    return replace(op, left_overs=left_overs)


def _torn_copies(patch: pytest.MonkeyPatch) -> None:
    """A copy that is incomplete after a crash, and an executor that considers it complete."""
    torn: list[str] = []

    def copy(storage: MemoryStorage, source: str, target: str) -> bool:
        data = storage.read(source)
        if not torn:
            torn.append(target)
            storage.put(target, data[: len(data) // 2])
            raise SimulatedCrash
        return storage.put_if_absent(target, data)

    patch.setattr(MemoryStorage, "copy_if_absent", copy)
    patch.setattr(compact_slice, "check_size", lambda *_: None)


def _plan_for_eventide_alone(patch: pytest.MonkeyPatch) -> None:
    """A plan that other engines can't run, and code that doesn't check for it."""
    real: Any = vars(plan_avro)["encode_operation"]

    def encode(plan: CompactionPlan, planned: PlannedOperation) -> dict[str, Any]:
        return {**real(plan, planned), "deltaFilePaths": [log.name for log in planned.compacted]}

    patch.setattr(plan_avro, "encode_operation", encode)
    patch.setattr(plan_avro, "check_agreement", lambda *_: None)


def _first_first(patch: pytest.MonkeyPatch) -> None:
    real = compact_slice.link_left_overs

    def link(storage: Any, task: Any) -> None:
        real(storage, replace(task, op=replace(task.op, left_overs=task.op.left_overs[::-1])))

    patch.setattr(compact_slice, "link_left_overs", link)


MUTANTS = (
    Mutant(
        "3",
        "a clean ignores the targets of links",
        _targets_ignored,
        history(*PLAIN, writes((put("k0", 9, "more"),)), cleans, of=lambda: living(9, link=LinkChoice.SYMLINK)),
    ),
    Mutant(
        "3b",
        "links point to links",
        _links_to_links,
        history(
            writes(BASE, BEFORE_T, (put("k1", 4, "next"),), AFTER_T),
            compacts(3),
            compacts(5),
            of=lambda: living(9, link=LinkChoice.SYMLINK),
        ),
    ),
    Mutant(
        "4",
        "left-overs have names that writers use (version 6)",
        _named_like_a_writers_log("left_overs"),
        history(
            writes(BASE, BEFORE_T, AFTER_T),
            plans(3),
            writes((put("k0", 8, "tie"),)),
            executes,
            of=lambda: living(6),
        ),
    ),
    Mutant(
        "9",
        "a partial copy counts as whole",
        _torn_copies,
        history(writes(BASE, BEFORE_T, AFTER_T), plans(3), executes, executes, of=lambda: living(9)),
    ),
    Mutant(
        "15",
        "the plan lists only what eventide merges",
        _plan_for_eventide_alone,
        history(*PLAIN, of=lambda: living(9)),
    ),
    Mutant(
        "name",
        "the log file of carried tombstones has a name that writers use (version 6)",
        _named_like_a_writers_log("carried_name"),
        history(
            writes(BASE, (put("k0", 1, "early"), delete("k1", 3)), (put("k1", 2, "loses to it"),)),
            plans(2),
            writes((put("k1", 3, "tie"),)),
            executes,
            of=lambda: living(6),
        ),
    ),
    Mutant(
        "order",
        "left-overs are made from first to last (version 6)",
        _first_first,
        history(
            writes(BASE, BEFORE_T, AFTER_T, (put("k0", 8, "tie"),)),
            plans(3),
            _dies_at_every_write_of_the_execution,
            of=lambda: living(6),
        ),
    ),
)

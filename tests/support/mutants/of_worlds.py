"""Mutants that only several processes on one table reveal, and in how many simulated worlds each of them is found.

PYTHONPATH=tests python -m support.mutants.of_worlds FIRST_SEED WORLDS
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from eventide.testing.simulation.lot import DISTURBING, Lot, Trouble
from eventide.testing.simulation.world import run_world
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.lock.storage_based import StorageBasedLock
from eventide_core.access.files import discard
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.service.common.facts import needed_files
from eventide_core.service.common.facts.freshness import FreshnessReader
from eventide_core.service.common.metadata_table.upkeep import PendingUpdate
from eventide_core.service.common.state.liveness import Liveness
from eventide_core.service.common.state.window_consumers import ConsumerFiles
from eventide_core.service.common.transaction import outcome
from eventide_core.service.common.transaction.action import Transaction
from eventide_core.service.compaction import completion
from eventide_core.service.rollback import compaction as rollback_of_compaction
from eventide_core.service.rollback import run as rollback_run
from eventide_core.service.write import instants as write_instants
from eventide_core.service.write.instants import WriteInstants

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True, slots=True)
class MutantOfWorlds:
    """`actors` are those whose meetings reveal it, beside writers and compactors; `worlds` and `tables` what else is needed.

    `is_disturbed`: processes are paused in its worlds, which are then checked only when they are at rest.
    """

    name: str
    is_wrong: Patch
    actors: tuple[str, ...]
    is_disturbed: bool = True
    worlds: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tables: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def lot(self, seed: int) -> Lot:
        """A small world of these actors in which much happens."""
        actors = ("writer-1", "writer-2", "compactor", *self.actors)
        troubles = frozenset(Trouble) - (frozenset() if self.is_disturbed else DISTURBING)
        lot = replace(Lot.of(seed), actors=actors, turns=45, storms=1, troubles=troubles, per_mille=15)
        return replace(lot, layout=replace(lot.layout, **self.tables), **self.worlds)


def _returns(target: object, name: str, value: object) -> Patch:
    return lambda patch: patch.setattr(target, name, lambda *_, **__: value)


def _claims_without_reading(patch: pytest.MonkeyPatch) -> None:
    def claim(storage: Any, wanted: Any) -> Any:
        outcome.claim_outcome(storage, wanted)
        return wanted

    for module in (completion, rollback_of_compaction, rollback_run, write_instants):
        patch.setattr(module, "claim_outcome", claim)


def _needs_nothing_of_plans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(needed_files, "merged_paths", lambda *_: ())


def _watermark_too_high(patch: pytest.MonkeyPatch) -> None:
    own = FreshnessReader.now

    def now(self: FreshnessReader, state: Any) -> Freshness:
        found = own(self, state)
        return found if found.watermark_ms is None else replace(found, watermark_ms=found.watermark_ms + 1)

    patch.setattr(FreshnessReader, "now", now)


def _all_are_dead(patch: pytest.MonkeyPatch) -> None:
    own = Liveness.heartbeat

    def heartbeat(self: Liveness, instant: str) -> Any:
        found = own(self, instant)
        return found and replace(found, is_fresh=False)

    patch.setattr(Liveness, "heartbeat", heartbeat)


def _never_checks_the_lock(patch: pytest.MonkeyPatch) -> None:
    for lock in (FileSystemBasedLock, StorageBasedLock):
        patch.setattr(lock, "check", lambda *_: None)


def _rolls_back_after_a_lost_answer(patch: pytest.MonkeyPatch) -> None:
    def abort(self: WriteInstants, instant: str, *_: object) -> None:
        self.liveness.heartbeats.stop(instant)
        config = self.files.config()
        for entry in self.files.storage.list(config.timeline_path):
            if entry.path.rpartition("/")[2].startswith(instant):
                discard(self.files.storage, entry.path)

    patch.setattr(WriteInstants, "abort", abort)


def _runners_overwrite_each_other(patch: pytest.MonkeyPatch) -> None:
    own = ConsumerFiles.put

    def put(self: ConsumerFiles, progress: Any) -> bool:
        own(self, progress)
        return True

    patch.setattr(ConsumerFiles, "put", put)


_UNDOES = ("undoer", "archiver", "cleaner")
_PAUSES: dict[str, Any] = {"troubles": frozenset({Trouble.PAUSE}), "turns": 90}
"""Each process wakes up again, so that much is done."""
_OFTEN: dict[str, Any] = {**_PAUSES, "per_mille": 40}
_SLOW = frozenset({Trouble.SLOW})
MUTANTS_OF_WORLDS: tuple[MutantOfWorlds, ...] = (
    MutantOfWorlds(
        "a late file of the timeline is not withdrawn",
        _returns(Transaction, "_withdraw", None),
        _UNDOES,
        worlds={**_OFTEN, "rest_ms": 20_000},
    ),
    MutantOfWorlds(
        "the outcome that another process has claimed is ignored",
        _claims_without_reading,
        ("exact-compactor", "service"),
        worlds={**_PAUSES, "troubles": frozenset({Trouble.LATE}), "per_mille": 60, "rest_ms": 10_000},
        tables={"version": 9},
    ),
    MutantOfWorlds("a clean ignores pending plans", _needs_nothing_of_plans, ("stock-planner", "cleaner")),
    MutantOfWorlds(
        "a clean and a restore ignore savepoints",
        _returns(needed_files, "savepoints_of", {}),
        ("exact-compactor", "restorer", "cleaner"),
        worlds={"troubles": _SLOW, "turns": 80, "storms": 2, "per_mille": 1},
    ),
    MutantOfWorlds("the watermark is a millisecond too high", _watermark_too_high, ("service",), is_disturbed=False),
    MutantOfWorlds("heartbeats are ignored: every process counts as dead", _all_are_dead, _UNDOES, is_disturbed=False),
    MutantOfWorlds("nobody checks whether the lock is still held", _never_checks_the_lock, _UNDOES, worlds=_PAUSES),
    MutantOfWorlds(
        "a write whose lock was lost is not checked",
        _returns(WriteInstants, "_check_fenced", None),
        _UNDOES,
        worlds=_OFTEN,
    ),
    MutantOfWorlds(
        "writes do not conflict",
        _returns(write_instants, "check_write", None),
        ("stock-writer",),
        worlds={"troubles": _SLOW, "turns": 30},
        tables={"index": "SIMPLE"},
    ),
    MutantOfWorlds("a write that failed removes its instant", _rolls_back_after_a_lost_answer, ("undoer",)),
    MutantOfWorlds(
        "the metadata table gets no commits",
        _returns(PendingUpdate, "write", None),
        ("cleaner",),
        is_disturbed=False,
        worlds={"turns": 20},
        tables={"has_metadata_table": True},
    ),
    MutantOfWorlds(
        "runners of a consumer overwrite each other",
        _runners_overwrite_each_other,
        ("exact-compactor", "consumer-1", "consumer-2"),
        worlds={"troubles": _SLOW, "turns": 250, "per_mille": 1, "rest_ms": 800},
    ),
)


def found_by(mutant: MutantOfWorlds, lot: Lot) -> str | None:
    """The check that fails in that world with the mutant."""
    with pytest.MonkeyPatch.context() as patch:
        mutant.is_wrong(patch)
        failure = run_world(lot).failure
    return None if failure is None else failure.check


def main(first: int, worlds: int) -> None:
    """Each mutant in the worlds of its actors that keep every promise without it."""
    for mutant in MUTANTS_OF_WORLDS:
        found, sound = Counter[str](), 0
        for seed in range(first, first + worlds):
            lot = mutant.lot(seed)
            check = found_by(mutant, lot)
            if check is not None and (without := run_world(lot)).failure is not None:
                sys.stdout.write(f"without a mutant: {lot.with_mishaps(without.mishaps).command}: {without.failure}\n")
                continue
            sound += 1
            if check is not None:
                found[f"{check}, {seed}"] += 1
        sys.stdout.write(f"| {mutant.name} | {found.total()} of {sound} | {dict(sorted(found.items()))} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

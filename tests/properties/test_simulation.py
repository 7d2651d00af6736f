"""Whole worlds from one seed: testing/simulation/ says how.

`./run simulate --minutes 60` runs an hour of them. EVENTIDE_CAMPAIGN=n makes the runs of two minutes n times as long.
"""

import itertools
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eventide.testing.crash_enumeration import Tally
from eventide.testing.histories import at_epoch
from eventide.testing.oracle import Oracle, Order, Rows
from eventide.testing.simulation.ledger import BrokenPromiseError, Ledger, Saved, Write
from eventide.testing.simulation.lot import READING, WRITING, Lot, Mishap, Trouble, luck_of
from eventide.testing.simulation.scheduler import Scheduler
from eventide.testing.simulation.shrink import shrunk
from eventide.testing.simulation.world import Outcome, run_world
from eventide_core.action.freshness.freshness import COMPLETE
from eventide_core.service.common.facts.freshness import FreshnessReader
from support.mutants.of_worlds import MUTANTS_OF_WORLDS, found_by
from support.run.campaign import CAMPAIGN
from support.run.child_processes import environment
from support.run.reach import reached

pytestmark = pytest.mark.campaign

SOUND = (6, 7, 14, 22, 26, 28, 36, 38)
MENDED: dict[str, tuple[int, dict[str, Any], str]] = {
    "a woken write deleted log files that a rebuilt metadata table listed": (
        12,
        {
            "turns": 11,
            "storms": 1,
            "actors": ("writer-1", "compactor", "stock-writer", "archiver", "undoer", "rebuilder"),
        },
        "writer-1:122:pause:7200000",
    ),
}
"""Faults that worlds have found: the seed, what is left of the world, and its mishaps."""
FOUND = {
    "a write that failed removes its instant": "verify timeline",
    "nobody checks whether the lock is still held": "lost write",
    "writes do not conflict": "lost write",
    "the metadata table gets no commits": "metadata table",
}
SELDOM = {
    "heartbeats are ignored: every process counts as dead": "undone alive",
    "the watermark is a millisecond too high": "watermark",
    "a late file of the timeline is not withdrawn": "late file",
}
"""Mutants, and how the check begins that fails in a world; a change of the product changes in which."""
WORLDS = 20
COMPLETE_UNTIL_THE_END = replace(COMPLETE, watermark_ms=10**15)
MINUTES = 2 * max(1, CAMPAIGN)


@pytest.mark.parametrize("seed", SOUND)
def test_a_world_keeps_every_promise(seed: int) -> None:
    _judged(run_world(Lot.of(seed)))


def test_a_fresh_world_keeps_every_promise() -> None:
    _judged(run_world(Lot.of(secrets.randbelow(10**9))))


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(1, id="the same", marks=pytest.mark.broad),
        pytest.param(secrets.randbelow(10**9), id="fresh", marks=pytest.mark.proof),
    ],
)
def test_worlds_of_two_minutes_keep_every_promise(first: int) -> None:
    deadline, counts, broken = time.monotonic() + MINUTES * 60, Counter[str](), list[str]()
    for seed in _seeds(first, deadline):
        outcome = run_world(Lot.of(seed))
        counts.update(worlds=1, requests=outcome.requests, writes=outcome.writes, mishaps=len(outcome.mishaps))
        if outcome.failure is not None:
            broken.append(f"{outcome.lot.command}: {outcome.failure}")
    reached(f"worlds: {Tally(counts)}")
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("name", MENDED)
def test_a_world_that_has_found_a_fault_keeps_every_promise(name: str) -> None:
    seed, left, mishaps = MENDED[name]
    lot = replace(Lot.of(seed), **left).with_mishaps([Mishap.parse(text) for text in mishaps.split(",")])
    _judged(run_world(lot))


@pytest.mark.parametrize(
    ("name", "check"), [*FOUND.items(), *(pytest.param(*pair, marks=pytest.mark.proof) for pair in SELDOM.items())]
)
def test_a_world_finds_the_mutant(name: str, check: str) -> None:
    mutant = next(mutant for mutant in MUTANTS_OF_WORLDS if mutant.name == name)
    worlds = 3 * WORLDS if name in SELDOM else WORLDS
    found = (found_by(mutant, mutant.lot(seed)) for seed in range(1, worlds + 1))
    assert any(failed is not None and failed.startswith(check) for failed in found)


def test_the_same_seed_gives_the_same_trace_byte_by_byte(tmp_path: Path) -> None:
    """In two processes whose sets have different orders."""
    traces = [tmp_path / hashes for hashes in ("1", "2")]
    for trace in traces:
        command = [
            sys.executable,
            "-m",
            "eventide.testing.simulation",
            "--seed",
            "11",
            "--no-shrink",
            "--trace",
            str(trace),
        ]
        done = subprocess.run(
            command,
            env=environment(PYTHONHASHSEED=trace.name),
            check=False,
        )
        assert done.returncode == 0
    first, second = (trace.read_bytes() for trace in traces)
    assert first == second
    assert len(first.splitlines()) > 1_000


def test_a_broken_world_shrinks_and_its_command_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FreshnessReader, "now", lambda *_: COMPLETE_UNTIL_THE_END)
    broken = run_world(Lot.of(2))
    assert broken.failure is not None
    assert broken.failure.check == "watermark"
    small = shrunk(broken, lambda _: None, worlds_max=6)
    assert small.failure is not None
    assert len(small.lot.actors) < len(broken.lot.actors)
    assert f"--actors {','.join(small.lot.actors)}" in small.lot.command
    again = run_world(small.lot)
    assert str(again.failure) == str(small.failure)
    assert again.trace == small.trace


def test_threads_take_turns_by_simulated_time() -> None:
    scheduler, said = Scheduler(0), list[tuple[int, str]]()

    def sleeper(name: str, pause_ms: int) -> None:
        for _ in range(2):
            scheduler.sleep(pause_ms)
            said.append((scheduler.now_ms, name))

    scheduler.start(lambda: sleeper("slow", 30), None)
    scheduler.start(lambda: sleeper("quick", 20), None)
    scheduler.call(lambda: said.append((scheduler.now_ms, "late write")), 50)
    scheduler.run()
    assert said == [(20, "quick"), (30, "slow"), (40, "quick"), (50, "late write"), (60, "slow")]


def test_fewer_troubles_leave_the_others_as_they_were() -> None:
    lot = replace(Lot.of(1), troubles=frozenset(Trouble), per_mille=100)
    all_of_them, some = (list(_happening(other)) for other in (lot, replace(lot, troubles=frozenset({Trouble.KILL}))))
    assert some == [mishap for mishap in all_of_them if mishap.trouble is Trouble.KILL]
    assert len(all_of_them) > len(some) > 0


def test_a_mishap_is_read_as_it_is_printed() -> None:
    mishap = Mishap("writer-1", 35, Trouble.PAUSE, 600_000)
    assert Mishap.parse(str(mishap)) == mishap


def test_half_of_a_write_is_a_broken_promise() -> None:
    ledger, first, _ = _ledger()
    rows = _rows(ledger, first.number)
    ledger.check(rows)
    half = frozenset(row for row in rows if row[1] != first.changes[0].key)
    with pytest.raises(BrokenPromiseError, match="rows: with the writes"):
        ledger.check(half)


def test_a_write_of_unknown_outcome_may_be_there_or_not() -> None:
    ledger, first, second = _ledger()
    ledger.check(_rows(ledger, first.number))
    ledger.check(_rows(ledger, first.number, second.number))
    with pytest.raises(BrokenPromiseError, match=r"lost write: write 1 was acknowledged"):
        ledger.check(_rows(ledger, second.number))


def test_a_restore_undoes_what_was_written_after_its_savepoint() -> None:
    ledger, _, _ = _ledger()
    saved = Saved("1", ledger.now(), ledger.now())
    third = ledger.begin("writer", Random(1))
    ledger.succeeded("writer", third)
    ledger.restored(saved, ledger.now())
    ledger.check(_rows(ledger, 1))
    with pytest.raises(BrokenPromiseError, match=r"undone write: write 3"):
        ledger.check(_rows(ledger, 1, 3))


def _ledger() -> tuple[Ledger, Write, Write]:
    """A ledger with a write that was acknowledged, and one whose outcome is unknown."""
    ledger, dice = Ledger(), Random(1)
    first = ledger.begin("writer", dice)
    ledger.succeeded("writer", first)
    return ledger, first, ledger.begin("writer", dice)


def _rows(ledger: Ledger, *numbers: int) -> Rows:
    """The rows of the table with these writes."""
    oracle = Oracle(Order.EVENT_TIME)
    oracle.commit("0", [at_epoch(change) for change in ledger.base])
    for number in numbers:
        oracle.commit(str(number), [at_epoch(change) for change in ledger.writes[number - 1].changes])
    return oracle.snapshot()


def _happening(lot: Lot) -> Iterator[Mishap]:
    draw = luck_of(lot, "writer-1")
    return (
        mishap for number in range(1_000) if (mishap := draw(number, READING if number % 3 else WRITING)) is not None
    )


def _seeds(first: int, deadline: float) -> Iterator[int]:
    return itertools.takewhile(lambda _: time.monotonic() < deadline, itertools.count(first))


def _judged(outcome: Outcome) -> None:
    assert outcome.failure is None, f"{outcome.failure}\nreplay: {outcome.lot.command}"
    reached(
        f"world {outcome.lot.seed}: {outcome.requests} requests, {outcome.writes} writes, {len(outcome.mishaps)} mishaps"
    )

"""Runs worlds, or replays one. `./run simulate --help` says how."""

import argparse
import os
import secrets
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

from eventide.testing.simulation.lot import Lot, Mishap
from eventide.testing.simulation.shrink import shrunk
from eventide.testing.simulation.world import Outcome, run_world

_WORLDS_PER_PROCESS = 50  # what caches of decoded files keep of them


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="./run simulate", description=__doc__)
    parser.add_argument("--seed", type=int, help="one world; with --minutes the first of them, otherwise drawn")
    parser.add_argument(
        "--minutes", type=float, help="runs world after world, on all processors (EVENTIDE_CAMPAIGN times)"
    )
    parser.add_argument("--trace", type=Path, metavar="FILE", help="writes what happened in the world")
    parser.add_argument("--no-shrink", action="store_true", help="does not look for a smaller world that fails alike")
    parser.add_argument("--actors", help="only these, separated by commas")
    parser.add_argument("--turns", type=int, help="what the actors do in a storm")
    parser.add_argument("--storms", type=int)
    parser.add_argument("--mishaps", help="ACTOR:REQUEST:TROUBLE:MS,... instead of those that the seed draws, or none")
    asked = parser.parse_args(arguments)
    if asked.seed is None or asked.minutes is not None:
        first = secrets.randbelow(10**9) if asked.seed is None else asked.seed
        minutes = (asked.minutes or 2) * max(1, int(os.environ.get("EVENTIDE_CAMPAIGN", "1")))
        return _run_many(first, minutes * 60, shrinks=not asked.no_shrink)
    outcome = run_world(_lot(asked))
    if asked.trace is not None:
        asked.trace.write_text("\n".join(outcome.trace) + "\n", encoding="utf-8")
    if outcome.failure is not None and not asked.no_shrink:
        _say(f"{outcome.failure}\nlooking for a smaller world that fails alike")
        outcome = shrunk(outcome, _say)
    _say(_summary(outcome))
    return 1 if outcome.failure else 0


def _lot(asked: argparse.Namespace) -> Lot:
    lot = Lot.of(asked.seed)
    given = {
        "actors": None if asked.actors is None else tuple(asked.actors.split(",")),
        "turns": asked.turns,
        "storms": asked.storms,
    }
    lot = replace(lot, **{name: value for name, value in given.items() if value is not None})
    if asked.mishaps is not None:
        texts = [] if asked.mishaps == "none" else asked.mishaps.split(",")
        lot = lot.with_mishaps([Mishap.parse(text) for text in texts])
    return lot


def _run_many(first: int, seconds: float, *, shrinks: bool) -> int:
    began, deadline = time.monotonic(), time.monotonic() + seconds
    worlds, counts, failures = 0, Counter[str](), dict[str, Outcome]()
    for outcome in _outcomes(first, deadline):
        worlds += 1
        counts.update(requests=outcome.requests, writes=outcome.writes, mishaps=len(outcome.mishaps))
        if outcome.failure is not None:
            counts[f"failed, {outcome.failure.check}"] += 1
            failures.setdefault(outcome.failure.check, outcome)
            _say(f"{outcome.lot.command}\n    {str(outcome.failure)[:300]}")
    for outcome in failures.values():
        _say(_summary(shrunk(outcome, lambda _: None) if shrinks else outcome))
    per_hour = worlds * 3600 / (time.monotonic() - began) if not shrinks or not failures else worlds * 3600 / seconds
    _say(f"{worlds} worlds from seed {first}, {per_hour:.0f} an hour; {dict(sorted(counts.items()))}")
    return 1 if failures else 0


def _outcomes(first: int, deadline: float) -> Iterator[Outcome]:
    processors = os.cpu_count() or 1
    with get_context("spawn").Pool(processors, maxtasksperchild=_WORLDS_PER_PROCESS) as pool:
        waiting = [pool.apply_async(run_world, (Lot.of(first + number),)) for number in range(processors)]
        following = first + processors
        while waiting:
            yield waiting.pop(0).get()
            if time.monotonic() < deadline:
                waiting.append(pool.apply_async(run_world, (Lot.of(following),)))
                following += 1


def _summary(outcome: Outcome) -> str:
    verdict = "kept every promise" if outcome.failure is None else str(outcome.failure)
    counts = f"{outcome.requests} requests, {outcome.writes} writes, {len(outcome.mishaps)} mishaps"
    summary = f"{outcome.lot}\n{counts}: {verdict}"
    return summary if outcome.failure is None else f"{summary}\nreplay: {outcome.lot.command}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

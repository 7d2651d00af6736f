"""A long run of the state machine over every kind of table, which can be interrupted and continued.

    EVENTIDE_CAMPAIGN=40 python -m eventide.testing.campaign TALLY     # 40 times 50 examples of twenty steps of each kind

1. The examples of each kind are divided into parts of fifty. A part has a number, and always consists of the same examples.
2. The parts run on all processors, the first parts of all kinds before the second parts.
3. The coverage of a part, or its failure, is appended to TALLY as a line of JSON. A later run continues from there: it skips
   the parts that are listed, and runs an interrupted part again.

At the end, it prints what was reached for each kind. If an invariant was violated, it exits with 1, and TALLY contains the
shortest sequence of steps that violates it.
"""

import json
import os
import signal
import sys
import time
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TextIO

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from eventide.testing.state_machine import Configuration, configurations, table_machine

EXAMPLES = 50  # per part
STEPS = 20
_SHOWN = ("execute, done", "plans with left-overs", "plans with carried deletes", "clean, done", "crashes")


@dataclass(frozen=True, slots=True)
class Part:
    """Fifty examples of a kind of table."""

    configuration: str
    number: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a part. `failure` is the violated invariant with the steps that lead to it; None without a failure."""

    configuration: str
    number: int
    seed: int
    reach: Mapping[str, int]
    cpu_seconds: float
    failure: str | None

    @property
    def part(self) -> Part:
        return Part(self.configuration, self.number)


def run_examples(
    configuration: Configuration, reach: Counter[str], examples: int, seeded: int | None, *, shrinks: bool
) -> None:
    """Runs examples of twenty steps, the same for the same `seeded`. With `shrinks`, minimizes a failing example."""
    machine = table_machine(configuration, reach)
    run_state_machine_as_test(
        machine if seeded is None else seed(seeded)(machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            phases=[phase for phase in Phase if phase is not Phase.shrink or shrinks],
        ),
    )


def seed_of(part: Part) -> int:
    return zlib.crc32(f"{part.configuration} {part.number}".encode())


def run_part(part: Part) -> Outcome:
    """Runs the examples of a part, in this process."""
    (configuration,) = (kind for kind in configurations() if str(kind) == part.configuration)
    reach: Counter[str] = Counter()
    failure: str | None = None
    output, began = StringIO(), time.process_time()
    with redirect_stdout(output):  # Hypothesis prints the steps to a failure
        try:
            run_examples(configuration, reach, EXAMPLES, seed_of(part), shrinks=True)
        except Exception:
            failure = f"{output.getvalue()}\n{traceback.format_exc()}"
    return Outcome(
        part.configuration, part.number, seed_of(part), dict(reach), round(time.process_time() - began, 1), failure
    )


def run_campaign(
    tally: Path, parts: Sequence[Part], run: Callable[[Sequence[Part]], Iterator[Outcome]], out: TextIO
) -> bool:
    """Runs the parts that `tally` lacks. Returns whether all its parts, also earlier ones, passed."""
    known = {outcome.part for outcome in outcomes(tally)}
    waiting = [part for part in parts if part not in known]
    out.write(f"{len(parts) - len(waiting)} of {len(parts)} parts are in {tally}, {len(waiting)} are to be run\n")
    out.flush()
    for number, outcome in enumerate(run(waiting), 1):
        with tally.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(asdict(outcome)) + "\n")
        verdict = "kept every promise" if outcome.failure is None else "BROKE A PROMISE"
        out.write(
            f"{time.strftime('%H:%M:%S')} {number}/{len(waiting)} {outcome.configuration} part {outcome.number}: "
            f"{verdict}, {outcome.reach.get('examples', 0)} examples in {outcome.cpu_seconds} s\n"
        )
        out.flush()
    all_outcomes = tuple(outcomes(tally))
    _tell(all_outcomes, out)
    return all(outcome.failure is None for outcome in all_outcomes)


def outcomes(tally: Path) -> Iterator[Outcome]:
    """The outcomes in a tally. Skips an incomplete last line, and terminates it."""
    if not tally.exists():
        return
    text = tally.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        tally.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")
    for line in text.splitlines(keepends=True):
        if line.endswith("\n"):
            fields: dict[str, Any] = json.loads(line)
            yield Outcome(**fields)


def _tell(all_outcomes: Sequence[Outcome], out: TextIO) -> None:
    by_kind: dict[str, Counter[str]] = {}
    for outcome in all_outcomes:
        total = by_kind.setdefault(outcome.configuration, Counter())
        total.update(outcome.reach)
        total["failures"] += outcome.failure is not None
    for total in by_kind.values():
        # All invariants are checked after each; a step of the machine may consist of several.
        total["protocols run"] = sum(count for what, count in total.items() if f"{what}, done" in total)
    columns = ("examples", "steps", "protocols run", *_SHOWN, "failures")
    rows: list[tuple[str, ...]] = [("kind of table", *columns)]
    every: Counter[str] = sum(by_kind.values(), Counter())
    for kind, total in (*sorted(by_kind.items()), ("all", every)):
        rows.append((kind, *(str(total[what]) for what in columns)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows)
    out.writelines(f"{line.rstrip()}\n" for line in lines)
    seconds = sum(outcome.cpu_seconds for outcome in all_outcomes)
    out.write(f"{seconds:.0f} s of processor time, {seconds / max(every['examples'], 1):.2f} s an example\n")


def _on_all_processors(parts: Sequence[Part]) -> Iterator[Outcome]:
    # Python never frees a machine's class, about ten megabytes per part, so a process ends after a few parts.
    with get_context("spawn").Pool(os.cpu_count(), maxtasksperchild=8) as pool:
        yield from pool.imap_unordered(run_part, parts)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("give the file that keeps what was reached: python -m eventide.testing.campaign TALLY\n")
        return 2
    # On SIGTERM, it also ends its processes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    times = int(os.environ.get("EVENTIDE_CAMPAIGN", "1"))
    parts = [Part(str(kind), number) for number in range(times) for kind in configurations()]
    return 0 if run_campaign(Path(arguments[0]), parts, _on_all_processors, sys.stdout) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python -m benchmarks.fleet [--tables N] [--to DIRECTORY]`: prints the table of docs/fleet.md, draws its picture."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.fleet.simulation import (
    MINUTE_MS,
    Cron,
    LeastLaxity,
    Outcome,
    Policy,
    RoundRobin,
    SimulatedTable,
    fleet,
    simulate,
)
from benchmarks.picture import Curve, picture

LOADS = (0.5, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5)
HOURS = 24


def policies(workers: int) -> dict[str, Callable[[Sequence[SimulatedTable]], Policy]]:
    return {
        "eventide": lambda tables: LeastLaxity.of(tables, workers),
        "round-robin": RoundRobin,
        "cron": Cron,
    }


def outcomes(count: int, workers: int, load: float, hours: int) -> dict[str, Outcome]:
    until_ms = hours * 60 * MINUTE_MS
    return {
        name: simulate(tables, make(tables), workers, until_ms)
        for name, make in policies(workers).items()
        for tables in [fleet(count, load, workers, until_ms)]
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--hours", type=int, default=HOURS)
    parser.add_argument("--to", type=Path, default=Path("docs"))
    chosen = parser.parse_args()
    met: dict[str, list[float]] = {}
    print("| load | chosen by | time within the target | tables always within it | workers busy | compactions |")
    print("|---|---|---|---|---|---|")
    for load in LOADS:
        for name, found in outcomes(chosen.tables, chosen.workers, load, chosen.hours).items():
            met.setdefault(name, []).append(100 * found.met)
            print(
                f"| {load:.0%} | {name} | {found.met:.2%} | {found.tables_always_met:.1%} | {found.busy:.0%} | "
                f"{found.compactions:,} |",
                flush=True,
            )
    curves = [Curve(name, values) for name, values in met.items()]
    title = f"{chosen.tables:,} tables: percent of the time within the target, by load"
    (chosen.to / "fleet_targets.svg").write_text(picture(title, [100 * load for load in LOADS], curves), "utf-8")


if __name__ == "__main__":
    main()

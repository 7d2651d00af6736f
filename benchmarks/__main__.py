"""`python -m benchmarks [--records N] [--rounds N] [--only WORKLOAD] ...`: builds the tables, and runs everybody by turns.

What was measured goes to a JSON file of the place (`--place`), one sample a line, and is printed as the tables of README.md.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.peers import Peer, Place, build, peers_of, stock_hudi
from benchmarks.report import Sample, table_of
from benchmarks.workloads import FULL_RECORDS, Workload, workloads


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=FULL_RECORDS, help="of the plain table; the others in proportion"
    )
    parser.add_argument("--rounds", type=int, default=3, help="everybody runs in a new process that many times")
    parser.add_argument("--only", action="append", help="a workload; may be given several times")
    parser.add_argument("--task", action="append", help="the beginning of a task's name; may be given several times")
    parser.add_argument("--place", type=Path, default=Path("build/benchmarks"), help="where tables and results lie")
    chosen = parser.parse_args()
    found = workloads(chosen.records)
    for name in chosen.only or ():
        if name not in found:
            parser.error(f"no workload {name!r}; there are {', '.join(found)}")
    place = Place(chosen.place.resolve())
    (place.folder / "scratch").mkdir(parents=True, exist_ok=True)
    for name in chosen.only or found:
        workload = found[name]
        with stock_hudi(place) as stock:
            build(place, workload, stock)
        peers = [
            peer
            for peer in peers_of(workload)
            if not chosen.task or any(peer.task.startswith(beginning) for beginning in chosen.task)
        ]
        print(table_of(workload.name, measured(place, workload, peers, chosen.rounds)), flush=True)


def measured(place: Place, workload: Workload, peers: list[Peer], rounds: int) -> list[Sample]:
    """Each round everybody once, so that a slow hour is nobody's alone."""
    samples: list[Sample] = []
    with (place.folder / "samples.jsonl").open("a") as results:
        for round_number in range(rounds):
            for peer in peers:
                for cost in peer.run(place, workload):
                    sample = Sample(workload.name, workload.records, peer.task, peer.name, round_number, cost)
                    samples.append(sample)
                    results.write(json.dumps(asdict(sample)) + "\n")
                    results.flush()
    return samples


if __name__ == "__main__":
    main()

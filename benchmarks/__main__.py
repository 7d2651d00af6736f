"""`python -m benchmarks [--records N] [--rounds N] [--only WORKLOAD] ...`: builds the tables, and runs everybody by turns.

What was measured goes to a file of JSON lines, one sample each, and is printed as the tables of README.md. `--write` puts
the tables of everything that the file holds into README.md itself.
"""

import argparse
import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from benchmarks.peers import ROOT, Peer, Place, build, build_for, peers_of
from benchmarks.report import Sample, read_samples, table_of
from benchmarks.results import with_results
from benchmarks.workloads import FULL_RECORDS, Workload, workloads


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=FULL_RECORDS, help="of the plain table; the others in proportion"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="everybody runs in a new process that many times; 0: no one"
    )
    parser.add_argument("--only", action="append", help="a workload; may be given several times")
    parser.add_argument(
        "--task", action="append", help="a task, or a pattern (compaction*); may be given several times"
    )
    parser.add_argument(
        "--peer", action="append", help="a contestant, or a pattern (stock*); may be given several times"
    )
    parser.add_argument("--place", type=Path, default=Path("build/benchmarks"), help="where tables and results lie")
    parser.add_argument("--samples", type=Path, help="the file of samples, in place of samples.jsonl there")
    parser.add_argument("--write", action="store_true", help="write the results of that file into README.md")
    chosen = parser.parse_args()
    found = workloads(chosen.records)
    for name in chosen.only or ():
        if name not in found:
            parser.error(f"no workload {name!r}; there are {', '.join(found)}")
    place = Place(chosen.place.resolve())
    (place.directory / "scratch").mkdir(parents=True, exist_ok=True)
    samples = chosen.samples or place.directory / "samples.jsonl"
    for workload in (found[name] for name in chosen.only or found) if chosen.rounds else ():
        peers = [
            peer
            for peer in peers_of(workload)
            if _is_chosen(peer.task, chosen.task) and _is_chosen(peer.name, chosen.peer)
        ]
        build(place, workload)
        build_for(place, workload, peers)
        print(table_of(workload.name, measured(place, workload, peers, chosen.rounds, samples)), flush=True)
    if chosen.write:
        readme = ROOT / "benchmarks" / "README.md"
        names = list(found)
        everything = [sample for sample in read_samples(samples) if sample.records == found[sample.workload].records]
        everything.sort(key=lambda sample: names.index(sample.workload))
        sizes = {name: place.base_bytes(found[name]) for name in {sample.workload for sample in everything}}
        readme.write_text(with_results(readme.read_text(encoding="utf-8"), everything, sizes), encoding="utf-8")


def measured(place: Place, workload: Workload, peers: list[Peer], rounds: int, file: Path) -> list[Sample]:
    """Each round everybody once, so that a slow hour is nobody's alone."""
    samples: list[Sample] = []
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    with file.open("a") as results:
        for round_number in range(rounds):
            for peer in peers:
                for cost in peer.run(place, workload):
                    sample = Sample(workload.name, workload.records, peer.task, peer.name, day, round_number, cost)
                    samples.append(sample)
                    results.write(json.dumps(asdict(sample)) + "\n")
                    results.flush()
    return samples


def _is_chosen(name: str, patterns: Sequence[str] | None) -> bool:
    return patterns is None or any(fnmatchcase(name, pattern) for pattern in patterns)


if __name__ == "__main__":
    main()

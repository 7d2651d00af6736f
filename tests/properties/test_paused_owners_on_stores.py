"""A process that stands still before a write on a real store, and wakes up after others have gone on, harms nobody.

The process and the others work on the store. What they leave is checked as in test_paused_owners, in memory.
"""

from pathlib import Path

import pytest

from eventide.testing.histories import Layout
from eventide_adapters.storage.faulty import Operation
from eventide_core.table.timeline.contents.plans import CutMode
from support.pasts.served import EARLY, LAYOUTS, begin_past, clean
from support.pauses.standstill import OWN, compact, ingest, wakings, wrong
from support.run.reach import reached
from support.tables.backends import backend
from support.tables.store_bench import StoreBench

EVERY, COMPLETED = "before every write", "before the completed file"


def _is_completed_file(operation: Operation) -> bool:
    return operation.path.endswith((".deltacommit", ".commit"))


CASES = [
    *(
        pytest.param(COMPLETED, store, verb, LAYOUTS[-1], id=f"{store}-{verb}-{COMPLETED}", marks=pytest.mark.broad)
        for store, verb in (("moto", "ingest"), ("fake_gcs", "compact"), ("azurite", "ingest"), ("hdfs", "compact"))
    ),
    *(
        pytest.param(EVERY, store, verb, layout, id=f"{store}-{verb}-v{layout.version}", marks=pytest.mark.proof)
        for store in ("moto", "fake_gcs", "azurite", "hdfs")
        for verb in ("ingest", "compact")
        for layout in LAYOUTS
    ),
]


@pytest.mark.parametrize(("where", "store", "verb", "layout"), CASES)
def test_what_wakes_up_on_a_store_harms_nobody(
    where: str, store: str, verb: str, layout: Layout, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    past = begin_past(clean, layout)
    before = frozenset(row[:-1] for row in past.story.oracle.snapshot())
    bench = StoreBench(store, EARLY, new_place=lambda: backend(store, request, tmp_path).storage)
    protocol, own = (ingest(OWN), OWN) if verb == "ingest" else (compact(16, CutMode.FILE), ())
    at = _is_completed_file if where == COMPLETED else lambda _: True
    ends = set[bool]()
    for woken in wakings(bench, past.start, protocol, at=at, meanwhile=lambda others: others.go_on(2)):
        problem = wrong(past.bench, woken, before, own)
        assert problem is None, f"{woken.number}: {woken.operation} ended in {woken.failure!r}: {problem}"
        ends.add(woken.failure is None)
        reached(f"paused on {store}, version {layout.version}: {verb}")
    assert ends
    assert where == COMPLETED or False in ends

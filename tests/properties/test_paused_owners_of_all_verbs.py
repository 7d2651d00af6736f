"""Whatever verb a process stands still in, and whatever others make of what it left: when it wakes up, it harms nobody.

The others roll back what it left, run its plan as it is, or call the same verb again; then they write, compact, clean and
archive beyond it. Every acknowledged row is there and no other, what reported success has its effect, `verify` finds
nothing, and nothing that the process left stops the others.
"""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from eventide.testing.histories import Layout
from support.pasts.served import LAYOUTS
from support.pauses.scenes import SCENES, kinds_of, scene
from support.pauses.standstill import Kind
from support.run.reach import reached

pytestmark = pytest.mark.slow

TABLES: dict[str, tuple[Layout, ...]] = {
    "BUCKET": LAYOUTS,
    "SIMPLE": tuple(replace(layout, index="SIMPLE") for layout in LAYOUTS),
    "metadata table": tuple(replace(layout, has_metadata_table=True) for layout in LAYOUTS),
}
LOOKS_UP_KEYS = ("compact", "ingest", "overwrite", "update", "merge", "alter", "restore")
"""The verbs for which the index of a table makes a difference, and one of each other kind that the others' writes follow."""
ALWAYS = {
    (9, "BUCKET", "compact", Kind.EXECUTE),
    (9, "BUCKET", "save", Kind.UNDO),
    (9, "BUCKET", "restore", Kind.FINISH),
    (6, "BUCKET", "run a plan of Hudi", Kind.EXECUTE),
}
"""What `./run test` tries."""
BROAD = {
    ("BUCKET", "compact", Kind.UNDO),
    ("BUCKET", "compact", Kind.FINISH),
    ("BUCKET", "compact exactly", Kind.UNDO),
    ("BUCKET", "run a plan of Hudi", Kind.FINISH),
    ("BUCKET", "overwrite", Kind.FINISH),
    ("BUCKET", "update", Kind.UNDO),
    ("BUCKET", "merge", Kind.UNDO),
    ("metadata table", "compact", Kind.EXECUTE),
}
"""What `./run test broad` tries on version 9; all others belong to the proof."""


def cases() -> Iterator[object]:
    for verb in SCENES:
        for index, layouts in TABLES.items():
            if index == "SIMPLE" and verb not in LOOKS_UP_KEYS:
                continue
            for layout in layouts:
                for kind in kinds_of(verb):
                    is_broad = layout.version == 9 and (index, verb, kind) in BROAD
                    rarely = pytest.mark.broad if is_broad else pytest.mark.proof
                    marks = () if (layout.version, index, verb, kind) in ALWAYS else (rarely,)
                    yield pytest.param(verb, layout, kind, id=f"{layout.version}-{index}-{verb}-{kind}", marks=marks)


@pytest.mark.parametrize(("verb", "layout", "kind"), list(cases()))
def test_a_process_that_wakes_up_harms_nobody(verb: str, layout: Layout, kind: Kind) -> None:
    places, problems = scene(verb, layout).problems(kind)
    reached(f"paused, others {kind}: {verb}", places)
    assert places > 3
    assert not problems, f"{len(problems)} of {places} places:\n" + "\n".join(problems)

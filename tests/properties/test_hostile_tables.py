"""Hostile tables: names that lead outside, and names of code, have no effect."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.config import PENDING_SERVICE_STALE_MS
from eventide_core.errors import EventideError
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.contents.rollback_metadata import RollbackPlan, RollbackRequest, RollbackTarget
from eventide_core.table.timeline.instant import Action
from support.pasts import golden

CODEC = HudiMetadataCodec()
INSTANT = "20261122000000000"
CANARY = "00000000-0000-0000-0000-000000000000-0_0-0-0_20200101000000000.parquet"
PARTITIONS = ("..", "part=a/../..", "/", "file:", "part=a\\..\\..")


def clean_plan(partition: str) -> Mapping[str, bytes]:
    plan = CleanPlan(INSTANT, CleaningPolicy.COMMITS, None, "", {partition: (CANARY,)})
    return {f"{INSTANT}.clean.requested": CODEC.encode_clean_plan(plan, ""), f"{INSTANT}.clean.inflight": b""}


def rollback_plan(partition: str) -> Mapping[str, bytes]:
    target = RollbackTarget("20200101000000000", Action.DELTA_COMMIT)
    plan = RollbackPlan(INSTANT, target, (RollbackRequest(partition, CANARY[:38], "20200101000000000", (CANARY,)),))
    return {f"{INSTANT}.rollback.requested": CODEC.encode_rollback_plan(plan, ""), f"{INSTANT}.rollback.inflight": b""}


@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize(
    ("pending", "run"),
    [(clean_plan, lambda table: table.clean(1)), (rollback_plan, lambda table: table.rollback(INSTANT))],
    ids=["clean", "rollback"],
)
def test_a_plan_whose_partition_leads_outside_deletes_nothing_there(
    pending: Callable[[str], Mapping[str, bytes]], run: Callable[[Table], object], partition: str, tmp_path: Path
) -> None:
    """What is in the way outside stays; what a plan that is believed in part has done inside is what it was for."""
    path = golden.unpack("v9_no_deletes", tmp_path)
    canary = tmp_path / CANARY
    canary.write_bytes(b"outside")
    for name, data in pending(partition).items():
        (path / ".hoodie" / "timeline" / name).write_bytes(data)
    table = Table.open(str(path), {PENDING_SERVICE_STALE_MS: 0})  # whoever began the plan is gone
    with pytest.raises(EventideError) as refused:
        run(table)
    assert refused.value.exit_code == 2
    assert canary.read_bytes() == b"outside"
    table.verify(deep=True)


def test_no_class_that_a_table_names_is_ever_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module would be found, and would say that it was imported."""
    (tmp_path / "hostile_code.py").write_text("raise SystemExit('the table gave an order')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = golden.unpack("v9_no_deletes", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    named = (
        "hoodie.write.lock.provider=hostile_code:factory",
        "hoodie.compaction.strategy=hostile_code.Strategy",
        "hoodie.table.keygenerator.class=hostile_code.KeyGenerator",
        "hoodie.index.class=hostile_code.Index",
        "hoodie.table.legacy.payload.class=hostile_code.Payload",
    )
    kept = [
        line
        for line in properties.read_text().splitlines()
        if line.partition("=")[0] not in {n.partition("=")[0] for n in named}
    ]
    properties.write_text("\n".join([*kept, *named]) + "\n")
    table = Table.open(str(path))
    attempts: tuple[Callable[[], object], ...] = (
        lambda: table.snapshot().to_arrow(),
        lambda: table.compact(table.plan_compaction(1_700_001_500_000)),
        lambda: table.clean(1),
        lambda: table.verify(deep=True),
    )
    for attempt in attempts:
        try:
            attempt()
        except EventideError:
            continue
    assert "hostile_code" not in sys.modules

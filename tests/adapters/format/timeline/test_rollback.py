"""Rollbacks as Hudi writes them are read, and written in the form in which Hudi reads them."""

from pathlib import Path

import pytest

from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.format.timeline.container import read_container
from eventide_core.errors import CorruptTimelineError, UnsafePathError
from eventide_core.table.timeline.contents.rollback_metadata import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RollbackTarget,
    RolledBackPartition,
)
from eventide_core.table.timeline.instant import Action
from support.pasts import golden

CODEC = HudiMetadataCodec()
ROOT = "file:///lake/trips"
TARGET = RollbackTarget("20261121091030640", Action.DELTA_COMMIT)
BASE = "f1-0_0-1-0_20261121091030640.parquet"
LOG = ".f2-0_20261121091029183.log.3_1-1029-1713"
COMMAND = ".f2-0_20261121091029183.log.4_1-0-1"


def test_a_rollback_of_hudi_0_takes_blocks_back(tmp_path: Path) -> None:
    table = golden.unpack("v6_rolled_back", tmp_path) / ".hoodie"
    requested = (table / "20261121091031101.rollback.requested").read_bytes()
    plan = CODEC.decode_rollback_plan(requested, "r", "20261121091031101")
    assert plan.target == TARGET
    assert {request.partition for request in plan.requests} == {"part=a", "part=b"}
    assert all(len(request.log_blocks) == 1 and not request.deleted for request in plan.requests)
    done = CODEC.decode_rollback((table / "20261121091031101.rollback").read_bytes(), "r")
    assert done.targets == (TARGET,)
    assert all(sum(partition.rollback_logs.values()) == 210 for partition in done.partitions.values())


def test_a_rollback_of_hudi_1_deletes_logs(tmp_path: Path) -> None:
    table = golden.unpack("v9_rolled_back", tmp_path) / ".hoodie" / "timeline"
    data = (table / "20261121092350833.rollback.requested").read_bytes()
    plan = CODEC.decode_rollback_plan(data, "r", "20261121092350833")
    assert len(plan.deleted_paths) == 4
    assert all(path.startswith("part=") and "_20261121092350265.log.1_" in path for path in plan.deleted_paths)


def test_what_is_written_is_read_back() -> None:
    plan = RollbackPlan(
        "20261121091031101",
        TARGET,
        (RollbackRequest("p=1", "f2-0", "20261121091029183", log_blocks={LOG: 9}), _deletes("p=1", BASE)),
    )
    assert CODEC.decode_rollback_plan(CODEC.encode_rollback_plan(plan, ROOT), "r", plan.instant) == plan
    done = RollbackMetadata(plan.instant, (TARGET,), {"p=1": RolledBackPartition((BASE,), {COMMAND: 105}, {LOG: 9})})
    assert CODEC.decode_rollback(CODEC.encode_rollback(done, ROOT), "r") == done


@pytest.mark.parametrize(
    ("root", "path"),
    [("file:///lake/trips", f"/lake/trips/p=1/{BASE}"), ("s3://lake/trips/", f"s3://lake/trips/p=1/{BASE}")],
)
def test_hudi_is_reported_where_the_files_lie(root: str, path: str) -> None:
    plan = RollbackPlan("20261121091031101", TARGET, (_deletes("p=1", BASE),))
    (request,) = read_container(CODEC.encode_rollback_plan(plan, root), "r").documents("RollbackRequests")
    assert request.texts("filesToBeDeleted") == (path,)


@pytest.mark.parametrize("name", ["hoodie.properties", "..", "x.parquet", ".hoodie_partition_metadata"])
def test_a_plan_that_names_another_kind_of_file_is_not_believed(name: str) -> None:
    data = CODEC.encode_rollback_plan(RollbackPlan("20261121091031101", TARGET, (_deletes("p=1", name),)), ROOT)
    with pytest.raises(UnsafePathError):
        CODEC.decode_rollback_plan(data, "r", "20261121091031101")


def test_a_plan_of_hudi_that_names_the_tables_own_path_rolls_the_slices_blocks_back() -> None:
    """With hoodie.rollback.using.markers=false, if the write died before it said which log files it appends to."""
    named = RollbackRequest("p=1", "f2-0", "20261121091029183", log_blocks={"/lake/trips": 7})
    data = CODEC.encode_rollback_plan(RollbackPlan("20261121091031101", TARGET, (named,)), ROOT)
    (request,) = CODEC.decode_rollback_plan(data, "r", "20261121091031101").requests
    assert (request.deleted, dict(request.log_blocks)) == ((), {})
    assert request.rolls_back_blocks


@pytest.mark.parametrize(
    "name", ["hoodie.properties", "/lake/trips/p=1/..", "/lake/.hoodie", ".hoodie_partition_metadata"]
)
def test_a_plan_that_rolls_back_the_blocks_of_another_kind_of_file_is_not_believed(name: str) -> None:
    named = RollbackRequest("p=1", "f2-0", "20261121091029183", log_blocks={name: 1})
    data = CODEC.encode_rollback_plan(RollbackPlan("20261121091031101", TARGET, (named,)), ROOT)
    with pytest.raises(UnsafePathError):
        CODEC.decode_rollback_plan(data, "r", "20261121091031101")


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"{}"])
def test_torn_bytes_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTimelineError):
        CODEC.decode_rollback_plan(data, "r", "20261121091031101")
    with pytest.raises(CorruptTimelineError):
        CODEC.decode_rollback(data, "r")


def _deletes(partition: str, name: str) -> RollbackRequest:
    return RollbackRequest(partition, "f1-0", "20261121091030640", deleted=(name,))

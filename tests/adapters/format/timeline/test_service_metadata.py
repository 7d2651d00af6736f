"""Cleans, savepoints and restores are written in the form in which Hudi reads them, and read back."""

from uuid import UUID

import pytest

from eventide_adapters.format.timeline.clean import decode_clean
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.format.timeline.container import ContainerSchema, read_container, write_container
from eventide_core.errors import CorruptTimelineError, UnsafePathError
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.contents.rollback_metadata import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackTarget,
    RolledBackPartition,
)
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.instant import Action, Instant, State

CODEC = HudiMetadataCodec()
BASE = "f1-0_0-1-0_20261121091030640.parquet"
EARLIEST = Instant("20261121091030640", Action.COMMIT, State.COMPLETED)
TARGET = RollbackTarget("20261121091030640", Action.DELTA_COMMIT)


@pytest.mark.parametrize("earliest", [EARLIEST, None])
def test_a_clean_plan_is_read_back(earliest: Instant | None) -> None:
    saved, until = ("20261121091030000",), Instant("20261121091020000", Action.DELTA_COMMIT, State.COMPLETED)
    plan = CleanPlan("20261121091031101", CleaningPolicy.HOURS, earliest, "", {"p=1": (BASE,)}, saved, until)
    data = CODEC.encode_clean_plan(plan, "file:///lake/trips")
    assert CODEC.decode_clean_plan(data, "c", plan.instant) == plan
    record = read_container(data, "c")
    assert record.document("earliestInstantToRetain").text("timestamp") == until.requested_time
    files = record.document("filePathsToBeDeletedPerPartition")
    (for_hudi,) = [document.text("filePath") for document in files.documents("p=1")]
    assert for_hudi == f"/lake/trips/p=1/{UUID(int=0)}-0_0-0-0_20261121091031101.parquet"  # which nobody makes


def test_a_clean_plan_of_hudi_is_read() -> None:
    plan = CleanPlan(
        "20261121091031101", CleaningPolicy.COMMITS, EARLIEST, "20261121091030640", {"p=1": (BASE,)}, (), EARLIEST
    )
    record = dict(read_container(CODEC.encode_clean_plan(plan, ""), "c").values)
    files = {"p=1": [{"filePath": f"hdfs://lake/trips/p=1/{BASE}", "isBootstrapBaseFile": False}]}
    record |= {"filePathsToBeDeletedPerPartition": files, "extraMetadata": None}
    data = write_container(ContainerSchema.named("cleaner_plan"), record)
    assert CODEC.decode_clean_plan(data, "c", plan.instant) == plan


@pytest.mark.parametrize("text", ["{", "3", '{"p=1": 3}', "[" * 100_000])
def test_files_of_a_clean_that_make_no_sense_are_corrupt(text: str) -> None:
    plan = CleanPlan("20261121091031101", CleaningPolicy.COMMITS, EARLIEST, "", {"p=1": (BASE,)})
    record = dict(read_container(CODEC.encode_clean_plan(plan, ""), "c").values)
    data = write_container(
        ContainerSchema.named("cleaner_plan"), record | {"extraMetadata": {"eventide.deleted": text}}
    )
    with pytest.raises(CorruptTimelineError):
        CODEC.decode_clean_plan(data, "c", plan.instant)


def test_a_completed_clean_is_read_back() -> None:
    earliest = Instant("20261121091030000", Action.COMMIT, State.COMPLETED)
    for since in (None, earliest):
        plan = CleanPlan("20261121091031101", CleaningPolicy.FILE_VERSIONS, since, "20261121091030640", {"": (BASE,)})
        assert decode_clean(CODEC.encode_clean(plan), "c") == plan


def test_a_completed_clean_of_hudi_shows_that_eventide_planned_it() -> None:
    """Whether or not it has the extra metadata of the plan, which Hudi 0.14 doesn't copy."""
    instant = "20261121091031101"
    nothing = f"{UUID(int=0)}-0_0-0-0_{instant}.parquet"
    for name, is_left in ((nothing, True), (f"file:/lake/trips/p=1/{nothing}", True), (BASE, False)):
        done = CleanPlan(instant, CleaningPolicy.COMMITS, EARLIEST, "", {"p=1": (name,)})
        assert decode_clean(CODEC.encode_clean(done), "c").is_left == is_left


def test_a_savepoint_is_read_back() -> None:
    metadata = SavepointMetadata("me", 1_795_265_077_815, "before the change", {"p=1": (BASE,)})
    assert CODEC.decode_savepoint(CODEC.encode_savepoint(metadata), "s") == metadata
    assert metadata.paths == {f"p=1/{BASE}"}


def test_a_restore_is_read_back() -> None:
    plan = RestorePlan("20261121091031101", "20261121091030000", (TARGET,))
    assert CODEC.decode_restore_plan(CODEC.encode_restore_plan(plan), "r", plan.instant) == plan
    done = RestoreMetadata(
        plan.instant, (RollbackMetadata(plan.instant, (TARGET,), {"p=1": RolledBackPartition((BASE,))}),)
    )
    record = read_container(CODEC.encode_restore(done, "file:///lake/trips"), "r")
    assert record.texts("instantsToRollback") == (TARGET.instant,)
    (undone,) = record.document("hoodieRestoreMetadata").documents(TARGET.instant)
    assert undone.document("partitionMetadata").document("p=1").texts("successDeleteFiles") == (
        f"/lake/trips/p=1/{BASE}",
    )


@pytest.mark.parametrize("name", ["..", "hoodie.properties", "a/../../x.parquet"])
def test_a_name_that_is_no_data_file_is_not_believed(name: str) -> None:
    plan = CleanPlan("20261121091031101", CleaningPolicy.COMMITS, None, "", {"p=1": (name,)})
    with pytest.raises(UnsafePathError):
        CODEC.decode_clean_plan(CODEC.encode_clean_plan(plan, "file:///lake"), "c", plan.instant)
    with pytest.raises(UnsafePathError):
        CODEC.decode_savepoint(CODEC.encode_savepoint(SavepointMetadata("", 0, "", {"p=1": (name,)})), "s")


@pytest.mark.parametrize("data", [b"", b"Obj\x01", b"{}"])
def test_torn_bytes_are_corrupt(data: bytes) -> None:
    for decode in (CODEC.decode_clean_plan, CODEC.decode_restore_plan):
        with pytest.raises(CorruptTimelineError):
            decode(data, "x", "20261121091031101")
    for torn in (CODEC.decode_savepoint, decode_clean):
        with pytest.raises(CorruptTimelineError):
            torn(data, "x")

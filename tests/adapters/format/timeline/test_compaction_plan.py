"""Compaction plans: they are read back, never name a file outside their file group, and Hudi's plans are ForeignPlans."""

import dataclasses
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.timeline import compaction_plan as plan_avro
from eventide_core.errors import (
    CorruptTimelineError,
    EventideError,
    RefusedError,
    UnsafePathError,
    UnsupportedTableError,
)
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    CutMode,
    FallbackReason,
    ForeignPlan,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)
from support.faults.edited_bytes import edited
from support.files.compaction_plans import CODEC, REQUESTED, C, changed_plan, plan_record, sample_plan

DATA = Path(__file__).parent / "data"

sizes = st.integers(0, 2**40)
moments = st.none() | st.integers(-(10**15), 10**15)
ranges = st.builds(EventTimeRange, moments, moments, st.integers(0, 10**9))
file_ids = st.from_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9]", fullmatch=True)
partitions = st.sampled_from(["", "part=a", "dt=2026-11-21/hr=10:30", "stadt=Köln ü%20"])
reasons = st.text(max_size=40)


@st.composite
def operations(draw: st.DrawFn, link_mode: LinkMode) -> PlannedOperation:
    partition, file_id = draw(partitions), draw(file_ids)

    def path(name: object) -> str:
        return f"{partition}/{name}" if partition else str(name)

    count = draw(st.integers(0, 5))
    logs = [
        PlannedLog(
            path(LogFileName(file_id, "20261121000000000", number, "1-2-3")), draw(sizes), draw(st.none() | ranges)
        )
        for number in range(1, count + 1)
    ]
    split = draw(st.integers(0, count))
    has_base, has_links = draw(st.booleans()), link_mode is not LinkMode.PREFIX
    carries = draw(st.booleans())
    return PlannedOperation(
        partition=partition,
        file_id=file_id,
        base_instant="20261121000000000",
        base_path=path(BaseFileName(file_id, "0-1-0", "20261121000000000")) if has_base else None,
        base_size=draw(sizes) if has_base else 0,
        compacted=tuple(logs[:split]),
        left_overs=tuple(
            LeftOver(
                log,
                str(LogFileName(file_id, C, 0, f"{number:05d}-0-1")) if has_links else None,
                delete_count=draw(st.none() | sizes),
            )
            for number, log in enumerate(logs[split:], start=1)
        ),
        new_base_name=str(BaseFileName(file_id, "7-7-7", C)),
        carried_name=str(LogFileName(file_id, C, 0, "00000-0-1")) if carries else None,
        fallback=draw(st.none() | st.sampled_from(FallbackReason)),
        reason=draw(reasons),
        rests_on_no_deletes=draw(st.booleans()),
    )


@st.composite
def plans(draw: st.DrawFn) -> CompactionPlan:
    link_mode = draw(st.sampled_from(LinkMode))
    return CompactionPlan(
        instant=C,
        cut_ms=draw(st.none() | st.integers(-(10**15), 10**15)),
        cut=draw(st.sampled_from(CutMode)),
        link_mode=link_mode,
        link_reason=draw(reasons),
        event_time_field=draw(st.none() | reasons),
        operations=tuple(draw(st.lists(operations(link_mode), max_size=3))),
        schema=AvroSchema.of(draw(reasons)),
        partitions_with_logs=tuple(draw(st.lists(reasons, max_size=3))),
    )


@given(plans())
def test_a_plan_reads_back_as_it_was_written(plan: CompactionPlan) -> None:
    assert CODEC.decode_plan(CODEC.encode_plan(plan), REQUESTED, C) == plan


@pytest.mark.parametrize("link_mode", [LinkMode.COPY, LinkMode.HARDLINK, LinkMode.SYMLINK])
def test_a_stock_engine_is_reported_to_merge_all_logs_where_left_overs_get_names(link_mode: LinkMode) -> None:
    _, record = plan_record(CODEC.encode_plan(sample_plan(link_mode)))
    (operation,) = record["operations"]
    assert operation["deltaFilePaths"] == [f".f-1_20261121000000000.log.{n}_1-2-3" for n in (1, 2, 3)]
    assert operation["symlinkOperations"] == [
        {"symlink": f".f-1_{C}.log.0_00001-0-1", "target": ".f-1_20261121000000000.log.3_1-2-3"}
    ]
    assert operation["metrics"] == {
        "TOTAL_LOG_FILES": 3.0,
        "TOTAL_IO_MB": 6.0,
        "TOTAL_IO_READ_MB": 3.0,
        "TOTAL_LOG_FILES_SIZE": 6000.0,
        "TOTAL_IO_WRITE_MB": 3.0,
    }


def test_a_stock_engine_is_reported_to_merge_only_what_a_back_dated_plan_merges() -> None:
    _, record = plan_record(CODEC.encode_plan(sample_plan(LinkMode.PREFIX)))
    (operation,) = record["operations"]
    assert operation["deltaFilePaths"] == [f".f-1_20261121000000000.log.{n}_1-2-3" for n in (1, 2)]
    assert operation["symlinkOperations"] is None
    assert operation["dataFilePath"] == "f-1_0-1-0_20261121000000000.parquet"
    assert operation["metrics"]["TOTAL_LOG_FILES"] == 2.0


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_has_hudis_fields_and_one_of_its_own(version: int) -> None:
    theirs, _ = plan_record((DATA / f"v{version}.compaction.requested").read_bytes())
    ours, record = plan_record(CODEC.encode_plan(sample_plan()))

    def fields(schema: Any) -> dict[str, Any]:
        return {field["name"]: field for field in schema["fields"]}

    def operation(schema: Any) -> dict[str, Any]:
        return fields(fields(schema)["operations"]["type"][1]["items"])

    later = {"missingSchedulePartitions"} if version == 6 else set()
    assert set(fields(ours)) - later == set(fields(theirs))
    assert set(operation(ours)) == set(operation(theirs)) | {"symlinkOperations"}
    for name, field in operation(theirs).items():
        assert operation(ours)[name] == field
    assert record["version"] == 2


@pytest.mark.parametrize("version", [6, 9])
def test_a_plan_of_hudi_is_a_foreign_one_with_its_file_groups(version: int) -> None:
    plan = CODEC.decode_plan((DATA / f"v{version}.compaction.requested").read_bytes(), REQUESTED, C)
    assert isinstance(plan, ForeignPlan)
    assert plan.instant == C
    assert len(set(plan.file_groups)) == 4
    assert {partition for partition, _ in plan.file_groups} == {"part=a", "part=b"}


def _plan_of_later_hudi(operation_type: str | None, plan_type: str | None, version: int) -> bytes:
    """A plan with two fields that Hudi 1.2 doesn't have, as Hudi plans it for table version 10."""
    schema, record = plan_record((DATA / "v9.compaction.requested").read_bytes())
    operation = schema["fields"][0]["type"][1]["items"]
    for owner, name in ((operation, "operationType"), (schema, "planType")):
        owner["fields"].append({"name": name, "type": ["null", "string"], "default": None})
    record["operations"][-1]["operationType"] = operation_type
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [record | {"planType": plan_type, "version": version}])
    return stream.getvalue()


def test_a_plan_of_a_later_hudi_that_states_nothing_new_is_run() -> None:
    plan = CODEC.decode_plan(_plan_of_later_hudi(None, None, 2), REQUESTED, C)
    assert isinstance(plan, ForeignPlan)
    assert len(plan.file_groups) == 4


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        (("LOG", None, 2), "operationType='LOG'"),
        ((None, "HYBRID", 2), "planType='HYBRID'"),
        ((None, None, 3), "version=3"),
    ],
)
def test_a_plan_of_a_later_hudi_is_refused_by_what_it_states(
    stated: tuple[str | None, str | None, int], named: str
) -> None:
    with pytest.raises(UnsupportedTableError, match=f"the plan states {named}, which Hudi up to 1.2 does not know"):
        CODEC.decode_plan(_plan_of_later_hudi(*stated), REQUESTED, C)


def test_a_plan_whose_commit_might_be_too_large_to_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = CODEC.encode_plan(sample_plan())
    monkeypatch.setattr(plan_avro, "PLAN_BYTES_MAX", len(data))
    assert len(CODEC.encode_plan(sample_plan())) == len(data)
    monkeypatch.setattr(plan_avro, "PLAN_BYTES_MAX", len(data) - 1)
    with pytest.raises(RefusedError, match="BoundedIOCompactionStrategy"):
        CODEC.encode_plan(sample_plan())


def test_a_plan_of_a_later_eventide_is_refused() -> None:
    data = changed_plan(lambda record, _: record["extraMetadata"].update({"eventide.format": "2"}))
    with pytest.raises(UnsupportedTableError, match="'2'"):
        CODEC.decode_plan(data, REQUESTED, C)


OUTSIDE = [
    "../f-1_0-1-0_20261121000000000.parquet",
    "..",
    "",
    "/etc/passwd",
    "/f-1_0-1-0_20261121000000000.parquet",
    "x/f-1_0-1-0_20261121000000000.parquet",
    "..\\f-1_0-1-0_20261121000000000.parquet",
    "C:\\f-1_0-1-0_20261121000000000.parquet",
    "s3://other/f-1_0-1-0_20261121000000000.parquet",
    "f-1\0_0-1-0_20261121000000000.parquet",
    "f-1_0-1-0_20261121000000000.parquet\n",
    "f-2_0-1-0_20261121000000000.parquet",
    ".f-1_20261121000000000.log.1_1-2-3/../../x",
    "../.f-1_20261121000000000.log.1_1-2-3",
    "x/.f-1_20261121000000000.log.1_1-2-3",
    "s3://other/.f-1_20261121000000000.log.1_1-2-3",
    ".f-1_20261121000000000.log.1_1-2-3\0",
    ".f-2_20261121000000000.log.1_1-2-3",
    ".f-1_20261121000000000.log.1_1-2-3\n",
]


def _set_base(record: Any, _: Any, name: str) -> None:
    record["operations"][0]["dataFilePath"] = name


def _set_log(record: Any, details: Any, name: str) -> None:
    record["operations"][0]["deltaFilePaths"][0] = name
    details[0]["compacted"][0]["name"] = name


def _set_left_over(record: Any, details: Any, name: str) -> None:
    record["operations"][0]["deltaFilePaths"][2] = name
    record["operations"][0]["symlinkOperations"][0]["target"] = name
    details[0]["remaining"][0]["name"] = name


def _set_linked(record: Any, details: Any, name: str) -> None:
    record["operations"][0]["symlinkOperations"][0]["symlink"] = name
    details[0]["remaining"][0]["linked"] = name


def _set_new_base(_: Any, details: Any, name: str) -> None:
    details[0]["new_base"] = name


def _set_carried(_: Any, details: Any, name: str) -> None:
    details[0]["carried"] = name


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("place", [_set_base, _set_log, _set_left_over, _set_linked, _set_new_base, _set_carried])
def test_a_name_that_is_no_file_of_the_file_group_is_refused(name: str, place: Callable[[Any, Any, str], None]) -> None:
    data = changed_plan(lambda record, details: place(record, details, name))
    with pytest.raises(UnsafePathError, match=r"compaction\.requested"):
        CODEC.decode_plan(data, REQUESTED, C)


@pytest.mark.parametrize("place", [_set_linked, _set_new_base, _set_carried])
def test_a_planned_file_has_the_instant_of_its_plan(place: Callable[[Any, Any, str], None]) -> None:
    other = "20261121000000000"
    is_base = place is _set_new_base
    name = f"f-1_7-7-7_{other}.parquet" if is_base else f".f-1_{other}.log.0_00001-0-1"
    with pytest.raises(UnsafePathError, match=C):
        CODEC.decode_plan(changed_plan(lambda record, details: place(record, details, name)), REQUESTED, C)


@pytest.mark.parametrize(
    "partition", ["..", "../x", "a/../b", "/a", "a//b", "a/", ".", "a\\..\\b", "s3://b/x", "file:/x", "a\0b", "C:x"]
)
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_partition_outside_the_table_is_refused(partition: str, is_ours: bool) -> None:
    def change(record: Any, _: Any) -> None:
        record["operations"][0]["partitionPath"] = partition
        if not is_ours:
            record["extraMetadata"].clear()

    with pytest.raises(UnsafePathError, match="outside the table"):
        CODEC.decode_plan(changed_plan(change), REQUESTED, C)


def _swap(record: Any, _: Any) -> None:
    record["operations"][0]["deltaFilePaths"].reverse()


def _forget_link(record: Any, _: Any) -> None:
    record["operations"][0]["symlinkOperations"] = []


def _forget_operation(record: Any, _: Any) -> None:
    record["operations"].clear()


def _no_link(record: Any, details: Any) -> None:
    details[0]["remaining"][0]["linked"] = None
    record["operations"][0]["symlinkOperations"][0]["symlink"] = None


def _negative_size(_: Any, details: Any) -> None:
    details[0]["compacted"][0]["size"] = -1


def _negative_base_size(_: Any, details: Any) -> None:
    details[0]["base_size"] = -1


def _huge_size(_: Any, details: Any) -> None:
    details[0]["compacted"][0]["size"] = 2**63


def _unknown_fallback(_: Any, details: Any) -> None:
    details[0]["fallback"] = "because"


def _bad_cut(record: Any, _: Any) -> None:
    record["extraMetadata"]["eventide.cut_ms"] = "soon"


def _bad_mode(record: Any, _: Any) -> None:
    record["extraMetadata"]["eventide.link.mode"] = "teleport"


def _no_details(record: Any, _: Any) -> None:
    del record["extraMetadata"]["eventide.operations"]


def _no_schema(record: Any, _: Any) -> None:
    del record["extraMetadata"]["eventide.schema"]


@pytest.mark.parametrize(
    "change",
    [
        _swap,
        _forget_link,
        _forget_operation,
        _no_link,
        _negative_size,
        _negative_base_size,
        _huge_size,
        _unknown_fallback,
        _bad_cut,
        _bad_mode,
        _no_details,
        _no_schema,
    ],
)
def test_a_plan_that_contradicts_itself_or_lacks_something_is_corrupt(
    change: Callable[[Any, Any], None],
) -> None:
    with pytest.raises(CorruptTimelineError, match=r"compaction\.requested"):
        CODEC.decode_plan(changed_plan(change), REQUESTED, C)


@pytest.mark.parametrize("details", ["[", "{}", "1", "[1]", "[" * 100_000])
def test_details_that_are_no_list_of_operations_are_corrupt(details: str) -> None:
    schema, record = plan_record(CODEC.encode_plan(sample_plan()))
    record["extraMetadata"]["eventide.operations"] = details
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [record])
    with pytest.raises(CorruptTimelineError):
        CODEC.decode_plan(stream.getvalue(), REQUESTED, C)


def test_a_torn_plan_is_corrupt() -> None:
    whole = CODEC.encode_plan(sample_plan())
    for length in range(len(whole)):
        with pytest.raises(CorruptTimelineError):
            CODEC.decode_plan(whole[:length], REQUESTED, C)


def test_a_left_over_without_a_name_is_our_own_bug_unless_names_are_not_needed() -> None:
    plan = dataclasses.replace(sample_plan(LinkMode.PREFIX), link_mode=LinkMode.COPY)
    with pytest.raises(AssertionError):
        CODEC.encode_plan(plan)


def test_bytes_gone_wrong_anywhere_bring_a_typed_error_or_a_plan() -> None:
    random_bytes = random.Random(74)
    wholes = [CODEC.encode_plan(sample_plan(mode)) for mode in LinkMode]
    wholes.append((DATA / "v6.compaction.requested").read_bytes())
    errors: list[str] = []
    for _ in range(2000):
        data = edited(random_bytes, random_bytes.choice(wholes))
        try:
            plan = CODEC.decode_plan(data, REQUESTED, C)
            assert isinstance(plan, CompactionPlan | ForeignPlan)
        except EventideError as error:
            errors.append(str(error))
    assert len(errors) > 500
    assert all(REQUESTED in error for error in errors)

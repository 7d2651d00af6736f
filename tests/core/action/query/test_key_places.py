"""What a record index may decide about the slices to read."""

from dataclasses import replace

import pytest

from eventide_core.action.query.key_places import is_looked_up, looks_no_key_up, slices_by_places
from eventide_core.table.files.slice_read import BlockFilter, QueryPlan, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata

SETTINGS = """hoodie.table.name=t
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=9
hoodie.record.merge.mode=COMMIT_TIME_ORDERING
hoodie.table.recordkey.fields=id
hoodie.table.metadata.partitions=files,record_index
"""
BLOCKS = BlockFilter(frozenset(), None)
SLICES = tuple(SliceRead("p", f"f{number}", None, (), BLOCKS) for number in range(10))
PLAN = QueryPlan(
    SLICES, RecordShape(AvroSchema.of("{}"), MergeRule.COMMIT_TIME_ORDERING, (), None), completed=frozenset("1")
)
GROUPS = {(one.partition, one.file_id) for one in SLICES}
ONE = (("id:x", "x"),)
STATED = "RECORD_INDEX"


def config(*lines: str) -> TableConfig:
    return TableConfig.parse(SETTINGS + "".join(f"{line}\n" for line in lines), "t")


@pytest.mark.parametrize(
    ("table", "index_type"),
    [
        ("", STATED),
        ("hoodie.index.type=RECORD_INDEX", None),
        ("hoodie.index.type=GLOBAL_RECORD_LEVEL_INDEX", STATED),
    ],
)
def test_the_index_decides_if_the_table_or_the_options_state_that_writers_use_it(
    table: str, index_type: str | None
) -> None:
    assert is_looked_up(config(table), index_type, PLAN, SLICES, ONE)


@pytest.mark.parametrize(
    "index", ["", "SIMPLE", "BLOOM", "BUCKET", "GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_LEVEL_INDEX"]
)
def test_the_index_decides_nothing_beside_another_index(index: str) -> None:
    assert not is_looked_up(config(f"hoodie.index.type={index}" if index else ""), None, PLAN, SLICES, ONE)
    if index:
        assert not is_looked_up(config(f"hoodie.index.type={index}"), STATED, PLAN, SLICES, ONE)
        assert not is_looked_up(config("hoodie.index.type=RECORD_INDEX"), index, PLAN, SLICES, ONE)


def test_the_index_decides_nothing_without_record_keys_in_rows_or_without_an_index() -> None:
    virtual = config("hoodie.populate.meta.fields=false", "hoodie.table.keygenerator.type=SIMPLE")
    assert virtual.virtual_key_fields
    assert not is_looked_up(virtual, STATED, PLAN, SLICES, ONE)
    files_alone = config("hoodie.table.metadata.partitions=files")
    assert not is_looked_up(files_alone, STATED, PLAN, SLICES, ONE)


def test_the_index_is_not_asked_for_other_plans_filters_or_few_slices() -> None:
    assert not is_looked_up(config(), STATED, replace(PLAN, completed=None), SLICES, ONE)
    assert not is_looked_up(config(), STATED, PLAN, SLICES, None)
    assert not is_looked_up(config(), STATED, PLAN, SLICES[:5], ONE)
    assert not is_looked_up(config(), STATED, PLAN, SLICES, [(str(number),) for number in range(6)])


@pytest.mark.parametrize(
    ("operation", "inserts"),
    [
        ("UPSERT", False),
        ("delete", False),
        ("CLUSTER", False),
        ("INSERT", True),
        ("BULK_INSERT", True),
        ("INSERT_OVERWRITE", True),
        ("UNKNOWN", True),
        ("", True),
    ],
)
def test_an_operation_that_is_not_known_to_look_keys_up_may_repeat_them(operation: str, inserts: bool) -> None:
    assert looks_no_key_up(CommitMetadata({}, {}, operation)) is inserts
    assert not looks_no_key_up(CommitMetadata({}, {}, operation, is_compacted=True))


def test_the_slices_of_the_places_are_read() -> None:
    places = {"x": ("p", "f3"), "id:y": ("p", "f5")}
    named = (("id:x", "x"), ("id:y", "y"))
    kept = slices_by_places(config(), SLICES, GROUPS, named, places)
    assert kept is not None
    assert [one.file_id for one in kept] == ["f3", "f5"]
    assert slices_by_places(config(), SLICES[:4], GROUPS, named, places) == (SLICES[3],)


def test_a_key_without_a_place_is_nowhere_only_where_deletes_always_win() -> None:
    assert slices_by_places(config(), SLICES, GROUPS, ONE, {}) == ()
    by_event_time = config("hoodie.record.merge.mode=EVENT_TIME_ORDERING", "hoodie.table.ordering.fields=ts")
    assert slices_by_places(by_event_time, SLICES, GROUPS, ONE, {}) is None
    two = (*ONE, ("id:y", "y"))
    assert slices_by_places(by_event_time, SLICES, GROUPS, two, {"x": ("p", "f3")}) is None
    assert slices_by_places(by_event_time, SLICES, GROUPS, ONE, {"x": ("p", "f3")}) == (SLICES[3],)


def test_a_place_that_the_table_does_not_have_decides_nothing() -> None:
    assert slices_by_places(config(), SLICES, GROUPS, ONE, {"x": ("p", "replaced")}) is None

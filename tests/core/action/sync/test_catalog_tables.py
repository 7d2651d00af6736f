"""The tables that a catalog is to have, and what is changed in those that it has."""

from dataclasses import replace

import pytest

from eventide_core.action.freshness.freshness import NO_CUT, Freshness
from eventide_core.action.sync.catalog_changes import new_table, partition_changes, require_ours, table_change
from eventide_core.action.sync.catalog_tables import SyncFacts, published, wanted_tables
from eventide_core.action.sync.options import SyncOptions
from eventide_core.config import Options
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.table.catalog.catalog_columns import TableColumns
from eventide_core.table.catalog.catalog_table import CatalogPartition, CatalogTable
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.table_config import TableConfig

CONFIG = TableConfig.parse(
    "hoodie.table.name=Trips\nhoodie.table.version=9\nhoodie.table.type=MERGE_ON_READ\n"
    "hoodie.table.partition.fields=day\nhoodie.table.recordkey.fields=id",
    "/lake/trips",
)
SCHEMA = (
    '{"type": "record", "name": "r", "fields": [{"name": "id", "type": "string"}, {"name": "day", "type": "string"}]}'
)
FRESH = Freshness(
    watermark_ms=50, cut_ms=60, late_records=2, unknown_event_time_records=0, earliest_log_event_time_ms=50
)
SYNC = "hoodie.datasource.hive_sync"


def options(**given: str) -> SyncOptions:
    return SyncOptions.of(Options({f"{SYNC}.{key}": value for key, value in given.items()}), CONFIG)


def facts(fresh: Freshness = FRESH, last: str = "2", schema: str = SCHEMA) -> SyncFacts:
    columns = TableColumns.of(AvroSchema.of(schema), has_meta_fields=True, supports_timestamp=False)
    return SyncFacts("file:///lake/trips", columns, last, last, fresh)


def only(wanted: SyncFacts, **given: str) -> CatalogTable:
    return wanted_tables(wanted, options(**given))[0]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["trips_ro", "trips_rt", "trips"]),
        ({"skip_ro_suffix": "true"}, ["trips", "trips_rt"]),
        ({"table.strategy": "RO"}, ["trips"]),
        ({"table.strategy": "RT", "table": "other"}, ["other"]),
    ],
)
def test_the_tables_are_those_that_hudi_makes(given: dict[str, str], names: list[str]) -> None:
    assert [table.name for table in wanted_tables(facts(), options(**given))] == names


@pytest.mark.parametrize("strategy", ["ALL", "RO", "RT"])
def test_a_copy_on_write_table_is_one_table_of_base_files(strategy: str) -> None:
    (table,) = wanted_tables(replace(facts(NO_CUT), is_copy_on_write=True), options(**{"table.strategy": strategy}))
    assert (table.name, table.input_format) == ("trips", "org.apache.hudi.hadoop.HoodieParquetInputFormat")
    assert table.serde_properties["hoodie.query.as.ro.table"] == "false"


def test_the_formats_of_each_table_state_its_query_type() -> None:
    read_optimized, snapshot, plain = wanted_tables(facts(), options())

    assert read_optimized.input_format == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert read_optimized.serde_properties["hoodie.query.as.ro.table"] == "true"
    for table in (snapshot, plain):
        assert table.input_format == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
        assert table.serde_properties["hoodie.query.as.ro.table"] == "false"
    assert [one.name for one in read_optimized.partition_columns] == ["day"]
    assert "day" not in [one.name for one in read_optimized.columns]


def test_a_long_schema_is_reported_in_parts() -> None:
    told = only(facts(), schema_string_length_thresh="100").properties

    count = int(told["spark.sql.sources.schema.numParts"])
    parts = [told[f"spark.sql.sources.schema.part.{number}"] for number in range(count)]
    assert [len(part) for part in parts[:-1]] == [100] * (count - 1)
    assert "".join(parts) == facts().columns.spark_schema(["day"])


def told(facts: SyncFacts) -> dict[str, str]:
    return published(facts.last_commit, facts.last_completion, facts.freshness)


def test_the_freshness_is_published_where_there_is_one() -> None:
    assert told(facts()) == {
        "last_commit_time_sync": "2",
        "last_commit_completion_time_sync": "2",
        "hoodie.ro.event.time.cut": "60",
        "hoodie.ro.event.time.watermark": "50",
        "hoodie.ro.basis": "files",
        "hoodie.ro.late.records": "2",
    }
    assert "hoodie.ro.event.time.cut" not in told(facts(NO_CUT))


def test_the_number_of_unreadable_event_times_stands_in_the_place_of_the_watermark() -> None:
    properties = told(facts(Freshness(None, 60, 2, 1, 50, unreadable_event_time_records=3)))
    assert "hoodie.ro.event.time.watermark" not in properties
    assert (properties["hoodie.ro.event.time.cut"], properties["hoodie.ro.unreadable.records"]) == ("60", "3")


def test_the_first_unreadable_event_time_removes_the_watermark_from_the_catalog() -> None:
    before, unreadable = only(facts()), only(facts(Freshness(None, 60, 2, 1, 50, unreadable_event_time_records=3)))
    changed = table_change(unreadable, before).table.properties
    assert "hoodie.ro.event.time.watermark" not in changed
    after = table_change(before, table_change(unreadable, before).table).table.properties
    assert after["hoodie.ro.event.time.watermark"] == "50"
    assert "hoodie.ro.unreadable.records" not in after


def test_nothing_is_due_if_the_catalog_has_the_same_in_another_form() -> None:
    wanted = only(facts())
    parts = {key: value for key, value in wanted.properties.items() if ".part." not in key}
    text = wanted.properties["spark.sql.sources.schema.part.0"].replace(",", ", ")
    table = replace(
        wanted,
        location="/lake/trips",
        serde_properties={**wanted.serde_properties, "path": "/lake/trips", "theirs": "1"},
        properties={
            **parts,
            "spark.sql.sources.schema.part.0": text[:9],
            "spark.sql.sources.schema.part.1": text[9:],
            "spark.sql.sources.schema.numParts": "2",
            "transient_lastDdlTime": "1",
        },
    )

    change = table_change(wanted, table)

    assert (change.is_due, change.follows) == (False, True)


def test_tables_that_are_not_for_spark_say_nothing_to_it() -> None:
    wanted = only(facts(), sync_as_datasource="false")

    assert not [
        key for key in {**wanted.properties, **wanted.serde_properties} if key in ("path", "provider") or "spark" in key
    ]
    assert not table_change(wanted, wanted).is_due


def test_a_commit_alone_is_reported_as_a_change_of_time() -> None:
    change = table_change(only(facts(last="3")), only(facts(last="2")))

    assert (change.is_due, change.is_more_than_time, change.follows) == (True, False, False)


def test_a_freshness_that_holds_no_more_is_taken_out_and_what_others_wrote_stays() -> None:
    table = only(facts())
    table = replace(table, properties={**table.properties, "theirs": "1"})

    change = table_change(only(facts(NO_CUT)), table)

    assert change.is_more_than_time
    assert change.table.properties["theirs"] == "1"
    assert not [key for key in change.table.properties if key.startswith("hoodie.ro.")]


def test_a_column_more_changes_columns_and_schema() -> None:
    grown = SCHEMA.replace("]}", ', {"name": "n", "type": ["null", "int"]}]}')

    change = table_change(only(facts(schema=grown)), only(facts(), schema_string_length_thresh="100"))

    assert change.is_more_than_time
    assert change.table.columns[-1].name == "n"
    schema_keys = [key for key in change.table.properties if ".schema.part." in key]
    assert schema_keys == ["spark.sql.sources.schema.part.0"], "the parts of the shorter schema are gone"


def test_a_new_table_follows_no_commit_until_its_partitions_are_there() -> None:
    made = new_table(only(facts()))

    assert "last_commit_time_sync" not in made.properties
    assert table_change(only(facts()), made).is_due


def test_partitions_are_added_moved_and_dropped() -> None:
    a, b, c = (CatalogPartition((name,), f"/lake/trips/{name}") for name in "abc")
    elsewhere = CatalogPartition(("b",), "/lake/old/b")

    changes = partition_changes([a, b], [elsewhere, c])

    assert (changes.added, changes.moved, changes.dropped) == ((a,), (b,), (c,))
    assert not partition_changes([a, b], [b, CatalogPartition(("a",), "file:/lake/trips/a")])


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"location": "/lake/elsewhere"}, "is the table at /lake/elsewhere"),
        ({"kind": "VIRTUAL_VIEW"}, "is a VIRTUAL_VIEW"),
        ({"input_format": "org.example.Other", "properties": {}}, "is not a Hudi table"),
        ({"partition_columns": ()}, "is partitioned by nothing, not day string"),
    ],
)
def test_a_table_of_that_name_that_is_something_else_is_refused(other: dict[str, object], why: str) -> None:
    wanted = only(facts())

    require_ours(wanted, replace(wanted, kind="MANAGED_TABLE", location="/lake/trips"))
    with pytest.raises(RefusedError, match=f"default.trips_ro in the catalog {why}"):
        require_ours(wanted, replace(wanted, **other))  # type: ignore[arg-type]  # the cases name its fields


@pytest.mark.parametrize(
    "given",
    [
        {"mode": "jdbc"},
        {"create_managed_table": "true"},
        {"database": "no-name"},
        {"table": "a b"},
        {"table_properties": "no pair"},
        {"table.strategy": "some"},
        {"schema_string_length_thresh": "0"},
    ],
)
def test_options_that_cannot_be_used_are_refused(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        options(**given)


def test_properties_of_the_users_own_are_lines_of_pairs() -> None:
    table = only(facts(), table_properties="owner=me\nnote = a=b\n", serde_properties="x=1")

    assert (table.properties["owner"], table.properties["note"], table.serde_properties["x"]) == ("me", "a=b", "1")

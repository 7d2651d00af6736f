"""What an Avro schema becomes in a catalog; expected texts are those that Hudi 1.1.1's own sync wrote."""

import json

import pytest

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.catalog.catalog_columns import TableColumns
from eventide_core.table.catalog.catalog_table import hadoop_location, is_same_place
from eventide_core.table.schema.avro_schema import AvroSchema

TYPES = {
    "s": "string",
    "n": ["null", "long"],
    "d": {"type": "fixed", "name": "f", "size": 5, "logicalType": "decimal", "precision": 10, "scale": 2},
    "t": {"type": "long", "logicalType": "timestamp-micros"},
    "tn": {"type": "long", "logicalType": "local-timestamp-micros"},
    "dt": {"type": "int", "logicalType": "date"},
    "xs": {"type": "array", "items": ["null", "int"]},
    "m": {"type": "map", "values": "int"},
    "st": {"type": "record", "name": "st", "namespace": "deep", "fields": [{"name": "A", "type": "int"}]},
    "again": "deep.st",
    "e": {"type": "enum", "name": "e", "symbols": ["A"]},
    "b": "bytes",
}


def schema(types: object = TYPES) -> str:
    assert isinstance(types, dict)
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    return json.dumps({"type": "record", "name": "r", "fields": fields})


def columns(text: str, *, supports_timestamp: bool = False) -> TableColumns:
    return TableColumns.of(AvroSchema.of(text), has_meta_fields=False, supports_timestamp=supports_timestamp)


def test_columns_have_the_types_that_hudi_gives_them_in_hive() -> None:
    assert {one.name: one.type for one in columns(schema()).hive} == {
        "s": "string",
        "n": "bigint",
        "d": "decimal(10,2)",
        "t": "bigint",
        "tn": "bigint",
        "dt": "date",
        "xs": "array<int>",
        "m": "map<string,int>",
        "st": "struct<a:int>",
        "again": "struct<a:int>",
        "e": "string",
        "b": "binary",
    }


def test_timestamps_are_timestamps_in_hive_where_that_is_asked_for() -> None:
    types = {one.name: one.type for one in columns(schema(), supports_timestamp=True).hive}

    assert (types["t"], types["tn"], types["n"]) == ("timestamp", "timestamp", "bigint")


def test_spark_gets_the_partition_columns_last_and_which_columns_may_be_null() -> None:
    told = json.loads(columns(schema()).spark_schema(["s", "elsewhere"]))

    assert [one["name"] for one in told["fields"]][-2:] == ["s", "elsewhere"]
    kinds = {one["name"]: (one["type"], one["nullable"]) for one in told["fields"]}
    assert kinds["n"] == ("long", True)
    assert kinds["s"] == ("string", False)
    assert (kinds["d"][0], kinds["t"][0], kinds["tn"][0], kinds["dt"][0]) == (
        "decimal(10,2)",
        "timestamp",
        "timestamp_ntz",
        "date",
    )
    assert kinds["xs"][0] == {"type": "array", "elementType": "integer", "containsNull": True}
    assert kinds["m"][0] == {"type": "map", "keyType": "string", "valueType": "integer", "valueContainsNull": False}
    inner = {"name": "A", "type": "integer", "nullable": False, "metadata": {}}
    assert kinds["st"][0] == kinds["again"][0] == {"type": "struct", "fields": [inner]}


def test_meta_columns_come_first() -> None:
    of_table = TableColumns.of(AvroSchema.of(schema({"id": "string"})), has_meta_fields=True, supports_timestamp=False)

    assert [one.name for one in of_table.hive][0::5] == ["_hoodie_commit_time", "id"]


@pytest.mark.parametrize("kind", [["int", "string"], "nothing.known", {"type": "record", "name": "r2", "fields": 7}])
def test_a_type_that_no_catalog_has_is_refused(kind: object) -> None:
    with pytest.raises(UnsupportedTableError):
        columns(schema({"odd": kind}))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("file:///lake/t", "/lake/t/", True),
        ("file:/lake/t", "/lake//t", True),
        ("s3://lake/t", "s3a://lake/t", True),
        ("hdfs://nn:8020/t", "/t", True),
        ("s3://lake/t", "s3://other/t", False),
        ("/lake/t", "/lake/t2", False),
        ("file:/t/a=1:2", "/t/a=1:2", True),
    ],
)
def test_a_directory_is_the_same_however_it_is_spelled(one: str, other: str, same: bool) -> None:
    assert is_same_place(one, other) is same
    assert is_same_place(other, one) is same


def test_a_location_is_spelled_as_hadoop_does() -> None:
    assert [hadoop_location(text) for text in ("file:///lake/t/", "hdfs://nn:8020/t", "s3a://lake/t/", "/lake/t")] == [
        "file:/lake/t",
        "hdfs://nn:8020/t",
        "s3a://lake/t",
        "/lake/t",
    ]

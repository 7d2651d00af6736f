"""Hudi's internal schemas: when names alone tell the fields of every file, and which names columns have in others."""

import json
from typing import Any

import pytest

from eventide_core.errors import CorruptTimelineError, UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.column_names import ColumnNames, FileColumns
from eventide_core.table.schema.internal_schema import (
    SchemaVersion,
    evolved,
    extended_history,
    parse_version,
    parse_versions,
)


def _field(number: int, name: str, kind: Any = "string") -> dict[str, Any]:
    return {"id": number, "name": name, "optional": True, "type": kind}


def _schema(version: int, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"max_column_id": 9, "version_id": version, "type": "record", "fields": list(fields)}


def _versions(*schemas: dict[str, Any]) -> tuple[SchemaVersion, ...]:
    return parse_versions(json.dumps({"schemas": list(schemas)}), "history")


def test_fields_are_named_by_their_path_through_records_arrays_and_maps() -> None:
    place = {"type": "record", "fields": [_field(3, "lat", "double")]}
    stops = {"type": "array", "element_id": 5, "element": place | {"fields": [_field(6, "x", "int")]}}
    fees = {
        "type": "map",
        "key_id": 8,
        "key": "string",
        "value_id": 9,
        "value": {"type": "record", "fields": [_field(10, "y")]},
    }
    schema = _schema(20, _field(1, "id"), _field(2, "place", place), _field(4, "stops", stops), _field(7, "fees", fees))
    assert parse_version(json.dumps(schema), "commit") == SchemaVersion(
        20,
        {1: "id", 2: "place", 3: "place.lat", 4: "stops", 6: "stops.element.x", 7: "fees", 10: "fees.value.y"},
    )


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schemas": [{"version_id": 1}]}', '{"schemas": [7]}'])
def test_an_invalid_history_is_reported_with_its_place(text: str) -> None:
    with pytest.raises(CorruptTimelineError, match=r"history.*not an internal schema"):
        parse_versions(text, "history")


def _names(versions: tuple[SchemaVersion, ...], as_of: str | None = None, by_name: str = "id") -> ColumnNames | None:
    return ColumnNames.of(versions, {}, [by_name], as_of)


def _instant(number: int) -> str:
    return f"{number:017}"


def _renamed(versions: tuple[SchemaVersion, ...], instant: int, as_of: str | None = None) -> FileColumns:
    names = _names(versions, as_of)
    assert names is not None
    columns = names.in_block(_instant(instant), "block")
    assert columns is not None
    return columns


def test_columns_that_come_go_change_type_or_place_keep_their_names() -> None:
    versions = _versions(
        _schema(10, _field(1, "id"), _field(2, "n", "int"), _field(3, "gone")),
        _schema(20, _field(1, "id"), _field(4, "new"), _field(2, "n", "long")),
    )
    assert _names(versions) is None
    assert _names(()) is None


RENAMED = _versions(_schema(20, _field(1, "id"), _field(2, "b")), _schema(10, _field(1, "id"), _field(2, "a")))


def test_a_renamed_column_is_read_by_its_number_in_files_of_its_old_name() -> None:
    for instant in (10, 19):
        old = _renamed(RENAMED, instant)
        numbers = {"_hoodie_record_key": 3, "id": 1, "b": 2}
        assert old.by_name_read({"id": 1, "a": 2, "_hoodie_record_key": 3}, "block") == numbers
        assert (old.is_same("id"), old.is_same("b"), old.is_same("_hoodie_file_name")) == (True, False, True)
    names = _names(RENAMED)
    assert names is not None
    assert names.in_block(_instant(20), "block") is None
    names.require_readable([_instant(10)])


def test_a_time_travel_reads_files_of_a_later_version_by_the_old_names() -> None:
    names = _names(RENAMED, as_of=_instant(15))
    assert names is not None
    assert names.in_block(_instant(15), "block") is None
    assert _renamed(RENAMED, 21, as_of=_instant(15)).source("a") == "b"


def test_a_renamed_column_by_which_records_are_merged_is_refused_in_older_files() -> None:
    names = _names(RENAMED, by_name="b")
    assert names is not None
    names.require_readable([_instant(20)])
    with pytest.raises(UnsupportedTableError, match="the column b had the name a in files"):
        names.require_readable([_instant(21), _instant(19)])
    with pytest.raises(UnsupportedTableError, match="block: the column b had the name a in files"):
        names.in_block(_instant(19), "block")  # as in a left-over, whose file name is later


def test_a_file_of_no_known_version_or_with_another_column_is_refused() -> None:
    names = _names(RENAMED)
    assert names is not None
    with pytest.raises(UnsupportedTableError, match="no internal schema of Hudi is as old"):
        names.in_block(_instant(5), "block")
    with pytest.raises(UnsupportedTableError, match="block has a column 'b', which the table's schema of its instant"):
        _renamed(RENAMED, 10).require(["b"], "block")


def test_a_base_file_has_the_schema_that_its_commit_states() -> None:
    old, new = _schema(10, _field(2, "a")), _schema(20, _field(2, "b"))
    names = ColumnNames.of(_versions(old, new), {_instant(15): json.dumps(new)}, [], None)
    assert names is not None
    assert names.in_base(_instant(15), "base file") is None
    assert names.in_base(_instant(14), "base file") is not None


def test_a_renamed_field_below_a_column_is_refused() -> None:
    old, new = ({"type": "record", "fields": [_field(2, name)]} for name in "ab")
    names = _names(_versions(_schema(10, _field(1, "place", old)), _schema(20, _field(1, "place", new))))
    assert names is not None
    with pytest.raises(UnsupportedTableError, match=r"place\.b had the name place\.a"):
        names.require_readable([_instant(10)])


def test_a_new_column_under_the_name_of_a_dropped_one_is_not_in_older_files() -> None:
    versions = _versions(
        _schema(10, _field(1, "id"), _field(2, "a")),
        _schema(20, _field(1, "id")),
        _schema(30, _field(1, "id"), _field(3, "a", "int")),
    )
    old = _renamed(versions, 10)
    assert old.names_read(["id", "a"], "block") == ["id", " a"]
    assert old.source("a") is None
    names = _names(versions)
    assert names is not None
    assert names.in_block(_instant(20), "block") is None


def _avro(*fields: tuple[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": n, "type": ["null", k]} for n, k in fields]})


def test_names_keep_their_numbers_and_new_names_get_numbers_that_no_field_had() -> None:
    place = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    wider = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "string"}]}
    known = _schema(
        0,
        _field(0, "_hoodie_commit_time"),
        _field(1, "a", "int"),
        _field(3, "p", {"type": "record", "fields": [_field(4, "x", "int")]}),
        _field(5, "gone"),
    )
    before = _avro(("a", "int"), ("p", place), ("gone", "string"))
    after = _avro(("p", wider), ("a", "double"), ("new", {"type": "bytes", "logicalType": "decimal", "precision": 5}))
    schema = json.loads(evolved(json.dumps(known), AvroSchema.of(before), AvroSchema.of(after), "20260101000000000"))
    assert schema["version_id"] == 20260101000000000
    assert schema["max_column_id"] == 11
    assert [(f["id"], f["name"], f["type"]) for f in schema["fields"] if f["name"] != "p"] == [
        (0, "_hoodie_commit_time", "string"),
        (1, "a", "double"),
        (11, "new", "decimal(5, 0)"),
    ]
    (nested,) = (f["type"]["fields"] for f in schema["fields"] if f["name"] == "p")
    assert [(f["id"], f["name"], f["type"], f["optional"]) for f in nested] == [
        (4, "x", "long", False),
        (10, "y", "string", False),
    ]


def test_a_schema_that_stays_keeps_the_text_of_its_internal_schema() -> None:
    text = json.dumps(_schema(7, _field(0, "_hoodie_commit_time"), _field(1, "a")), indent=1)
    assert evolved(text, AvroSchema.of(_avro(("a", "string"))), AvroSchema.of(_avro(("a", "string"))), "9") == text


def test_a_type_that_an_old_hudi_does_not_know_is_refused() -> None:
    text, local = json.dumps(_schema(0, _field(0, "a"))), {"type": "long", "logicalType": "local-timestamp-micros"}
    with pytest.raises(UnsupportedTableError, match=r"local-timestamp-micros.*column t: .*evolves on read"):
        evolved(text, AvroSchema.of(_avro(("a", "string"))), AvroSchema.of(_avro(("a", "string"), ("t", local))), "9")


def test_a_history_has_each_version_once_the_newest_first() -> None:
    old, new = json.dumps(_schema(0, _field(0, "a"))), json.dumps(_schema(5, _field(0, "b")))
    first = extended_history(None, old)
    both = extended_history(first, new)
    assert [version.version for version in parse_versions(both, "history")] == [5, 0]
    assert extended_history(both, new) == both

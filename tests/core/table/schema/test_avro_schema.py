"""An Avro schema as a value, and questions about one of its fields, in a column or in a record."""

import json
import pickle
from typing import Any

import pytest

from eventide_core.errors import ConfigError, UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema

TIME = {"type": "long", "logicalType": "timestamp-micros"}
DECIMAL = {"type": "fixed", "name": "f", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 3}


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


SCHEMA = AvroSchema.of_json(
    record(
        "r",
        at=TIME,
        seen=["null", TIME],
        flag="boolean",
        raw=["bytes", "null"],
        price=["null", DECIMAL],
        clock={"type": "int", "logicalType": "time-millis"},
        tags={"type": "array", "items": "string"},
        either=["int", "string"],
        a=["null", record("inner", b=TIME, ratio="double", deep=record("deepest", c="string"))],
        sure=record("other", b=TIME, maybe=["null", "long"]),
    )
)


@pytest.mark.parametrize(
    ("path", "nullable"),
    [("at", False), ("seen", True), ("sure.b", False), ("sure.maybe", True), ("a.b", True), ("a.deep.c", True)],
)
def test_a_field_may_be_null_where_a_record_that_holds_it_may(path: str, nullable: bool) -> None:
    assert SCHEMA.is_nullable(path, "an.option") is nullable


@pytest.mark.parametrize("path", ["b", "a.c", "at.b", "a.b.c", "tags.b", "a.", ""])
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=f"an.option='{path}': the table has no such field"):
        SCHEMA.is_nullable(path, "an.option")
    assert not SCHEMA.is_time(path)


@pytest.mark.parametrize(
    ("path", "time"), [("at", True), ("seen", True), ("a.b", True), ("a.ratio", False), ("clock", False)]
)
def test_a_time_is_one_wherever_it_stands(path: str, time: bool) -> None:
    assert SCHEMA.is_time(path) is time


@pytest.mark.parametrize("path", ["at", "seen", "price", "a.b", "a.ratio", "a.deep.c", "sure.maybe", "either"])
def test_times_numbers_and_texts_may_be_event_times(path: str) -> None:
    assert SCHEMA.may_hold_event_times(path)


@pytest.mark.parametrize("path", ["flag", "raw", "clock", "tags", "a", "a.deep"])
def test_other_types_are_no_event_times(path: str) -> None:
    assert not SCHEMA.may_hold_event_times(path)


def test_a_schema_is_its_text_and_one_object_also_in_another_process() -> None:
    text = json.dumps(record("r", a="long"), indent=1)
    schema = AvroSchema.of(text)
    assert schema.text == text
    assert AvroSchema.of(text) is schema
    assert pickle.loads(pickle.dumps(schema)) is schema
    assert AvroSchema(text) == schema != AvroSchema.of_json(record("r", a="long"))
    assert len({AvroSchema(text), schema}) == 1


def test_a_text_is_parsed_once_and_only_if_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    loads = json.loads

    def counted(text: str) -> Any:
        texts.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", counted)
    schema = AvroSchema(json.dumps(record("r", a="long")))
    assert texts == []
    assert schema.field_names == ("a",)
    assert schema.is_nullable("a", "an.option") is False
    assert schema.with_meta_fields() is schema.with_meta_fields()
    assert texts == [schema.text]


@pytest.mark.parametrize("text", ["", "[", '"long"', '{"type":"record"}', "[" * 100_000])
def test_a_broken_text_is_refused_wherever_it_is_asked(text: str) -> None:
    schema = AvroSchema(text)
    for _ in range(2):
        with pytest.raises(UnsupportedTableError, match="not an Avro record schema"):
            _ = schema.field_names
    assert schema.without_meta_fields() is schema

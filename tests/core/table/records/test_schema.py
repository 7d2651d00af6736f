"""Questions about one field of an Avro schema, in a column or in a record."""

import json
from typing import Any

import pytest

from eventide_core.errors import ConfigError
from eventide_core.table.records.schema import is_nullable, is_time, may_hold_event_times

TIME = {"type": "long", "logicalType": "timestamp-micros"}
DECIMAL = {"type": "fixed", "name": "f", "size": 9, "logicalType": "decimal", "precision": 20, "scale": 3}


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}


SCHEMA = json.dumps(
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
    assert is_nullable(SCHEMA, path, "an.option") is nullable


@pytest.mark.parametrize("path", ["b", "a.c", "at.b", "a.b.c", "tags.b", "a.", ""])
def test_a_path_that_leads_nowhere_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=f"an.option='{path}': the table has no such field"):
        is_nullable(SCHEMA, path, "an.option")
    assert not is_time(SCHEMA, path)


@pytest.mark.parametrize(
    ("path", "time"), [("at", True), ("seen", True), ("a.b", True), ("a.ratio", False), ("clock", False)]
)
def test_a_time_is_one_wherever_it_stands(path: str, time: bool) -> None:
    assert is_time(SCHEMA, path) is time


@pytest.mark.parametrize("path", ["at", "seen", "price", "a.b", "a.ratio", "a.deep.c", "sure.maybe", "either"])
def test_times_numbers_and_texts_may_be_event_times(path: str) -> None:
    assert may_hold_event_times(SCHEMA, path)


@pytest.mark.parametrize("path", ["flag", "raw", "clock", "tags", "a", "a.deep"])
def test_other_types_are_no_event_times(path: str) -> None:
    assert not may_hold_event_times(SCHEMA, path)

"""How columns of records fit a table's, and how they change it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.avro.from_arrow import avro_schema_of
from eventide_adapters.format.avro.schema import arrow_schema
from eventide_adapters.format.write.incoming_schema import conform, evolved_schema
from eventide_core.errors import InvalidRecordError

COLUMNS: list[pa.Field[Any]] = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("n", pa.int32()),
    pa.field("share", pa.float32()),
    pa.field("at", pa.timestamp("us", tz="UTC")),
]
SCHEMA = avro_schema_of("t", pa.schema(COLUMNS))


def evolved(**columns: Any) -> pa.Schema:
    given: list[pa.Field[Any]] = [
        pa.field("id", pa.string()),
        *(pa.field(name, kind) for name, kind in columns.items()),
    ]
    return arrow_schema(evolved_schema(SCHEMA, pa.schema(given), "t"))


def test_columns_that_fit_leave_the_schema_as_it_stands() -> None:
    incoming: list[pa.Field[Any]] = [
        pa.field("at", pa.timestamp("ms", tz="UTC")),
        pa.field("id", pa.string()),
        pa.field("n", pa.int16()),
    ]
    assert evolved_schema(SCHEMA, pa.schema(incoming), "t") == SCHEMA


def test_a_wider_column_widens_the_tables() -> None:
    wider = evolved(n=pa.int64(), share=pa.float64())
    assert (wider.field("n").type, wider.field("share").type) == (pa.int64(), pa.float64())
    assert evolved(n=pa.float64()).field("n").type == pa.float64()


def test_a_new_column_comes_last_and_may_be_null() -> None:
    more: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("more", pa.int64(), nullable=False)]
    grown = evolved_schema(SCHEMA, pa.schema(more), "t")
    assert json.loads(grown)["fields"][-1] == {"name": "more", "type": ["null", "long"], "default": None}
    assert json.loads(grown)["fields"][:-1] == json.loads(SCHEMA)["fields"]


def test_hudis_own_columns_are_no_new_ones() -> None:
    assert evolved(_hoodie_commit_time=pa.string()).names == ["id", "n", "share", "at"]


def test_a_missing_column_is_null_where_it_may_be() -> None:
    rows = conform(pa.table({"id": ["a"]}), arrow_schema(SCHEMA))
    assert rows.to_pylist() == [{"id": "a", "n": None, "share": None, "at": None}]
    with pytest.raises(InvalidRecordError, match="without the column 'id'"):
        evolved_schema(SCHEMA, pa.schema([pa.field("n", pa.int32())]), "t")


def test_a_value_or_a_null_that_does_not_fit_is_named() -> None:
    with pytest.raises(InvalidRecordError, match="row 7: column 'id' is null"):
        conform(pa.table({"id": pa.array(["a", "b", None])}), arrow_schema(SCHEMA), first_row=5)
    with pytest.raises(InvalidRecordError, match="column 'n' of type string does not fit the table's int32"):
        conform(pa.table({"id": ["a"], "n": ["many"]}), arrow_schema(SCHEMA))


def test_a_table_without_a_schema_gets_that_of_its_first_records() -> None:
    columns: list[pa.Field[Any]] = [
        pa.field("_hoodie_record_key", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
    ]
    first = json.loads(evolved_schema(None, pa.schema(columns), "my trips"))
    assert (first["namespace"], first["name"]) == ("hoodie.my__trips", "my__trips_record")
    assert first["fields"] == [{"name": "n", "type": ["null", "int"], "default": None}]

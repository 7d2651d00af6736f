"""Column names that Avro allows, and the sanitized form of others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.errors import InvalidColumnNameError
from eventide_core.table.schema.avro_names import (
    is_avro_name,
    refuse_invalid_names,
    sanitized,
    sanitized_names,
)
from eventide_core.table.schema.avro_schema import AvroSchema


@pytest.mark.parametrize(
    ("name", "becomes"),
    [
        ("trip id", "trip__id"),
        ("2nd", "__nd"),
        ("a.b-c", "a__b__c"),
        ("größe", "gr____e"),
        ("", "__"),
        ("_ok1", "_ok1"),
    ],
)
def test_a_name_is_sanitized_as_hudi_does_it(name: str, becomes: str) -> None:
    assert sanitized(name) == becomes


@given(st.text())
def test_a_sanitized_name_is_valid_and_a_valid_name_stays(name: str) -> None:
    assert is_avro_name(sanitized(name))
    assert not is_avro_name(name) or sanitized(name) == name


def test_columns_that_would_become_one_are_refused_by_name() -> None:
    with pytest.raises(InvalidColumnNameError, match="'a b' and 'a-b' would both be named 'a__b'"):
        sanitized_names(["a b", "c", "a-b"])


def test_a_refusal_names_the_columns_and_the_cure() -> None:
    refuse_invalid_names(["fine", "_Fine2"])
    with pytest.raises(InvalidColumnNameError, match=r"'trip id' \(trip__id\), '9' \(__\)\. .*`sanitize=True`"):
        refuse_invalid_names(["fine", "trip id", "9"])


def test_the_names_of_nested_records_are_found() -> None:
    inner = {"type": "record", "name": "in", "fields": [{"name": "deep name", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "t",
        "fields": [
            {"name": "one", "type": ["null", {"type": "array", "items": inner}]},
            {"name": "two", "type": {"type": "map", "values": ["null", {"type": "int", "logicalType": "date"}]}},
            {
                "name": "three",
                "type": {"type": {"type": "record", "name": "u", "fields": [{"name": "x", "type": "int"}]}},
            },
        ],
    }
    assert sorted(AvroSchema.of_json(schema).all_names) == ["deep name", "one", "three", "two", "x"]

"""Keys and values of the metadata table, held to those that Hudi wrote."""

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.metadata_table.records.records import (
    bloom_filter_key,
    column_stats_key,
    decode_value,
    encode_value,
    file_group_number,
    files_key,
    files_value,
    merged_files,
    partition_of,
)
from eventide_core.errors import RecordDecodeError
from eventide_core.table.schema.avro_schema import AvroSchema
from support.run.campaign import IS_REPEATED

pytestmark = pytest.mark.slow

WRAPPERS = [
    "null",
    {"type": "record", "name": "LongWrapper", "namespace": "org", "fields": [{"name": "value", "type": "long"}]},
    {
        "type": "record",
        "name": "DecimalWrapper",
        "namespace": "org",
        "fields": [
            {"name": "value", "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 15}}
        ],
    },
]
INFO = {
    "type": "record",
    "name": "Info",
    "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}],
}
SCHEMA = AvroSchema.of(
    json.dumps(
        {
            "type": "record",
            "name": "HoodieMetadataRecord",
            "fields": [
                {"name": "_hoodie_commit_time", "type": ["null", "string"]},
                {"name": "key", "type": "string"},
                {"name": "type", "type": "int"},
                {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": INFO}]},
                {"name": "minValue", "type": WRAPPERS},
            ],
        }
    )
)


@pytest.mark.parametrize(
    ("column", "partition", "file_name", "key"),
    [
        (
            "picked_up",
            "part=c",
            "f5672390-df37-446c-be18-57240fb2614a-2_0-234-716_20261121100240851.parquet",
            "oPbBugequ6s=Pa3l/VGOq9Q=vevEjnaDokyTq3JL+PGAIg==",
        ),
        (
            "event_ts",
            "part=b",
            ".485e35da-a7d1-4add-962a-114508986751-1_20261121100333406.log.1_0-309-772",
            "wIVTubkC2YI=XhyyWvHvu4I=+0S7xeJb9MDxvp7R7fh3jA==",
        ),
    ],
)
def test_the_keys_of_column_statistics_are_hudis(column: str, partition: str, file_name: str, key: str) -> None:
    assert column_stats_key(column, partition, file_name) == key
    assert file_group_number(key, 2) == 0  # where Hudi put it


def test_the_keys_of_bloom_filters_are_hudis() -> None:
    name = "6dd9b1c6-43d2-449f-8a41-a54d24e5c1e4-0_4-358-870_20261121100338008.parquet"
    assert bloom_filter_key("part=a", name) == "yi5+vfp5LHI=yZjgE4Kc8CXue6qcbbA9xA=="


@pytest.mark.parametrize(
    ("key", "java_hash"),
    [("", 0), ("hello", 99162322), ("foobar", -1268878963), ("polygenelubricants", -(2**31)), ("😀", 1772899)],
)
def test_a_file_group_is_chosen_by_the_hash_of_java(key: str, java_hash: int) -> None:
    for count in (1, 2, 3, 7, 10):
        assert file_group_number(key, count) == abs(java_hash) % count


@settings(derandomize=IS_REPEATED, database=None)
@given(st.lists(st.text()), st.integers(1, 12))
def test_the_file_groups_of_a_column_are_those_of_its_keys(keys: list[str], count: int) -> None:
    column: Any = pa.array(["head", *keys], pa.string()).slice(1)
    assert file_group_numbers(column, count).tolist() == [file_group_number(key, count) for key in keys]


def test_the_one_partition_of_a_table_without_partitions_is_a_dot() -> None:
    assert files_key("") == "."
    assert partition_of(".") == ""
    assert files_key(partition_of("part=a")) == "part=a"


@given(st.dictionaries(st.text(), st.integers(0, 2**40)), st.sets(st.text()))
def test_a_value_reads_back(added: dict[str, int], removed: set[str]) -> None:
    value = files_value(added, tuple(removed - added.keys()))
    read = decode_value(encode_value(value, SCHEMA), SCHEMA, "here")
    assert read["key"] == ""
    assert read["_hoodie_commit_time"] is None
    assert read["filesystemMetadata"] == value["filesystemMetadata"]
    assert merged_files([read]) == added


@pytest.mark.parametrize("wrapped", [("org.LongWrapper", {"value": 7}), ("org.DecimalWrapper", {"value": b"\0\x07"})])
def test_a_value_that_is_copied_keeps_its_bytes(wrapped: tuple[str, dict[str, object]]) -> None:
    """A decimal keeps even a byte more than it needs, and a wrapper its name."""
    data = encode_value({"type": 3, "minValue": wrapped}, SCHEMA)
    read = decode_value(data, SCHEMA, "here")
    assert read["minValue"] == wrapped
    assert encode_value(read, SCHEMA) == data


def test_what_hudi_reads_is_what_was_meant() -> None:
    data = encode_value(files_value({"a.parquet": 5}, ("b.parquet",)), SCHEMA)
    read = fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(json.loads(SCHEMA.text)), None)
    assert isinstance(read, dict)
    assert read["type"] == 2
    assert read["filesystemMetadata"] == {
        "a.parquet": {"size": 5, "isDeleted": False},
        "b.parquet": {"size": 0, "isDeleted": True},
    }


def test_files_are_merged_as_hudi_merges_them() -> None:
    versions = [
        files_value({"a": 1, "b": 2, "c": 3}, ()),
        files_value({"b": 9, "c": 1}, ("a", "never there")),
        files_value({}, ("c",)),
        files_value({"c": 4}, ()),
    ]
    assert merged_files(versions) == {"b": 9, "c": 4}


@given(st.binary(max_size=40))
def test_torn_values_are_named_as_such(data: bytes) -> None:
    try:
        value = decode_value(data, SCHEMA, "here")
    except RecordDecodeError:
        return
    assert value.keys() == {"_hoodie_commit_time", "key", "type", "filesystemMetadata", "minValue"}

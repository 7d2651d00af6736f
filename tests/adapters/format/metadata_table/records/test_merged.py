"""The versions of a record of the metadata table merged into one, beside a model that knows no files."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.metadata_table.records.merged import (
    RecordSource,
    can_merge,
    merged_entries,
    merged_statistics,
)
from eventide_adapters.format.metadata_table.records.records import (
    decode_value,
    encode_value,
    files_value,
    merged_files,
    secondary_index_value,
)
from eventide_core.table.schema.avro_schema import AvroSchema

SCHEMA = AvroSchema.of("""{"type": "record", "name": "HoodieMetadataRecord", "fields": [
    {"name": "key", "type": ["null", "string"], "default": null},
    {"name": "type", "type": "int"},
    {"name": "filesystemMetadata", "type": ["null", {"type": "map", "values": {"type": "record",
        "name": "HoodieMetadataFileInfo",
        "fields": [{"name": "size", "type": "long"}, {"name": "isDeleted", "type": "boolean"}]}}], "default": null}]}""")
WIDER = SCHEMA.text.replace(
    '{"name": "type", "type": "int"}',
    '{"name": "type", "type": "int"}, {"name": "more", "type": ["null", "string"], "default": null}',
)

keys = st.sampled_from(["a", "b", "part=c", "k10", "k9"])
names = st.sampled_from(["f1", "f2", "f3"])
change = st.tuples(st.dictionaries(names, st.integers(1, 9), max_size=3), st.sets(names, max_size=2))
# A step of a slice: the records of a file, or the keys that a DELETE block takes away.
steps = st.lists(st.one_of(st.dictionaries(keys, change, min_size=1), st.frozensets(keys)), max_size=6)


def sources_of(history: list[Any], *, has_base: bool) -> tuple[list[RecordSource], dict[bytes, int]]:
    sources: list[RecordSource] = []
    deleted: dict[bytes, int] = {}
    for number, step in enumerate(history):
        if isinstance(step, frozenset):
            deleted.update((key.encode(), len(sources)) for key in step)
            continue
        schema = SCHEMA.text if number % 2 else WIDER
        is_merged = has_base and not sources
        values = {
            key.encode(): encode_value(
                files_value(added, () if is_merged else tuple(gone - added.keys())), AvroSchema.of(schema)
            )
            for key, (added, gone) in step.items()
        }
        sources.append(RecordSource(sorted(values.items()), AvroSchema.of(schema), f"file {number}", is_merged))
    return sources, deleted


@given(steps, st.booleans())
def test_a_merge_leaves_what_the_versions_come_to(history: list[Any], has_base: bool) -> None:
    versions: dict[str, list[dict[str, Any]]] = {}
    of_files = 0
    for step in history:
        if isinstance(step, frozenset):
            for key in step:
                versions.pop(key, None)
            continue
        for key, (added, gone) in step.items():
            removed = () if has_base and not of_files else tuple(gone - added.keys())
            versions.setdefault(key, []).append(files_value(added, removed))
        of_files += 1
    sources, deleted = sources_of(history, has_base=has_base)
    merged = list(merged_entries("files", sources, deleted, SCHEMA))
    assert [key for key, _ in merged] == sorted(key.encode() for key in versions)
    for key, value in merged:
        read = decode_value(value, SCHEMA, "here")["filesystemMetadata"]
        assert not any(info["isDeleted"] for info in read.values())
        assert {name: info["size"] for name, info in read.items()} == merged_files(versions[key.decode()])
    # A merge of what a merge has left changes nothing.
    again = list(merged_entries("files", [RecordSource(merged, SCHEMA, "base", is_merged=True)], {}, SCHEMA))
    assert again == merged


@given(steps)
def test_of_a_record_index_the_latest_version_is_left(history: list[Any]) -> None:
    sources, deleted = sources_of(history, has_base=False)
    latest: dict[bytes, bytes] = {}
    number = 0
    for step in history:
        if isinstance(step, frozenset):
            for key in step:
                latest.pop(key.encode(), None)
            continue
        for key, value in sources[number].entries:
            latest[key] = encode_value(decode_value(value, sources[number].schema, ""), SCHEMA)
        number += 1
    assert list(merged_entries("record_index", sources, deleted, SCHEMA)) == sorted(latest.items())


def stats(least: Any, greatest: Any, **more: Any) -> dict[str, Any]:
    counts = {"valueCount": 2, "nullCount": 1, "totalSize": 0, "totalUncompressedSize": 0}
    wrapped = {"minValue": least, "maxValue": greatest}
    return {"fileName": "f", "columnName": "c", "isDeleted": False, **counts, **wrapped, **more}


def number(value: Any) -> tuple[str, dict[str, Any]]:
    return "org.LongWrapper", {"value": value}


def double(value: float) -> tuple[str, dict[str, Any]]:
    return "org.DoubleWrapper", {"value": value}


def test_ranges_are_widened_unless_the_later_one_is_tight() -> None:
    first, second = stats(number(3), number(5)), stats(number(4), number(9))
    merged = merged_statistics([first, second])
    assert merged == {**first, "maxValue": number(9), "valueCount": 4, "nullCount": 2}
    tight = stats(number(4), number(4), isTightBound=True)
    assert merged_statistics([first, tight]) == tight
    loose = stats(number(4), number(9), isTightBound=False)
    merged = merged_statistics([tight, loose])
    assert merged is not None
    assert (merged["minValue"], merged["maxValue"], merged["isTightBound"]) == (number(4), number(9), False)


@pytest.mark.parametrize("other", [None, 5.0, math.nan])
def test_a_range_with_nan_becomes_that_of_all_numbers(other: float | None) -> None:
    first = stats(double(0.0), double(math.nan))
    second = stats(*(None if other is None else double(other),) * 2)
    for versions in ([first, second], [second, first], [first]):
        merged = merged_statistics(versions)
        assert merged is not None
        assert (merged["minValue"], merged["maxValue"]) == (double(-math.inf), double(math.inf))


def test_statistics_that_were_deleted_are_forgotten() -> None:
    first, second = stats(number(3), number(5)), stats(number(4), number(9))
    deleted = stats(None, None, isDeleted=True)
    assert merged_statistics([first, deleted]) is None
    assert merged_statistics([first, deleted, second]) == second


def test_a_version_without_values_has_no_type_of_values() -> None:
    decimal = {"typeOrdinal": 10, "additionalInfo": "9,2"}
    known = stats(("org.BytesWrapper", {"value": b"\xff"}), ("org.BytesWrapper", {"value": b"\x01"}), valueType=decimal)
    empty = stats(None, None, valueType={"typeOrdinal": 1, "additionalInfo": None})
    merged = merged_statistics([known, empty])
    assert merged is not None
    assert merged["valueType"] == decimal
    more = stats(("org.BytesWrapper", {"value": b"\x02"}), ("org.BytesWrapper", {"value": b"\x03"}), valueType=decimal)
    merged = merged_statistics([empty, known, more])
    assert merged is not None
    assert merged["minValue"][1]["value"] == b"\xff"  # -1
    assert merged["maxValue"][1]["value"] == b"\x03"


def test_a_partition_of_an_unknown_kind_is_not_merged() -> None:
    assert not can_merge("unheard_of")


OF_PAIRS = AvroSchema.of("""{"type": "record", "name": "HoodieMetadataRecord", "fields": [
    {"name": "key", "type": ["null", "string"], "default": null}, {"name": "type", "type": "int"},
    {"name": "SecondaryIndexMetadata", "type": ["null", {"type": "record", "name": "HoodieSecondaryIndexInfo",
        "fields": [{"name": "isDeleted", "type": "boolean"}]}], "default": null}]}""")


@pytest.mark.parametrize("is_last_deleted", [False, True])
def test_a_pair_of_a_secondary_index_stays_unless_its_last_version_is_deleted(is_last_deleted: bool) -> None:
    versions = [secondary_index_value(is_deleted=deleted) for deleted in (not is_last_deleted, is_last_deleted)]
    sources = [RecordSource([(b"oslo$k1", encode_value(version, OF_PAIRS))], OF_PAIRS, "file") for version in versions]
    entries = [key for key, _ in merged_entries("secondary_index_by_city", sources, {}, OF_PAIRS)]
    assert entries == ([] if is_last_deleted else [b"oslo$k1"])


def test_ranges_of_a_widened_column_are_merged_in_the_wider_form() -> None:
    def double(value: float) -> tuple[str, dict[str, Any]]:
        return "org.DoubleWrapper", {"value": value}

    def text(value: str) -> tuple[str, dict[str, Any]]:
        return "org.StringWrapper", {"value": value}

    old = stats(number(3), number(50))
    for versions in ([old, stats(double(4.5), double(9.5))], [stats(double(4.5), double(9.5)), old]):
        merged = merged_statistics(versions)
        assert merged is not None
        assert (merged["minValue"], merged["maxValue"]) == (double(3.0), double(50.0))
    # The least number is not the least text: 10 comes before 9.
    merged = merged_statistics([old, stats(text("10"), text("9"))])
    assert merged is not None
    assert (merged["minValue"], merged["maxValue"]) == (text(""), text("\U0010ffff"))

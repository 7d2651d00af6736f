"""Record keys and partition paths, as Hudi's key generators make them."""

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.write.record_keys import partition_paths, record_keys
from eventide_core.errors import InvalidRecordError, UnsupportedTableError
from eventide_core.table.settings.key_format import KeyFormat, PartitionTime, Slashes, TimeKind

MOMENT = datetime(2026, 11, 21, 22, 30, 5, 250000, tzinfo=UTC)


def keys_by(*key_fields: str, partition: tuple[str, ...] = (), **more: Any) -> KeyFormat:
    return KeyFormat(
        key_fields,
        partition,
        is_hive_style=more.get("hive", False),
        is_url_encoded=more.get("encoded", False),
        names_key_fields=more.get("named", len(key_fields) > 1),
        partition_time=more.get("time"),
        time_fields=more.get("timed", partition if "time" in more else ()),
    )


def test_a_simple_key_is_the_bare_value_and_a_complex_one_names_its_fields() -> None:
    rows = pa.table({"id": ["a", "b"], "n": [1, -2], "day": [date(2026, 1, 2)] * 2, "ok": [True, False]})
    assert record_keys(rows, keys_by("id"))[0].to_pylist() == ["a", "b"]
    assert record_keys(rows, keys_by("id", named=True))[0].to_pylist() == ["id:a", "id:b"]
    key, parts = record_keys(rows, keys_by("n", "day", "ok"))
    assert key.to_pylist() == ["n:1,day:2026-01-02,ok:true", "n:-2,day:2026-01-02,ok:false"]
    assert parts[0].to_pylist() == ["1", "-2"]


@pytest.mark.parametrize(("value", "said"), [(None, "row 1: record key field 'id' is null"), ("", "row 1: .*empty")])
def test_a_record_without_a_key_is_named_by_its_row(value: str | None, said: str) -> None:
    with pytest.raises(InvalidRecordError, match=said):
        record_keys(pa.table({"id": pa.array(["a", value])}), keys_by("id"))


def test_a_key_of_a_type_that_hudi_versions_print_differently_is_refused() -> None:
    for column in (pa.array([0.5]), pa.array([MOMENT])):
        with pytest.raises(UnsupportedTableError, match="'id'"):
            record_keys(pa.table({"id": column}), keys_by("id"))


def test_partition_paths_are_values_and_in_hives_style_named() -> None:
    rows = pa.table({"a": ["x", None, ""], "n": [1, 2, None]})
    default = "__HIVE_DEFAULT_PARTITION__"
    assert partition_paths(rows, keys_by("a")).to_pylist() == ["", "", ""]
    assert partition_paths(rows, keys_by("a", partition=("a",))).to_pylist() == ["x", default, default]
    named = keys_by("a", partition=("a", "n"), hive=True)
    assert partition_paths(rows, named).to_pylist() == ["a=x/n=1", f"a={default}/n=2", f"a={default}/n={default}"]


def test_a_slash_makes_directories_unless_paths_are_encoded() -> None:
    rows = pa.table({"a": ["2026/11/21", "50% é", "a\\b"]})
    assert partition_paths(rows, keys_by("a", partition=("a",))).to_pylist() == ["2026/11/21", "50% é", "a\\b"]
    encoded = keys_by("a", partition=("a",), encoded=True, hive=True)
    assert partition_paths(rows, encoded).to_pylist() == ["a=2026%2F11%2F21", "a=50%25 é", "a=a%5Cb"]


@pytest.mark.parametrize(
    "value", ["..", "a/../b", "/etc", "a//b", "a/", ".hoodie", ".hoodie/x", "..\\b", "a\\..", "\\b", "a\nb", "s3:x"]
)
def test_a_value_that_leads_out_of_the_table_is_refused(value: str) -> None:
    with pytest.raises(InvalidRecordError, match="partition field 'a'"):
        partition_paths(pa.table({"a": [value]}), keys_by("a", partition=("a",)))


@pytest.mark.parametrize("bad", ["..", "x" * 256])
def test_the_first_row_of_a_value_that_makes_no_directory_is_named(bad: str) -> None:
    rows = pa.table({"a": ["x", None, "x", bad, bad]})
    with pytest.raises(InvalidRecordError, match=r"row 3: partition field 'a'.* the value$"):
        partition_paths(rows, keys_by("a", partition=("a",)))


@pytest.mark.parametrize("value", ["..", "../b", "b/..", "/etc", ".hoodie/x"])
def test_a_value_that_leads_out_is_refused_behind_its_name_too(value: str) -> None:
    with pytest.raises(InvalidRecordError, match="partition field 'a'"):
        partition_paths(pa.table({"a": [value]}), keys_by("a", partition=("a",), hive=True))


@pytest.mark.parametrize("hive", [False, True])
def test_a_value_whose_directory_is_never_listed_is_refused(hive: bool) -> None:
    """At any depth: readers pass every directory of the name `.hoodie` over, and would miss the rows."""
    rows = pa.table({"a": ["x"], "b": ["y/.hoodie"]})
    with pytest.raises(InvalidRecordError, match="partition field 'b'"):
        partition_paths(rows, keys_by("a", partition=("a", "b"), hive=hive))


def test_a_value_with_a_colon_is_no_scheme_behind_the_first_directory() -> None:
    rows = pa.table({"a": ["x"], "b": ["s3:y"]})
    assert partition_paths(rows, keys_by("a", partition=("a", "b"))).to_pylist() == ["x/s3:y"]


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (TimeKind.MILLISECONDS, pa.array([int(MOMENT.timestamp() * 1000)])),
        (TimeKind.SECONDS, pa.array([int(MOMENT.timestamp())])),
        (TimeKind.MICROSECONDS, pa.array([int(MOMENT.timestamp() * 1_000_000)])),
        (TimeKind.TEXT, pa.array(["21.11.2026 22:30:05"])),
        (TimeKind.MILLISECONDS, pa.array([MOMENT])),
    ],
)
def test_a_time_makes_the_path_by_its_format_in_its_zone(kind: TimeKind, column: Any) -> None:
    time = PartitionTime(kind, "dd.MM.yyyy HH:mm:ss", "yyyy/MM/dd'T'HH", "UTC")
    rows = pa.table({"at": column})
    assert partition_paths(rows, keys_by("id", partition=("at",), time=time)).to_pylist() == ["2026/11/21T22"]
    tokyo = PartitionTime(kind, "dd.MM.yyyy HH:mm:ss", "yyyyMMddHHmmss", "Asia/Tokyo")
    assert partition_paths(rows, keys_by("id", partition=("at",), time=tokyo)).to_pylist() == ["20261122073005"]


def test_a_time_format_that_is_not_known_is_refused() -> None:
    time = PartitionTime(TimeKind.SECONDS, None, "yyyy-'W'ww", "UTC")
    with pytest.raises(UnsupportedTableError, match="'ww'"):
        partition_paths(pa.table({"at": [1]}), keys_by("id", partition=("at",), time=time))


@pytest.mark.parametrize(
    ("setting", "value", "path"),
    [
        ("SlashEncodedDayPartitionValueExtractor", "2026-01-05", "2026/01/05"),
        ("SlashEncodedDayPartitionValueExtractor", "2026/01/05", "2026/01/05"),
        ("SlashEncodedDayPartitionValueExtractor", "2026-1-5", None),
        ("SlashEncodedHourPartitionValueExtractor", "2026/01/05", None),
        ("SlashEncodedHourPartitionValueExtractor", "2026-01-05", None),
        ("MultiPartKeysValueExtractor", "2026-01-05", "2026-01-05"),
        ("com.example.Unknown", "2026/01/05", None),
    ],
)
def test_a_value_is_refused_if_hudi_may_make_another_path_of_it(setting: str, value: str, path: str | None) -> None:
    properties = {"hoodie.datasource.hive_sync.partition_extractor_class": f"org.apache.hudi.hive.{setting}"}
    keys = replace(keys_by("id", partition=("day",)), slashes=Slashes.of(properties))
    rows = pa.table({"id": ["a"], "day": [value]})
    if path is not None:
        assert partition_paths(rows, keys).to_pylist() == [path]
    else:
        with pytest.raises(UnsupportedTableError, match=setting):
            partition_paths(rows, keys)

"""Partition values by Hudi's extractors."""

import pytest

from eventide_core.errors import ConfigError
from eventide_core.table.records.partition_values import PartitionExtractor, partition_values


@pytest.mark.parametrize(
    ("path", "extractor", "fields", "values"),
    [
        ("", PartitionExtractor.NONE, (), ()),
        ("a/b", PartitionExtractor.SINGLE, ("p",), ("a/b",)),
        ("p=a", PartitionExtractor.HIVE_STYLE, ("p",), ("a",)),
        ("p=a=b", PartitionExtractor.HIVE_STYLE, ("p",), ("a=b",)),
        ("a/q=2", PartitionExtractor.MULTI, ("p", "q"), ("a", "2")),
        ("2026/11/21", PartitionExtractor.DAY, ("day",), ("2026-11-21",)),
        ("y=2026/m=11/d=21", PartitionExtractor.DAY, ("day",), ("2026-11-21",)),
        ("2026/11/21/08", PartitionExtractor.HOUR, ("hour",), ("2026-11-21-08",)),
    ],
)
def test_a_path_stands_for_the_values_that_hudi_takes_from_it(
    path: str, extractor: PartitionExtractor, fields: tuple[str, ...], values: tuple[str, ...]
) -> None:
    assert partition_values(path, extractor, fields, decodes=False) == values


def test_values_are_decoded_where_that_is_asked_for() -> None:
    assert partition_values("a b%2F%C3%BC", PartitionExtractor.SINGLE, ("p",), decodes=True) == ("a b/ü",)
    assert partition_values("a b%2F%C3%BC", PartitionExtractor.SINGLE, ("p",), decodes=False) == ("a b%2F%C3%BC",)


def test_a_path_with_another_number_of_values_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'a/b/c' has 3 values .* partitioned by p, q"):
        partition_values("a/b/c", PartitionExtractor.MULTI, ("p", "q"), decodes=False)


def test_the_extractor_is_named_by_its_class_or_taken_as_hudi_does() -> None:
    named = PartitionExtractor.named("org.apache.hudi.hive.SlashEncodedDayPartitionValueExtractor", "o")
    assert named is PartitionExtractor.DAY
    with pytest.raises(ConfigError, match="option o="):
        PartitionExtractor.named("com.example.Mine", "o")
    assert PartitionExtractor.of((), is_hive_style=True) is PartitionExtractor.NONE
    assert PartitionExtractor.of(("p",), is_hive_style=True) is PartitionExtractor.HIVE_STYLE
    assert PartitionExtractor.of(("p",), is_hive_style=False) is PartitionExtractor.SINGLE
    assert PartitionExtractor.of(("p", "q"), is_hive_style=True) is PartitionExtractor.MULTI

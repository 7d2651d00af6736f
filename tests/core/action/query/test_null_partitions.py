"""Which fields a partition's path shows as null."""

import pytest

from eventide_core.action.query.planner import null_fields, with_null_fields
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.settings.table_config import TableConfig

NULL = "__HIVE_DEFAULT_PARTITION__"


def config(fields: str, **more: str) -> TableConfig:
    said = {"version": "9", "type": "MERGE_ON_READ", "recordkey.fields": "id", "partition.fields": fields}
    lines = [f"hoodie.table.{key}={value}" for key, value in said.items()]
    return TableConfig.parse("\n".join([*lines, *(f"hoodie.{key}={value}" for key, value in more.items())]), "t")


HIVE = {"datasource.write.hive_style_partitioning": "true"}
TIMES = {
    "table.keygenerator.type": "TIMESTAMP",
    "keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "keygen.timebased.output.dateformat": "yyyy",
}


@pytest.mark.parametrize(
    ("path", "fields", "settings", "expected"),
    [
        (f"a={NULL}", "a", HIVE, ("a",)),
        (NULL, "a", {}, ("a",)),
        (f"a=x/b={NULL}", "a,b", HIVE, ("b",)),
        (f"a={NULL}/b={NULL}", "a,b", HIVE, ("a", "b")),
        (f"b={NULL}", "a", HIVE, ()),
        (f"a=x{NULL}", "a", HIVE, ()),
        (f"x/{NULL}", "a", {}, ()),
        (NULL, "a", TIMES, ()),
        (NULL, "a", {"table.keygenerator.class": "org.acme.OwnKeyGenerator"}, ()),
        ("", "", {}, ()),
    ],
)
def test_a_field_is_null_if_its_directory_is_the_one_of_no_value(
    path: str, fields: str, settings: dict[str, str], expected: tuple[str, ...]
) -> None:
    assert null_fields(path, config(fields, **settings)) == expected


def test_the_rows_of_such_a_slice_are_not_those_of_its_file_alone() -> None:
    blocks = BlockFilter(frozenset(), None)
    kept, changed = with_null_fields(
        [SliceRead(path, "f", "b.parquet", (), blocks, is_plain=True) for path in ("a=x", f"a={NULL}")],
        config("a", **HIVE),
    )
    assert (kept.is_plain, kept.null_fields) == (True, ())
    assert (changed.is_plain, changed.null_fields) == (False, ("a",))

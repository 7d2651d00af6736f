"""The names of tables in catalogs."""

import pytest

from eventide_core.table.catalog.table_name import TableName


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("lake.trips", TableName(None, "lake", "trips")),
        ("hive://Lake.Trips_ro", TableName("hive", "lake", "trips_ro")),
        ("glue://my-db.trips", TableName("glue", "my-db", "trips")),
        ("s3://my.bucket", TableName("s3", "my", "bucket")),
    ],
)
def test_a_name_is_a_database_and_a_table_perhaps_of_a_catalog(text: str, name: TableName) -> None:
    assert TableName.parse(text) == name
    assert TableName.parse(str(name)) == name


@pytest.mark.parametrize(
    "text",
    ["trips", "/lake.trips", "./lake.trips", "a.b.c", "hive://lake", "hive://lake.trips/", "s3://b/a.b", "lake.", ""],
)
def test_a_path_and_a_uri_are_no_names(text: str) -> None:
    assert TableName.parse(text) is None

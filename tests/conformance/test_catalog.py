"""Tables in a real Hive Metastore: those that Hudi's own sync makes, and Spark with Hudi reads them by SQL."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import METASTORE_URIS, SYNC_DATABASE, SYNC_SPARK_VERSION
from eventide_core.table.catalog.catalog_table import CatalogPartition, CatalogTable
from support.judge import HudiJudge
from support.judge.options import (
    BUCKET_INDEX,
    COPY_ON_WRITE,
    DELETED_PARTITION,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)
from support.servers.hive_metastore import HiveMetastoreServer
from support.values.columns import schema_of

NAMES = ("kinds_ro", "kinds_rt", "kinds")
SCHEMA = schema_of(
    id=pa.string(),
    part=pa.string(),
    event_ts=pa.int64(),
    word=pa.string(),
    Price=pa.decimal128(10, 2),
    at=pa.timestamp("us", "UTC"),
    local=pa.timestamp("us"),
    day=pa.date32(),
    tags=pa.list_(pa.string()),
    counts=pa.map_(pa.string(), pa.int32()),
    place=pa.struct([pa.field("Lat", pa.float64()), pa.field("names", pa.list_(pa.string()))]),
    raw=pa.binary(),
)
OPTIONS = {
    **MERGE_ON_READ,
    **BUCKET_INDEX,
    **NO_METADATA_TABLE,
    **table_version(9),
    **table_name("kinds"),
    "hoodie.bucket.index.num.buckets": "1",
}
HOUR_MS = 3_600_000


def rows(*values: tuple[str, str, int, str]) -> pa.Table:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)
    rest = (
        *(Decimal("1.50"), moment, moment.replace(tzinfo=None), date(2026, 1, 2)),
        *(["a", "b"], [("n", 1)], {"Lat": 1.5, "names": ["x"]}, b"\x00\xff"),
    )
    schema = SCHEMA
    return pa.Table.from_pylist([dict(zip(schema.names, (*one, *rest), strict=True)) for one in values], schema=schema)


def in_catalog(
    server: HiveMetastoreServer, database: str, names: Sequence[str] = NAMES
) -> dict[str, tuple[CatalogTable, set[CatalogPartition]]]:
    """The tables without what names the database, without the metastore's own properties, Spark's schema parsed."""
    found = {}
    with closing(server.client()) as client:
        for name in names:
            table = client.table(database, name)
            assert table is not None
            said = {key: value for key, value in table.properties.items() if key != "transient_lastDdlTime"}
            count = int(said.pop("spark.sql.sources.schema.numParts"))
            parts = [said.pop(f"spark.sql.sources.schema.part.{number}") for number in range(count)]
            said["schema"] = json.dumps(json.loads("".join(parts)))
            plain = replace(table, database="", properties=said)
            assert table.serde_properties["path"] in (table.location, table.location.removeprefix("file:"))
            plain = replace(plain, serde_properties={**plain.serde_properties, "path": ""})
            found[name] = plain, set(client.partitions(table))
    return found


def words(found: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in found.select(["id", "part", "event_ts", "word"]).to_pylist())


@pytest.mark.broad
def test_the_tables_are_those_of_hudis_own_sync_and_spark_reads_them_by_sql(
    hive_metastore: HiveMetastoreServer, judge_111_with_catalog: HudiJudge, tmp_path: Path
) -> None:
    judge, path = judge_111_with_catalog, tmp_path / "kinds"
    now_ms = 1_767_000_000_000
    own = {
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        METASTORE_URIS: hive_metastore.uri,
        SYNC_DATABASE: "theirs",
    }
    first = rows(("k0", "a", now_ms, "base"), ("k1", "a", now_ms, "base"), ("k2", "c", now_ms, "base"))
    judge.write(path, first, options={**OPTIONS, **own}, mode="overwrite")
    table = Table.open(str(path), {**hive_metastore.options("ours"), SYNC_SPARK_VERSION: "3.5.9"})

    table.sync()

    assert in_catalog(hive_metastore, "ours") == in_catalog(hive_metastore, "theirs")
    assert not any(one.is_changed for one in table.sync(database="theirs").tables), "Hudi's own tables say it already"

    later = rows(("k0", "a", now_ms + HOUR_MS, "due"), ("k3", "a", now_ms + HOUR_MS, "due"))
    judge.write(path, later, options=OPTIONS)
    judge.write(path, rows(("k1", "a", now_ms + 3 * HOUR_MS, "left over")), options=OPTIONS)
    table.compact(table.plan_compaction(before=now_ms + 2 * HOUR_MS))
    result = table.sync()
    assert result.properties["hoodie.ro.event.time.watermark"] == str(now_ms + 2 * HOUR_MS)

    def by_sql(name: str) -> list[tuple[Any, ...]]:
        return words(judge.sql(f"select * from ours.{name}"))

    optimized, whole = words(table.read_optimized().to_arrow()), words(table.snapshot().to_arrow())
    assert {row[3] for row in optimized} == {"base", "due"}
    assert {row[3] for row in whole} == {"base", "due", "left over"}
    assert by_sql("kinds_ro") == optimized
    assert by_sql("kinds") == whole
    told = judge.sql("show tblproperties ours.kinds_ro").to_pylist()
    assert {"key": "hoodie.ro.event.time.watermark", "value": str(now_ms + 2 * HOUR_MS)} in told

    judge.write(path, first, options={**OPTIONS, **DELETED_PARTITION}, operation="delete_partition")
    assert [one.partitions_dropped for one in table.sync().tables] == [1, 1, 1]
    # A table that this session has not read before: of the others it remembers the files.
    assert by_sql("kinds_rt") == words(table.snapshot().to_arrow()) == [row for row in whole if row[1] != "c"]


@pytest.mark.broad
def test_a_copy_on_write_table_is_the_one_of_hudis_own_sync(
    hive_metastore: HiveMetastoreServer, judge_111_with_catalog: HudiJudge, tmp_path: Path
) -> None:
    judge, path, name = judge_111_with_catalog, tmp_path / "copied", "copied"
    options = OPTIONS | COPY_ON_WRITE | table_name(name)
    own = {
        "hoodie.datasource.hive_sync.enable": "true",
        "hoodie.datasource.hive_sync.mode": "hms",
        METASTORE_URIS: hive_metastore.uri,
        SYNC_DATABASE: "theirs_copied",
    }
    first = rows(("k0", "a", 100, "one"), ("k1", "a", 100, "one"), ("k2", "c", 100, "one"))
    judge.write(path, first, options={**options, **own}, mode="overwrite")
    table = Table.open(str(path), {**hive_metastore.options("ours_copied"), SYNC_SPARK_VERSION: "3.5.9"})

    def agree() -> None:
        ours, theirs = (in_catalog(hive_metastore, database, [name]) for database in ("ours_copied", "theirs_copied"))
        assert ours == theirs

    assert [(one.name, one.is_created) for one in table.sync().tables] == [(name, True)]
    agree()
    assert not any(one.is_changed for one in table.sync(database="theirs_copied").tables)

    second = rows(("k0", "a", 200, "two"), ("k3", "d", 200, "two"))
    judge.write(path, second, options={**options, **own})
    assert [one.partitions_added for one in table.sync().tables] == [1]
    agree()
    whole = words(table.snapshot().to_arrow())
    assert [row[3] for row in whole] == ["two", "one", "one", "two"]
    assert words(judge.sql(f"select * from ours_copied.{name}")) == whole

    assert table.rollback(table.state().timeline.writes[-1].requested_time)
    assert [one.partitions_dropped for one in table.sync().tables] == [1]
    judge.write(path, first, options={**options, **own, **DELETED_PARTITION}, operation="delete_partition")
    assert [one.partitions_dropped for one in table.sync().tables] == [1]
    assert not table.sync().tables[0].is_changed
    with closing(hive_metastore.client()) as client:
        found = client.table("ours_copied", name)
        assert found is not None
        assert {one.values for one in client.partitions(found)} == {("a",)}
        assert found.properties["last_commit_time_sync"] == table.state().timeline.writes[-1].requested_time

"""A table in a catalog: a real Hive Metastore by Thrift, the same through a SparkSession, and one in memory that fails."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide.bootstrap import assemble
from eventide.spark.java_home import find_java_home
from eventide_core.config import METASTORE_URIS, SYNC_AUTO_CREATE_DATABASE, SYNC_DATABASE, SYNC_TABLE
from eventide_core.errors import CatalogError
from eventide_core.service.maintenance.sync import CatalogSync
from eventide_core.table.catalog.catalog_table import CatalogColumn, CatalogPartition, CatalogTable
from support.doubles.catalogs import MemoryCatalog, counting
from support.run.child_processes import environment
from support.run.command_line import run, run_json
from support.servers.hive_metastore import HiveMetastoreServer
from support.servers.server_process import free_ports
from support.tables.small import OPTIONS, SERVE, make, rows

BY_SPARK = Path(__file__).parents[3] / "support" / "processes" / "sync_by_spark.py"
NAMES = ("t_ro", "t_rt", "t")
ENABLED = ("--option", "hoodie.datasource.hive_sync.enable=true")


@pytest.fixture
def nobody() -> str:
    """The address of a metastore that is not there."""
    return f"thrift://127.0.0.1:{free_ports(1)[0]}"


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """A table in a database of a metastore. `written` are the writes of the latest sync."""

    table: Table
    metastore: HiveMetastoreServer
    database: str
    written: list[str]

    def sync(self) -> tuple[list[str], dict[str, str]]:
        """The writes of a sync, and the freshness properties of `_ro` and `_rt`."""
        self.written.clear()
        result = self.table.sync()
        told = []
        for name in NAMES:
            properties = self.found(name).properties
            told.append({key: properties[key] for key in result.properties})
            published = {key for key in properties if key.startswith("hoodie.ro.")}
            assert published <= result.properties.keys()
        assert told == [result.properties] * 3
        return self.written.copy(), {k: v for k, v in result.properties.items() if k.startswith("hoodie.ro.")}

    def found(self, name: str) -> CatalogTable:
        with closing(self.metastore.client()) as client:
            entry = client.table(self.database, name)
        assert entry is not None
        return entry

    def partitions(self, name: str) -> dict[tuple[str, ...], str]:
        with closing(self.metastore.client()) as client:
            return {one.values: one.location for one in client.partitions(self.found(name))}


def test_the_catalog_follows_the_table_and_is_written_only_if_something_changed(
    hive_metastore: HiveMetastoreServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = "follows"
    written: list[str] = []
    monkeypatch.setattr("eventide.catalog.HiveMetastore", counting(written))
    table = make(tmp_path / "t", 9)
    table = Table.open(table.uri, {**table.options, **hive_metastore.options(database)})

    synced = SyncedTable(table, hive_metastore, database, written)
    table.upsert(rows(("k0", -9, "base")))
    assert synced.sync() == (
        [f"create {database}", *(f"{deed} {name}" for name in NAMES for deed in ("create", "add to", "alter"))],
        {},
    )
    assert {name: synced.partitions(name) for name in NAMES} == {
        name: {("a",): f"file:{tmp_path}/t/part=a"} for name in NAMES
    }
    assert synced.sync() == ([], {})

    table.upsert(rows(("k1", -9, "base"), ("k1", 3, "above")))
    result = table.compact(table.plan_compaction(data_latency_seconds=1800))
    fresh = result.freshness
    deeds, told = synced.sync()
    assert deeds == [f"{deed} {name}" for name in NAMES for deed in ("add to", "alter")]
    assert told == {
        "hoodie.ro.event.time.cut": str(fresh.cut_ms),
        "hoodie.ro.event.time.watermark": str(fresh.watermark_ms),
        "hoodie.ro.basis": "files",
        "hoodie.ro.late.records": "0",
    }
    assert set(synced.partitions("t_ro")) == {("a",), ("b",)}
    assert synced.sync() == ([], told)

    late = rows(("k0", -5, "late"))
    table.upsert(late)
    deeds, told = synced.sync()
    assert deeds == [f"alter {name}" for name in NAMES]
    assert told["hoodie.ro.event.time.watermark"] == str(late["ms"][0].as_py())
    assert told["hoodie.ro.late.records"] == "1"
    assert told["hoodie.ro.event.time.cut"] == str(fresh.cut_ms)

    grown = rows(("k0", -4, "grown"))
    table.upsert(grown.append_column(pa.field("more", pa.int32()), pa.array([1], pa.int32())), schema_mode="merge")
    entry = synced.found("t_rt")
    with closing(hive_metastore.client()) as client:
        client.add_partitions(entry, [CatalogPartition(("gone",), f"{tmp_path}/t/gone")])
        client.move_partitions(entry, [CatalogPartition(("b",), f"{tmp_path}/elsewhere")])
        client.alter_table(replace(entry, properties={**entry.properties, "theirs": "kept"}))
    deeds, _ = synced.sync()
    assert deeds == ["alter t_ro", "move in t_rt", "drop from t_rt", "alter t_rt", "alter t"]
    assert synced.partitions("t_rt") == synced.partitions("t_ro")
    entry = synced.found("t_rt")
    assert entry.columns[-1] == CatalogColumn("more", "int")
    assert '"name":"more"' in entry.properties["spark.sql.sources.schema.part.0"]
    assert (entry.properties["theirs"], entry.kind) == ("kept", "EXTERNAL_TABLE")


def test_the_command_reports_what_it_did_and_refuses_foreign_tables(
    hive_metastore: HiveMetastoreServer, tmp_path: Path, nobody: str
) -> None:
    path = tmp_path / "t"
    make(path, 6).upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    at = ("--option", f"{METASTORE_URIS}={hive_metastore.uri}")

    answer = run("sync", path, "--database", "nowhere", *at, "--option", f"{SYNC_AUTO_CREATE_DATABASE}=false")
    assert (answer.exit_code, "has no database nowhere" in answer.stderr) == (2, True)

    document = run_json("sync", path, "--catalog", "hive", "--database", "by_command", "--name", "trips", *at)
    assert [one["name"] for one in document["tables"]] == ["trips_ro", "trips_rt", "trips"]
    assert all(one["created"] and one["partitions_added"] == 2 for one in document["tables"])
    last = Table.open(str(path)).state().timeline.writes[-1].requested_time
    assert document["properties"] == {"last_commit_time_sync": last}, "version 6 records no completion times"
    again = run("sync", path, "--database", "by_command", "--name", "trips", *at)
    assert again.stdout.count("up to date") == 3

    make(tmp_path / "other", 9).upsert(rows(("k0", -9, "base")))
    answer = run("sync", tmp_path / "other", "--database", "by_command", "--name", "trips", *at, "--output", "json")
    assert answer.exit_code == 3
    assert f"is the table at file:{path}" in answer.document["error"]["message"]

    answer = run("sync", path, "--option", f"{METASTORE_URIS}={nobody}", "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (5, "CatalogError")


def test_a_failed_sync_keeps_the_compaction_and_has_its_own_exit_code(tmp_path: Path, nobody: str) -> None:
    path = tmp_path / "t"
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base")))

    answer = run(
        *("compact", path, "--data-latency", "30m", "--engine", "local", "--quiet", "--output", "json"),
        *(*OPTIONS, *ENABLED, "--option", f"{METASTORE_URIS}={nobody}"),
    )

    assert answer.exit_code == 5
    assert answer.document["state"] == "completed"
    assert nobody in answer.document["sync_error"]
    assert "the compaction is complete" in answer.stderr
    assert table.state().timeline.is_completed(answer.document["instant"])
    assert table.freshness().cut_ms == answer.document["cut_ms"] is not None


def test_the_table_service_syncs_the_catalog_and_retries_in_the_next_round(
    hive_metastore: HiveMetastoreServer, tmp_path: Path, nobody: str
) -> None:
    path = tmp_path / "t"
    make(path, 9).upsert(rows(("k0", -9, "base")))

    def serve(uri: str) -> tuple[int, dict[str, object]]:
        words = ("--rounds", 1, *SERVE, *OPTIONS, *ENABLED, "--option", f"{METASTORE_URIS}={uri}")
        answer = run("serve", path, *words, "--option", f"{SYNC_DATABASE}=served")
        return answer.exit_code, answer.document

    code, first = serve(nobody)
    assert (code, first["state"], first["synced"]) == (5, "failed", None)
    assert first["instant"] is not None
    assert first["watermark_ms"] == first["cut_ms"] is not None

    code, second = serve(hive_metastore.uri)
    assert (code, second["troubles"], second["synced"]) == (0, [], list(NAMES))


def test_a_sync_that_broke_off_anywhere_is_ended_by_the_next_one(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    application = assemble(table.uri, {**table.options, SYNC_TABLE: "t"})

    def sync(catalog: MemoryCatalog) -> None:
        CatalogSync(
            application.files, application.freshness, application.arrival, lambda: catalog, application.options
        ).sync()

    whole = MemoryCatalog()
    sync(whole)
    assert whole.writes == 1 + 3 * (1 + 2 + 1), (
        "database; and of each table: the table, its partitions, that it follows"
    )
    for number in range(whole.writes):
        broken = MemoryCatalog(fails_at=number)
        with pytest.raises(CatalogError):
            sync(broken)
        broken.fails_at = None
        sync(broken)
        assert broken.content() == whole.content(), f"after {number} writes"
        assert broken.writes == whole.writes, "nothing was written twice"


@pytest.mark.broad
def test_a_spark_session_with_hive_support_syncs_as_thrift_does(
    hive_metastore: HiveMetastoreServer, tmp_path: Path
) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))

    own = environment(JAVA_HOME=find_java_home())
    words = [sys.executable, str(BY_SPARK), str(tmp_path / "t"), hive_metastore.uri, "by_spark"]
    ended = subprocess.run(words, env=own, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)

    assert ended.returncode == 0, ended.stderr[-3000:]
    told = json.loads(ended.stdout)
    assert told["syncs"] == [list(NAMES), []]
    assert told["tables"][0] == told["tables"][1]
    assert told["partitions"][0] == told["partitions"][1]
    assert "part=a" in told["partitions"][0]
    assert (told["moved"], told["dropped"], told["grown"]) == (True, True, True)
    assert told["missing"] == [False, None]
    assert "did not list the partitions of by_spark.nowhere" in told["error"]
    assert told["sql"] == sorted(NAMES)

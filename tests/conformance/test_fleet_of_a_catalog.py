"""A fleet whose tables a real Hive Metastore names."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from support.run.command_line import run, run_json
from support.servers.hive_metastore import HiveMetastoreServer
from support.tables.small import OPTIONS, make, rows

DATABASE = "fleet_of_a_catalog"


@pytest.mark.broad
def test_a_fleet_serves_each_hudi_table_of_a_database_once(tmp_path: Path, hive_metastore: HiveMetastoreServer) -> None:
    catalog = [
        word for key, value in hive_metastore.options(DATABASE).items() for word in ("--option", f"{key}={value}")
    ]
    with closing(hive_metastore.client()) as client:
        client.create_database(DATABASE)
    for name in ("trips", "orders"):
        table = make(tmp_path / name, 9)
        table.upsert(rows(("k0", -9, "base")))
        table.upsert(rows(("k0", -3, "due")))
        synced = run_json("sync", tmp_path / name, "--database", DATABASE, *catalog)
        assert [one["name"] for one in synced["tables"]] == [f"{name}_ro", f"{name}_rt", name]
    words = ("--catalog", "hive", "--database", DATABASE, "--target-lag", "1h", *catalog, *OPTIONS)

    served = run("serve", *words, "--data-latency", "30m", "--engine", "local", "--rounds", 2, "--output", "json")
    assert served.exit_code == 0, served.stderr
    done = {one["table"]: one for one in map(json.loads, served.stdout.splitlines())}
    assert {name: (one["state"], one["met"]) for name, one in done.items()} == {
        "trips": ("compacted", True),
        "orders": ("compacted", True),
    }
    assert {Path(one["uri"]) for one in done.values()} == {tmp_path / "trips", tmp_path / "orders"}
    assert {one["table"]: one["state"] for one in run_json("status", *words)["tables"]} == {
        "trips": "met",
        "orders": "met",
    }
    absent = run("serve", "--catalog", "hive", "--database", "absent", *catalog, "--rounds", 1)
    assert (absent.exit_code, "absent" in absent.stderr) == (2, True)

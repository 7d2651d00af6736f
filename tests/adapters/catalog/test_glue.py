"""AWS Glue, by a server that stands in for it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from botocore.session import get_session

from eventide import CatalogError, RefusedError, Table
from eventide_adapters.catalog.glue import GLUE_ENDPOINT, GLUE_REGION, GlueCatalog
from eventide_core.config import SYNC_TOOLS, Options
from eventide_core.table.catalog.catalog_table import CatalogPartition
from support.run.command_line import run, run_json
from support.servers.s3_servers import S3Server
from support.servers.server_process import free_ports
from support.tables.small import make, rows

pytestmark = pytest.mark.slow

TOOL = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"
NAMES = ("t", "t_ro", "t_rt")
CREDENTIALS = {"hoodie.aws.access.key": "tests", "hoodie.aws.secret.key": "not-to-be-shown"}


@pytest.fixture
def options(moto: S3Server) -> dict[str, str]:
    return {**CREDENTIALS, GLUE_ENDPOINT: moto.endpoint, GLUE_REGION: "eu-north-1"}


@pytest.fixture
def database() -> str:
    return f"lake_{uuid4().hex}"


@pytest.fixture
def glue(options: dict[str, str]) -> Iterator[Any]:
    """Amazon's own client."""
    client = get_session().create_client(
        "glue",
        endpoint_url=options[GLUE_ENDPOINT],
        region_name=options[GLUE_REGION],
        aws_access_key_id="tests",
        aws_secret_access_key="tests",
    )
    yield client
    client.close()


def _table(path: Path, options: Mapping[str, str]) -> Table:
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    return Table.open(table.uri, {**table.options, **options})


def test_glue_follows_the_table(options: dict[str, str], database: str, glue: Any, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", options)
    first = table.sync("glue", database=database)
    assert {(one.name, one.is_created, one.partitions_added) for one in first.tables} == {
        (name, True, 2) for name in NAMES
    }
    assert not any(one.is_changed for one in table.sync("glue", database=database).tables)

    result = table.compact(data_latency_seconds=1800)
    table.sync("glue", database=database)
    entry = glue.get_table(DatabaseName=database, Name="t_ro")["Table"]
    assert entry["TableType"] == "EXTERNAL_TABLE"
    assert entry["Parameters"]["EXTERNAL"] == "TRUE"
    assert entry["Parameters"]["hoodie.ro.event.time.watermark"] == str(result.freshness.watermark_ms)
    assert [one["Name"] for one in entry["PartitionKeys"]] == ["part"]
    storage = entry["StorageDescriptor"]
    assert storage["Location"] == f"file:{tmp_path / 't'}"
    assert storage["InputFormat"] == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert storage["SerdeInfo"]["Parameters"]["hoodie.query.as.ro.table"] == "true"
    parts = glue.get_partitions(DatabaseName=database, TableName="t_ro")["Partitions"]
    assert {(*one["Values"], one["StorageDescriptor"]["Location"]) for one in parts} == {
        (part, f"file:{tmp_path / 't'}/part={part}") for part in "ab"
    }


def test_a_new_column_reaches_the_tables_and_their_partitions(
    options: dict[str, str], database: str, glue: Any, tmp_path: Path
) -> None:
    table = _table(tmp_path / "t", options)
    table.sync("glue", database=database)
    table.upsert(rows(("k0", -8, "wider")).append_column("more", pa.array([1])), schema_mode="merge")
    assert all(one.is_altered for one in table.sync("glue", database=database).tables)
    columns = glue.get_table(DatabaseName=database, Name="t")["Table"]["StorageDescriptor"]["Columns"]
    assert columns[-1] == {"Name": "more", "Type": "bigint"}
    for part in glue.get_partitions(DatabaseName=database, TableName="t")["Partitions"]:
        assert part["StorageDescriptor"]["Columns"] == columns


def test_what_others_wrote_to_a_table_stays(options: dict[str, str], database: str, glue: Any, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", options)
    table.sync("glue", database=database)
    entry = glue.get_table(DatabaseName=database, Name="t_ro")["Table"]
    kept = {key: entry[key] for key in ("Name", "TableType", "PartitionKeys", "StorageDescriptor")}
    parameters = {**entry["Parameters"], "owner": "analytics"}
    glue.update_table(
        DatabaseName=database, TableInput={**kept, "Description": "trips", "Owner": "me", "Parameters": parameters}
    )
    table.compact(data_latency_seconds=1800)
    table.sync("glue", database=database)
    entry = glue.get_table(DatabaseName=database, Name="t_ro")["Table"]
    assert (entry["Description"], entry["Owner"], entry["Parameters"]["owner"]) == ("trips", "me", "analytics")
    assert "hoodie.ro.event.time.watermark" in entry["Parameters"]


def test_many_partitions_take_several_requests(options: dict[str, str], database: str, tmp_path: Path) -> None:
    _table(tmp_path / "t", options).sync("glue", database=database)
    with closing(GlueCatalog(Options(options))) as catalog:
        table = catalog.table(database, "t")
        assert table is not None
        some = [CatalogPartition((f"p{number:03}",), f"file:/lake/p{number}") for number in range(230)]
        catalog.add_partitions(table, some)
        catalog.add_partitions(table, some)  # as another process may have
        assert len(catalog.partitions(table)) == 232
        moved = [CatalogPartition(one.values, "file:/elsewhere") for one in some]
        catalog.move_partitions(table, moved)
        assert sum(one.location == "file:/elsewhere" for one in catalog.partitions(table)) == 230
        catalog.drop_partitions(table, some)
        catalog.drop_partitions(table, some)
        assert {one.values for one in catalog.partitions(table)} == {("a",), ("b",)}
        with pytest.raises(CatalogError, match=r"did not change partitions of .*\.t: p000: "):
            catalog.move_partitions(table, some)


def test_the_command_line_syncs_and_lists_by_the_catalog_or_by_hudis_class(
    options: dict[str, str], database: str, tmp_path: Path
) -> None:
    _table(tmp_path / "t", options)
    words = tuple(word for key, value in options.items() for word in ("--option", f"{key}={value}"))
    done = run_json("sync", tmp_path / "t", "--catalog", "glue", "--database", database, *words)
    assert (done["catalog"], len(done["tables"])) == ("glue", 3)
    by_class = ("--option", f"{SYNC_TOOLS}={TOOL}")
    done = run_json("sync", tmp_path / "t", "--database", database, *words, *by_class)
    assert (done["catalog"], {one["created"] for one in done["tables"]}) == ("glue", {False})
    told = json.loads(run("status", "--catalog", "glue", "--database", database, *words, "--output", "json").stdout)
    assert [(one["table"], one["uri"]) for one in told["tables"]] == [("t", str(tmp_path / "t"))]


def test_another_table_of_the_name_is_refused(
    options: dict[str, str], database: str, glue: Any, tmp_path: Path
) -> None:
    table = _table(tmp_path / "t", options)
    glue.create_database(DatabaseInput={"Name": database})
    glue.create_table(DatabaseName=database, TableInput={"Name": "t_ro", "TableType": "VIRTUAL_VIEW"})
    with pytest.raises(RefusedError, match="t_ro"):
        table.sync("glue", database=database)
    assert [one["Name"] for one in glue.get_tables(DatabaseName=database)["TableList"]] == ["t_ro"]


def test_a_glue_that_does_not_answer_is_a_typed_error(options: dict[str, str], tmp_path: Path) -> None:
    nobody = {**options, GLUE_ENDPOINT: f"http://127.0.0.1:{free_ports(1)[0]}"}
    with pytest.raises(CatalogError, match="check region, credentials and address") as told:
        _table(tmp_path / "t", nobody).sync("glue", database="lake")
    assert told.value.exit_code == 5


def test_missing_credentials_are_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    answer = run("show", "db.t", "--catalog", "glue", "--option", f"{GLUE_REGION}=eu-north-1")
    assert answer.exit_code == 2
    assert "Unable to locate credentials; set hoodie.aws.access.key and hoodie.aws.secret.key" in answer.stderr

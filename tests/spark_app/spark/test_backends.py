"""Tables that Hudi wrote, compacted on other storages by the command line, by Spark, and through lost answers."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from eventide import Table
from eventide_adapters.storage.local import LocalStorage
from support.pasts import golden
from support.run.command_line import run_json
from support.servers.faulty_proxy import Fault, faulty_proxy
from support.servers.s3_servers import S3Server
from support.tables.backends import Backend, backend, files_of, upload
from support.values.rows import in_order

# Thresholds that leave logs over in most slices of the two tables.
DIVIDING_V6 = 1_700_002_204_000
BACK_DATING_V9 = 1_700_001_102_000


def place(name: str, table: str, request: pytest.FixtureRequest, directory: Path) -> Backend:
    """A copy of a golden table on that storage."""
    found = backend(name, request, directory)
    upload(golden.unpack(table, directory), found.storage)
    return found


def on_this_disk(table: str, directory: Path) -> Table:
    return Table.open(str(golden.unpack(table, directory / "here")))


@pytest.mark.parametrize("name", ["moto", pytest.param("hdfs", marks=pytest.mark.broad)])
def test_a_table_of_version_9_is_back_dated_there_by_the_command_line(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    there, here = place(name, "v9_no_deletes", request, tmp_path), on_this_disk("v9_no_deletes", tmp_path)
    local = here.plan_compaction(BACK_DATING_V9)
    before = in_order(here.snapshot().to_arrow())
    words = ("--before", local.cut_ms, "--engine", "local", *there.words())
    assert run_json("plan", there.uri, *words)["link_mode"] == "prefix"
    answer = run_json("compact", there.uri, *words)
    assert answer["metrics"]["log_files_compacted"] == here.compact(local).metrics["log_files_compacted"]
    assert in_order(there.table().snapshot().to_arrow()) == before
    assert in_order(there.table().read_optimized().to_arrow()) == in_order(here.read_optimized().to_arrow())
    fresh = run_json("freshness", there.uri, *there.words())
    assert (fresh["cut_ms"], fresh["watermark_ms"]) == (answer["cut_ms"], answer["watermark_ms"])


@pytest.mark.broad
def test_sparks_executors_reach_the_storage_by_themselves(
    tmp_path: Path, request: pytest.FixtureRequest, spark: SparkSession
) -> None:
    there, here = place("seaweedfs", "v6_no_deletes", request, tmp_path), on_this_disk("v6_no_deletes", tmp_path)
    table = there.table()
    before = in_order(here.snapshot().to_arrow())
    result = table.compact(table.plan_compaction(DIVIDING_V6), engine=spark)
    done = here.compact(here.plan_compaction(DIVIDING_V6))
    assert result.metrics["log_files_linked"] == done.metrics["log_files_linked"] > 0
    assert in_order(table.snapshot().to_spark(spark).toArrow()) == before
    assert in_order(table.read_optimized().to_spark(spark).toArrow()) == in_order(here.read_optimized().to_arrow())


def test_a_compaction_survives_a_store_that_loses_every_fourth_answer(
    moto: S3Server, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.01)
    there, here = place("moto", "v6_no_deletes", request, tmp_path), on_this_disk("v6_no_deletes", tmp_path)
    before = in_order(here.snapshot().to_arrow())
    faults = (Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER)

    def every_fourth(_method: str, _path: str, number: int) -> Fault | None:
        return faults[number // 4 % len(faults)] if number % 4 == 3 else None

    with faulty_proxy(moto.endpoint.removeprefix("http://")) as proxy:
        proxy.choose = every_fourth
        table = there.with_option("fs.s3a.endpoint", f"http://{proxy.address}").table()
        result = table.compact(table.plan_compaction(DIVIDING_V6))
        assert all(proxy.struck[fault] for fault in faults)
    done = here.compact(here.plan_compaction(DIVIDING_V6))
    assert result.metrics["log_files_linked"] == done.metrics["log_files_linked"]
    assert len(files_of(there.storage)) == len(files_of(LocalStorage(here.uri)))
    assert in_order(there.table().snapshot().to_arrow()) == before
    assert in_order(there.table().read_optimized().to_arrow()) == in_order(here.read_optimized().to_arrow())


@pytest.mark.parametrize(
    "table",
    [
        pytest.param("v6_copy_on_write", marks=pytest.mark.proof),
        pytest.param("v9_copy_on_write", marks=pytest.mark.broad),
    ],
)
def test_a_copy_on_write_table_is_read_by_spark_as_here(table: str, tmp_path: Path, spark: SparkSession) -> None:
    here = Table.open(str(golden.unpack(table, tmp_path)))
    begin = here.state().timeline.writes[-2].requested_time
    for rows in (here.snapshot(), here.read_optimized(), here.as_of(begin), here.incremental(begin)):
        assert in_order(rows.to_spark(spark).toArrow()) == in_order(rows.to_arrow())

"""Spark Connect: the same engine, writes and queries by a client of a real server, whose workers do not have eventide."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from support.pasts import golden
from support.processes import connect_client
from support.run.real_parts import require_or_skip
from support.servers.server_process import ServerUnavailableError
from support.servers.spark_servers import connect_server
from support.tables.thresholds import dividing_plan

pytestmark = [pytest.mark.real, pytest.mark.broad]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the client saw."""
    directory, clients = tmp_path_factory.mktemp("connect"), tmp_path_factory.mktemp("clients")
    temporary = clients / "temporary"
    temporary.mkdir()
    try:
        with connect_server(directory) as url:
            done = subprocess.run(
                [sys.executable, connect_client.__file__, url, str(clients)],
                env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2]), "TMPDIR": str(temporary)},
                capture_output=True,
                text=True,
                check=False,
            )
    except ServerUnavailableError as missing:
        require_or_skip(f"Spark Connect does not start here: {missing}")
    assert done.returncode == 0, done.stderr[-4000:]
    answer: dict[str, Any] = json.loads(done.stdout.rpartition("ANSWER")[2])
    return answer | {"left": [path.name for path in temporary.iterdir()]}


def test_the_cores_of_the_server_are_known(told: dict[str, Any]) -> None:
    assert told["parallelism"] == 2


def test_an_answer_of_any_size_comes_back(told: dict[str, Any]) -> None:
    assert told["big"] == [1, 40 << 20, 2]


@pytest.mark.parametrize("index", ["bucket", "simple", "global"])
def test_a_table_lives_over_connect(index: str, told: dict[str, Any]) -> None:
    life = told[index]
    expected = {
        f"k{n}": ["ab"[n % 2], f"2026-03-01T{n % 24:02}:00:00+00:00", "1.5" if n < 20 else "2.0"] for n in range(1, 59)
    }
    assert {key: values for key, *values in life["before"]} == expected
    assert life["after"] == life["before"]
    assert life["read_optimized"][0] == life["read_optimized"][1] != []
    assert life["sound"]
    assert life["told"] > 0


@pytest.mark.parametrize("index", ["bucket", "simple", "global"])
def test_the_rows_of_a_data_frame_are_computed_once(index: str, told: dict[str, Any]) -> None:
    assert told[index]["computed"] == 3


def test_a_table_of_hudi_is_compacted_as_by_threads(told: dict[str, Any], tmp_path: Path) -> None:
    twin = Table.open(str(golden.unpack("v9_avro_types", tmp_path)))
    rows = twin.snapshot().to_arrow().num_rows
    assert told["hudi"]["rows"] == [rows, rows]
    assert (
        told["hudi"]["linked"] == twin.compact(dividing_plan(twin, "event_ts", "copy")).metrics["log_files_linked"] > 0
    )
    assert told["hudi"]["types"]["fare"] == "decimal(10,2)"


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("typed", "CorruptLogBlockError", "torn at 1"),
        ("storage", "EngineError", "no network at 2; nothing was committed"),
        ("other", "EngineError", "ValueError: unforeseen 3; nothing was committed"),
        ("record", "InvalidRecordError", "'ended_at' is null"),
        ("stream", "UnsupportedEngineError", "checkpoint.identifier"),
        ("watermark", "UnsupportedEngineError", "classic SparkSession"),
        ("sync", "UnsupportedEngineError", "hoodie.datasource.hive_sync.metastore.uris"),
    ],
)
def test_errors_are_typed_over_connect(name: str, kind: str, words: str, told: dict[str, Any]) -> None:
    found, text = told["errors"][name]
    assert (found, words in text) == (kind, True), text


def test_streams_and_the_format_work_over_connect(told: dict[str, Any]) -> None:
    assert told["streams"] == [2, 9]


def test_nothing_temporary_is_left(told: dict[str, Any]) -> None:
    assert told["left"] == []


def test_local_times_are_timestamp_ntz_with_their_very_values(told: dict[str, Any]) -> None:
    local = told["local_times"]
    assert [(types["at"], types["many"]) for types in local["types"]] == [("timestamp_ntz", "array<timestamp_ntz>")] * 2
    assert local["found"] == [1, 1]
    assert local["refused"][0] == "InvalidRecordError"
    assert "nothing says in which zone; cast it before" in local["refused"][1]

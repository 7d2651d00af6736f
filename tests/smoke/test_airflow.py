"""The operators and the sensor in a real Airflow: `./run compat airflow` runs it in an environment of its own."""

import os
import subprocess
import sys
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table

# Not by an import, because Airflow reads its settings then.
pytestmark = pytest.mark.skipif(find_spec("airflow") is None, reason="Airflow has an environment of its own")

T = "2026-03-03T00:00:00Z"
T_MS = 1_772_496_000_000
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("trip", pa.string()),
    pa.field("city", pa.string()),
    pa.field("ended_at", pa.timestamp("us", "UTC")),
]


DAG = """
from datetime import datetime

from airflow.sdk import DAG

from airflow.sdk import Asset
from eventide.airflow import EventideCompactOperator, EventideWindowsOperator, FreshnessSensor

{code}

with DAG("{name}", schedule=None, start_date=datetime(2026, 3, 1)):
    {tasks}
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes of Airflow, with a home and a database."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "airflow", "db", "migrate"]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return environment


def started(airflow: dict[str, str], name: str, tasks: str, code: str = "") -> subprocess.Popen[str]:
    """A run of a DAG by Airflow's own command, in a process of its own."""
    path = Path(airflow["AIRFLOW__CORE__DAGS_FOLDER"]) / f"{name}.py"
    path.write_text(DAG.format(name=name, tasks=tasks, code=code), encoding="utf-8")
    command = [sys.executable, "-m", "airflow", "dags", "test", name, "2026-03-03"]
    return subprocess.Popen(
        command, env=airflow, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
    )


@pytest.fixture
def trips(tmp_path: Path) -> Table:
    """A base file and a log file with a record of before T, and one of after it."""
    made = Table.create(
        str(tmp_path / "trips"),
        schema=pa.schema(COLUMNS),
        record_key="trip",
        partition="city",
        event_time="ended_at",
        options={"hoodie.bucket.index.num.buckets": 1},
    )
    made.upsert(rows(("t1", 2, 8)))
    made.upsert(rows(("t2", 2, 17)))
    made.upsert(rows(("t3", 3, 9)))
    return made


def rows(*found: tuple[str, int, int]) -> pa.Table:
    """Trips by key, day of March and hour."""
    values = [
        {"trip": key, "city": "Oslo", "ended_at": datetime(2026, 3, day, hour, tzinfo=UTC)} for key, day, hour in found
    ]
    return pa.Table.from_pylist(values, schema=pa.schema(COLUMNS))


def test_a_dag_compacts_and_waits_for_the_watermark(trips: Table, airflow: dict[str, str]) -> None:
    before = "{{ ds }}T00:00Z"
    tasks = (
        f"EventideCompactOperator(task_id='compact', table={trips.uri!r}, before={before!r})"
        f" >> FreshnessSensor(task_id='is_complete', table={trips.uri!r}, require={before!r})"
    )
    with started(airflow, "compacts", tasks) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    assert trips.freshness().watermark_ms == T_MS
    assert [one.cut_ms for one in trips.history()].count(T_MS) == 1
    assert set(trips.read_optimized().to_arrow()["trip"].to_pylist()) >= {"t1", "t2"}


def test_a_deferred_sensor_continues_when_the_watermark_passes_t(trips: Table, airflow: dict[str, str]) -> None:
    tasks = f"FreshnessSensor(task_id='is_complete', table={trips.uri!r}, require='{T}', poke_interval=0.1)"
    with started(airflow, "waits", tasks) as run:
        assert run.stdout is not None
        before = list[str]()
        for line in run.stdout:
            before.append(line)
            if "DEFERRED" in line.upper():
                trips.compact(before=T)
                break
        after, _ = run.communicate(timeout=300)
    assert run.returncode == 0, "".join(before) + after
    assert trips.freshness().watermark_ms == T_MS, "".join(before)


def test_what_only_a_person_can_mend_is_not_retried(tmp_path: Path, airflow: dict[str, str]) -> None:
    tasks = f"FreshnessSensor(task_id='is_complete', table={str(tmp_path)!r}, require='{T}', retries=3)"
    with started(airflow, "fails", tasks) as run:
        said, _ = run.communicate(timeout=300)
    assert run.returncode != 0
    assert "AirflowFailException" in said
    assert "is not a Hudi table" in said or "hoodie.properties" in said


PROCESS = """
import os

def process(window):
    with open({path!r}, "a") as file:
        ids = sorted(window.rows().to_arrow(["trip"])["trip"].to_pylist())
        file.write(window.begin.isoformat() + " " + str(window.is_correction) + " " + ",".join(ids) + "\\n")
    if not os.path.exists({path!r} + ".died"):
        open({path!r} + ".died", "w").close()
        raise RuntimeError("died")
"""


def test_a_dag_works_through_closed_windows_each_once(trips: Table, airflow: dict[str, str], tmp_path: Path) -> None:
    """The first attempt dies in a window: the run fails, and the next run takes the window over when its lease ends."""
    trips.compact(before=T, cut="exact")
    path = tmp_path / "windows.txt"
    tasks = (
        f"EventideWindowsOperator(task_id='days', table={trips.uri!r}, every='1d', consumer='days', process=process, "
        "lease='1s', outlets=[Asset('days')])"
    )
    code = PROCESS.replace("{path!r}", repr(str(path)))
    for is_met in (False, True, True):
        with started(airflow, "windows", tasks, code) as run:
            said, _ = run.communicate(timeout=300)
        assert (run.returncode == 0) == is_met, said
    assert path.read_text(encoding="utf-8").splitlines() == ["2026-03-02T00:00:00+00:00 False t1,t2"] * 2
    assert "skipped" in said.lower(), said
    assert trips.windows("1d", "days").progress().open is None

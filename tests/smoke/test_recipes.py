"""The recipes of docs/guide/recipes.md, by Dagster and dbt: `./run compat recipes` runs them in an environment apart."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "recipes.md"
COLUMNS: "list[pa.Field[Any]]" = [pa.field("trip", pa.string()), pa.field("ended_at", pa.timestamp("us", "UTC"))]
MARKS = {"eventide.done.marker.every": "1h", "eventide.done.marker.since": "2026-03-02T20:00Z"}


def code(language: str, lake: Path) -> str:
    """The page's only block in a language, about this lake."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return str(found).replace("/lake/", f"{lake}/")


def write(table: Table, *times: datetime) -> None:
    rows = [{"trip": f"{time:%d%H%M%S%f}", "ended_at": time} for time in times]
    table.upsert(pa.Table.from_pylist(rows, schema=pa.schema(COLUMNS)))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    options = {"hoodie.bucket.index.num.buckets": "1", "hoodie.time.generator.max_expected_clock_skew_time_ms": "1"}
    return Table.create(
        str(tmp_path / "trips"),
        schema=pa.schema(COLUMNS),
        record_key="trip",
        event_time="ended_at",
        options={**options, **MARKS, "eventide.done.marker.to": str(tmp_path / "done")},
    )


def test_dagster_materializes_each_complete_hour_once_and_again_after_late_data(table: Table, tmp_path: Path) -> None:
    dagster = pytest.importorskip("dagster", reason="the package dagster is missing")
    names: dict[str, Any] = {}
    exec(compile(code("py", tmp_path), str(PAGE), "exec"), names)

    def tick(cursor: str | None) -> tuple[list[tuple[str, str]], str]:
        with dagster.DagsterInstance.ephemeral() as instance:
            context = dagster.build_sensor_context(instance, cursor=cursor, definitions=names["definitions"])
            result = names["complete_hours"](context)
        events = [(type(event).__name__.removeprefix("Asset"), event.partition) for event in result.asset_events]
        keys = set(names["trips"].partitions_def.get_partition_keys())
        assert {partition for _, partition in events} <= keys
        return events, result.cursor

    day = datetime(2026, 3, 2, 20, 30, tzinfo=UTC)
    write(table, day, day + timedelta(hours=1), day + timedelta(hours=2))
    table.compact(before="2026-03-02T22:00Z", cut="exact")
    table.mark_done()
    done = [("Materialization", "2026-03-02-20:00"), ("Materialization", "2026-03-02-21:00")]
    events, cursor = tick(None)
    assert events == done
    assert tick(cursor) == ([], cursor)
    write(table, day + timedelta(minutes=1))
    table.mark_done()
    events, cursor = tick(cursor)
    assert events == [("Observation", "2026-03-02-20:00")]
    table.compact(before="2026-03-02T22:00Z", cut="exact")
    table.mark_done()
    assert tick(cursor)[0] == done[:1]


@pytest.mark.skipif(find_spec("dbt") is None, reason="the packages dbt-core and dbt-duckdb are missing")
def test_dbt_finds_a_source_stale_while_a_source_of_the_table_is_behind(table: Table, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text("name: lake\nversion: '1.0.0'\nprofile: lake\n")
    (project / "profiles.yml").write_text("lake: {target: t, outputs: {t: {type: duckdb, path: 'lake.db'}}}\n")
    (project / "models" / "sources.yml").write_text(code("yml", tmp_path))

    def freshness() -> tuple[int, str]:
        asked = [sys.executable, "-m", "eventide", "freshness", table.uri, "--output", "json"]
        answer = subprocess.run(asked, capture_output=True, check=True).stdout
        (tmp_path / "freshness.json").write_bytes(answer)
        words = ("source", "freshness", "--project-dir", project, "--profiles-dir", project)
        dbt = Path(sys.executable).with_name("dbt")
        env = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        run = subprocess.run([dbt, *words], cwd=project, env=env, capture_output=True, text=True, check=False)
        (result,) = json.loads((project / "target" / "sources.json").read_text())["results"]
        return run.returncode, result["status"]

    assert freshness() == (1, "error"), "there is no watermark yet"
    now = datetime.now(UTC)
    write(table, now - timedelta(hours=9))
    table.compact(before=now - timedelta(minutes=1))
    assert freshness() == (0, "pass")
    table.sources.declare("orders")
    table.upsert(pa.Table.from_pylist([], schema=pa.schema(COLUMNS)), sources={"orders": now - timedelta(hours=9)})
    assert freshness() == (1, "error"), "the source has come to nine hours ago"
    table.upsert(pa.Table.from_pylist([], schema=pa.schema(COLUMNS)), sources={"orders": now - timedelta(hours=3)})
    assert freshness() == (0, "warn")

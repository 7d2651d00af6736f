"""What the type checker of a user sees of eventide: the program below, and a wrong one."""

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

_PROGRAM = """
from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import DataFrame
from typing_extensions import assert_type

import eventide
from eventide import BusyError, EventideError, Freshness, HistoryEntry, Plan, Rows, Table, WriteResult


def main(uri: str) -> None:
    trips = Table.open(uri, {"hoodie.payload.event.time.field": "ended_at"})
    assert_type(trips.version, int)
    assert_type(trips.schema, pa.Schema)
    assert_type(trips.properties, Mapping[str, str])
    assert_type(trips.history(), tuple[HistoryEntry, ...])
    assert_type(trips.plan_compaction(before=datetime(2026, 11, 21, tzinfo=UTC)), Plan)
    assert_type(trips.freshness(), Freshness)
    rows = trips.snapshot()
    assert_type(rows, Rows)
    assert_type(rows.to_arrow(["trip"], "city = 'Oslo'"), pa.Table)
    assert_type(len(rows), int)
    try:
        assert_type(trips.compact(before="2026-11-21T00:00Z").freshness.watermark_ms, int | None)
    except BusyError as busy:
        assert_type(busy.exit_code, int)
    except EventideError:
        raise
    assert_type(trips.freshness().watermark, datetime | None)
    assert_type(trips.history()[0].cut_time, datetime | None)
    assert_type(eventide.__version__, str)


def write(trips: Table, frame: DataFrame, arrow: pa.Table, reader: pa.RecordBatchReader) -> None:
    assert_type(trips.upsert(arrow), WriteResult)
    trips.upsert(frame)
    trips.insert(reader)
    trips.bulk_insert(arrow.to_batches()[0])
    trips.upsert(trips.snapshot())
    trips.delete(where="fare > 3")
    trips.delete(arrow)
    trips.merge(arrow, when_matched_update=True)
"""
_WITHOUT_SPARK = """
from pyarrow import Schema

from eventide import Table


def main(uri: str, schema: Schema) -> None:
    trips = Table.create(uri, schema=schema, record_key="trip", options={"hoodie.index.type": "SIMPLE"})
    print(trips.compact(before="2026-11-21T00:00Z", cut="exact").instant)
    print(trips.compact(trips.plan_compaction(before=0, cut="file")).instant)
    print([check.name for check in trips.verify(deep=True).failed])
    trips.compact(cut="exakt")
"""
_WRONG = """
from eventide import Table

Table.open("/lake/trips").compact(befor="2026-11-21T00:00Z")
Table.open("/lake/trips").history().watermark
Table.open("/lake/trips").upsert(3)
Table.open("/lake/trips").delete(["a"])
"""


def _mypy(program: str, directory: Path) -> subprocess.CompletedProcess[str]:
    path = directory / "program.py"
    path.write_text(program)
    # With the cache of `./run check`, which knows the product's modules already.
    cache = f"--cache-dir={ROOT / '.mypy_cache'}"
    words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", cache, str(path)]
    return subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)


@pytest.mark.broad
def test_a_program_of_a_user_is_sound_to_mypy_and_a_wrong_one_is_not(tmp_path: Path) -> None:
    run = _mypy(_PROGRAM, tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    run = _mypy(_WRONG, tmp_path)
    assert run.returncode == 1
    assert 'Unexpected keyword argument "befor"' in run.stdout
    assert 'has no attribute "watermark"' in run.stdout
    assert 'Argument 1 to "upsert" of "TableWrites" has incompatible type "int"' in run.stdout
    assert 'Argument 1 to "delete" of "TableWrites" has incompatible type "list[str]"' in run.stdout


@pytest.mark.broad
def test_strict_pyright_knows_all_of_a_program_where_pyspark_is_not_installed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_WITHOUT_SPARK)
    packages = tmp_path / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("pyspark", "py4j", "__editable__")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    venv.create(tmp_path / "env", with_pip=False)
    places = [str(ROOT / name) for name in ("core", "adapters", "spark_app")]
    settings = {"include": ["program.py"], "typeCheckingMode": "strict", "extraPaths": [*places, str(packages)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    words = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        str(tmp_path / "env" / "bin" / "python"),
        "-p",
        str(tmp_path),
    ]
    run = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in run.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1, run.stdout
    assert "\"Literal['exakt']\"" in errors[0]

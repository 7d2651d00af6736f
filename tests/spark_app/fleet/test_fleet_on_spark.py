"""A fleet whose large tables are compacted on one shared SparkSession."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.spark.engine import SparkEngine
from support.run.command_line import run
from support.tables.small import SOON, make, rows, seen

pytestmark = [pytest.mark.slow, pytest.mark.broad]


def test_large_tables_of_a_fleet_share_a_session_and_small_ones_need_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = make(tmp_path / "large", 9)
    large.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    large.upsert(rows(("k0", -3, "due " * 50_000), ("k1", 3, "left over")))
    shutil.copytree(tmp_path / "large", tmp_path / "large too", symlinks=True)
    small = make(tmp_path / "small", 9)
    small.upsert(rows(("k0", -9, "base")))
    small.upsert(rows(("k0", -3, "due")))
    log_bytes = sum(log.size for found in large.describe().file_slices for log in found.log_files)
    tables = [tmp_path / name for name in ("large", "large too", "small")]
    parts = [f'[fleet]\nspark_from = "{log_bytes}B"\n[defaults]\ntarget_lag = "1h"\ndata_latency = "30m"\n[options]\n']
    parts += [f'"{key}" = "{value}"\n' for key, value in SOON.items()]
    parts += [f"[[table]]\nuri = '{path}'\n" for path in tables]
    fleet = tmp_path / "fleet.toml"
    fleet.write_text("".join(parts), encoding="utf-8")
    on_spark = list[Any]()
    run_map = SparkEngine.map

    def noted(self: SparkEngine, function: Callable[[Any], Any], items: Sequence[Any], **rest: Any) -> list[Any]:
        on_spark.append((self.session, [getattr(item, "op", None) for item in items]))
        return run_map(self, function, items, **rest)

    monkeypatch.setattr(SparkEngine, "map", noted)
    served = run(
        "serve", "--fleet", fleet, "--engine", "spark", "--master", "local[2]", "--rounds", 3, "--output", "json"
    )
    done = [json.loads(line) for line in served.stdout.splitlines()]
    assert {one["table"]: (one["state"], one["error"]) for one in done} == dict.fromkeys(
        ("large", "large too", "small"), ("compacted", None)
    ), served.stderr
    merges = [session for session, planned in on_spark if any(planned)]
    assert len(merges) == 2
    assert len(set(map(id, merges))) == 1
    for path in tables:
        table = Table.open(str(path))
        assert seen(table.read_optimized().to_arrow())["k0"] == seen(table.snapshot().to_arrow())["k0"]

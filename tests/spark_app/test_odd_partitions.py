"""Partitions of every form: each has its path and its own freshness, and filters go by the values of its rows."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from golden.histories import EPOCH_MS
from golden.readings import as_json
from support.pasts import golden
from support.run.command_line import run_json

AFTER_ALL_MS = EPOCH_MS + 100_000_000
LATE_MS = EPOCH_MS - 5_000_000

# A table, a condition and the values that it asks for. Hudi on Spark shows paths in place of some values; hudi-rs does not.
FILTERS = [
    ("v9_no_deletes", "part = 'a'", {"part": "a"}),
    ("v6_encoded", "part = '2026/11/21 a'", {"part": "2026/11/21 a"}),
    ("v6_encoded", "part = 'é%=b' and region = 'y'", {"part": "é%=b", "region": "y"}),
    ("v6_encoded", "part is null", {"part": None}),
    ("v9_dates", "part = '2026-11-21'", {"part": "2026-11-21"}),
    ("v9_unpartitioned", "part = 'b'", {"part": "b"}),
]
TABLES = sorted({name for name, *_ in FILTERS})


def opened(name: str, directory: Path) -> Table:
    options = golden.expected(name).options
    known = {key: value for key, value in options.items() if key.startswith(("hoodie.index.", "hoodie.bucket."))}
    path = golden.unpack(name, directory)
    return Table.open(str(path), known | {"hoodie.payload.event.time.field": "event_ts"})


def partition_directories(table: Path) -> set[str]:
    """The directories that Hudi has marked as partitions, as paths below the table."""
    marked = (found.parent.relative_to(table) for found in table.rglob(".hoodie_partition_metadata"))
    return {
        "" if directory == Path() else directory.as_posix() for directory in marked if ".hoodie" not in directory.parts
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_late_record_lowers_the_watermark_of_its_own_partition(name: str, tmp_path: Path) -> None:
    table = opened(name, tmp_path)
    table.compact(table.plan_compaction(AFTER_ALL_MS))
    directories = partition_directories(tmp_path / name)
    before = table.freshness_by_partition()
    assert set(before) == directories
    assert {found.watermark_ms for found in before.values()} == {AFTER_ALL_MS}

    for late, partition in enumerate(sorted(directories)):
        row = next(row for row in table.snapshot().to_arrow().to_pylist() if row["_hoodie_partition_path"] == partition)
        columns = {name: value for name, value in row.items() if not name.startswith("_hoodie_")}
        schema = pa.schema([field for field in table.snapshot().schema if field.name in columns])
        table.upsert(pa.Table.from_pylist([columns | {"event_ts": LATE_MS - late}], schema=schema))
        now = table.freshness_by_partition()
        assert set(now) == directories
        assert (now[partition].watermark_ms, now[partition].late_records) == (LATE_MS - late, 1)
        others = [now[other].watermark_ms for other in sorted(directories) if other > partition]
        assert others == [AFTER_ALL_MS] * len(others)
        assert table.freshness().watermark_ms == LATE_MS - late


@pytest.mark.parametrize("name", TABLES)
def test_freshness_by_partition_names_partitions_by_their_paths(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    document = run_json("freshness", path, "--by", "partition", "--event-time", "event_ts")
    assert set(document["by_partition"]) == partition_directories(path)


@pytest.mark.parametrize(("name", "condition", "wanted"), FILTERS)
def test_a_filter_goes_by_the_values_of_a_partition(
    name: str, condition: str, wanted: dict[str, str | None], tmp_path: Path
) -> None:
    path, expected, answer = golden.unpack(name, tmp_path), golden.expected(name), tmp_path / "rows.parquet"
    columns = expected.columns
    rows = [
        row
        for row in expected.read(judge="hudi-rs")
        if all(row[columns.index(name)] == value for name, value in wanted.items())
    ]
    run_json("read", path, "--query", "snapshot", "--filter", condition, "--to", answer)
    found = [tuple(as_json(row[name]) for name in columns) for row in pq.read_table(answer).to_pylist()]
    assert sorted(map(repr, found)) == sorted(map(repr, rows))
    assert len(found) > 0
    assert len(found) < len(expected.read(judge="hudi-rs"))

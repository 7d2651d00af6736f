"""A writer that lies in footers, in the metadata table, and in what a commit says it replaced.

No lie moves a watermark or loses a row of a query by eventide, or `verify` finds it; where only the lie itself tells, the
test says what becomes of it (docs/invariants.md, "What plans rely on").
"""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_adapters.format.metadata_table.column_ranges import ColumnRange
from eventide_adapters.format.metadata_table.records.records import record_index_value
from eventide_core.config import BUCKETS
from support.faults.damages import CODEC

START_MS: Final = 1_700_000_000_000
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("part", pa.string()),
    pa.field("ms", pa.int64(), nullable=False),
]
SCHEMA = pa.schema(COLUMNS)
BY_RECORD_INDEX: Final = {"hoodie.index.type": "RECORD_INDEX"}
STATISTICS: Final = ["column_stats"]


def _rows(*rows: tuple[str, str, int]) -> pa.Table:
    found = [(key, part, START_MS + ms) for key, part, ms in rows]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def _made(path: Path, version: int, **options: str) -> Table:
    chosen = options or {str(BUCKETS): "1"}
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="ms",
        version=version,
        options=chosen,
    )


def _shown(table: Table) -> list[tuple[str, int]]:
    return sorted((row["id"], row["ms"] - START_MS) for row in table.snapshot().to_arrow(["id", "ms"]).to_pylist())


def _failed(table: Table) -> set[str]:
    return {check.name for check in Table.open(table.uri).verify(deep=True).failed}


def _restate(path: Path, said_ms: int, told_ms: int) -> None:
    """In the footer alone, which is behind all pages."""
    data = path.read_bytes()
    begin = len(data) - 8 - struct.unpack("<i", data[-8:-4])[0]
    said, told = (struct.pack("<q", START_MS + ms) for ms in (said_ms, told_ms))
    assert data[begin:].count(said)
    path.write_bytes(data[:begin] + data[begin:].replace(said, told))


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(("said", "told"), [(20, 8), (5, 7)], ids=["latest", "earliest"])
def test_a_false_range_of_event_times_in_a_footer_is_found(said: int, told: int, version: int, tmp_path: Path) -> None:
    table = _made(tmp_path / "t", version)
    table.upsert(_rows(("a", "p", 5), ("b", "p", 8)))
    table.upsert(_rows(("c", "p", 20)))
    table.compact(before=START_MS + 30, cut="file")
    assert not _failed(table)
    (base,) = (
        found for found in (tmp_path / "t" / "part=p").glob("*.parquet") if pq.read_metadata(found).num_rows == 3
    )
    _restate(base, said, told)
    assert "event-times" in _failed(table)
    assert _shown(Table.open(table.uri)) == [("a", 5), ("b", 8), ("c", 20)]


@pytest.mark.parametrize("version", [6, 9])
def test_a_false_count_of_rows_is_found(version: int, tmp_path: Path) -> None:
    table = _made(tmp_path / "t", version)
    table.upsert(_rows(("a", "p", 5), ("b", "p", 8)))
    (path,) = (Path(table.uri) / ".hoodie").rglob("[0-9]*.deltacommit")
    commit = CODEC.decode_commit(path.read_bytes(), str(path))
    stats = {part: tuple(s._replace(num_writes=1) for s in found) for part, found in commit.write_stats.items()}
    path.write_bytes(CODEC.encode_commit(replace(commit, write_stats=stats), version))
    assert "base-files" in _failed(table)


@pytest.mark.parametrize("version", [6, 9])
def test_false_column_and_partition_statistics_skip_no_row_and_move_no_watermark(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _made(tmp_path / "t", version)
    table.upsert(_rows(("a", "p", 5), ("b", "q", 8)))
    table.compact(before=START_MS + 6)
    table.upsert(_rows(("a", "p", 20), ("c", "q", 4)))
    true, shown = table.freshness(), _shown(table)
    with monkeypatch.context() as lying:
        wrapped = ColumnRange.wrapped
        lying.setattr(
            ColumnRange,
            "wrapped",
            lambda self, *args: wrapped(replace(self, least=_far(self.least), greatest=_far(self.greatest)), *args),
        )
        table.rebuild_metadata_table(STATISTICS)
    told = Table.open(table.uri)
    status = told.metadata_table()
    assert status is not None
    assert "column_stats" in status.partitions
    assert told.freshness() == true
    assert _shown(told) == shown
    for where, keys in (("ms > 1700000000010", ["a"]), ("part = 'q'", ["b", "c"]), ("id = 'c'", ["c"])):
        assert sorted(map(str, told.snapshot().to_arrow(["id"], where)["id"].to_pylist())) == keys
    told.compact(before=START_MS + 10)
    assert told.freshness().watermark_ms == START_MS + 10
    assert _shown(told) == shown
    assert told.read_optimized().to_arrow(["id"]).num_rows == 3
    assert not _failed(told)


def _far(end: Any) -> Any:
    return "~" * len(end) if isinstance(end, str) else end + 10**6 if isinstance(end, int) else end


@pytest.mark.parametrize("version", [6, 9])
def test_a_record_index_that_leads_a_key_elsewhere_doubles_it_and_that_is_found(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _made(tmp_path / "t", version, **BY_RECORD_INDEX)
    table.upsert(_rows(("a", "p", 5)))
    table.compact(before=START_MS + 6)
    small = Table.open(table.uri, {"hoodie.parquet.small.file.limit": "0"})
    small.upsert(_rows(("b", "p", 8)))
    groups = {found.file_id for found in small.state().view.latest_slices()}
    assert len(groups) == 2
    other = {one: (groups - {one}).pop() for one in groups}
    with monkeypatch.context() as lying:
        lying.setattr(
            "eventide_adapters.format.metadata_table.new_content.record_index_value",
            lambda partition, file_id, ms: record_index_value(partition, other[file_id], ms),
        )
        small.rebuild_metadata_table(["record_index"])
    assert not _failed(small), "nothing is wrong with the rows yet"
    told = Table.open(table.uri)
    told.upsert(_rows(("a", "p", 9)))
    assert [key for key, _ in _shown(told)] == ["a", "a", "b"]
    assert "record-versions" in _failed(told)
    told.delete(_rows(("a", "p", 10)))
    told.rebuild_metadata_table(["record_index"])
    told.delete(_rows(("a", "p", 11)))
    assert [key for key, _ in _shown(told)] == ["b"]


@pytest.mark.parametrize("version", [6, 9])
def test_a_commit_that_replaces_more_than_it_says_hides_rows_until_a_restore(version: int, tmp_path: Path) -> None:
    table = _made(tmp_path / "t", version)
    table.upsert(_rows(("a", "p", 5), ("b", "q", 8)))
    saved = table.state().timeline.writes[-1].requested_time
    table.savepoint(saved)
    group = next(found.file_id for found in table.state().view.latest_slices() if found.partition == "part=q")
    done = table.insert_overwrite(_rows(("c", "p", 6)))
    (path,) = (p for p in (Path(table.uri) / ".hoodie").rglob(f"{done.instant}*.replacecommit"))
    commit = CODEC.decode_commit(path.read_bytes(), str(path))
    replaced = {**commit.replaced_file_ids, "part=q": (group,)}
    path.write_bytes(CODEC.encode_commit(replace(commit, replaced_file_ids=replaced), version))
    told = Table.open(table.uri)
    assert _shown(told) == [("c", 6)], "no other file says what the commit replaces"
    told.restore(saved)
    assert _shown(told) == [("a", 5), ("b", 8)]

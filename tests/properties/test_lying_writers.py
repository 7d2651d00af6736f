"""A writer that states wrong figures about its files: no lie loses a row or brings one back.

Each is not believed, is refused, or is found by `verify --deep` (docs/invariants.md, "What plans rely on").
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

from eventide import Table
from eventide.testing.crash_enumeration import Bench, Moment
from eventide_core.config import BUCKETS, EVENT_TIME_FIELD, MAX_DELTA_COMMITS, STRATEGY, TRACK_EVENT_TIMES, LinkChoice
from eventide_core.errors import PlanMismatchError
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.commit_metadata import EVENT_TIMES_KEY, WRITER_KEY, CommitMetadata, WriteStat
from support.faults.damages import CODEC, Damaged, table_to_damage

Lie = Callable[[WriteStat], WriteStat]
START_MS: Final = 1_700_000_000_000
COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string()),
    pa.field("ms", pa.int64(), nullable=False),
    pa.field("_hoodie_is_deleted", pa.bool_()),
]
SCHEMA = pa.schema(COLUMNS)
BELIEVING: Final = {str(EVENT_TIME_FIELD): "ms", str(TRACK_EVENT_TIMES): "true"}


def _restated(commit: CommitMetadata, lie: Lie) -> CommitMetadata:
    stats = {partition: tuple(map(lie, of_partition)) for partition, of_partition in commit.write_stats.items()}
    return replace(commit, write_stats=stats, extra_metadata={**commit.extra_metadata, EVENT_TIMES_KEY: "ms"})


def _failed(bench: Bench, moment: Moment, table: Damaged, lie: Lie) -> set[str]:
    told = replace(table, files=dict(moment.files))
    told.set_commit(told.late, lambda commit: _restated(commit, lie))
    bench.load(Moment(told.files, moment.time_ms))
    return {check.name for check in bench.process().verifier.verify(is_deep=True, progress=NoProgress()).failed}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize(
    "lie",
    [
        lambda stat: stat._replace(min_event_time_ms=1_900_000_000_000, max_event_time_ms=1_900_000_000_000),
    ],
    ids=["event times"],
)
def test_a_lie_of_a_write_stat_is_found(version: int, lie: Lie) -> None:
    bench, moment, table = table_to_damage(version, LinkChoice.COPY)
    assert _failed(bench, moment, table, lambda stat: stat) == set()
    assert "event-times" in _failed(bench, moment, table, lie)


def _rows(*rows: tuple[str, int, bool]) -> pa.Table:
    found = [(key, START_MS + ms, is_delete) for key, ms, is_delete in rows]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in found], schema=SCHEMA)


def _table(path: Path, version: int) -> Table:
    """The first log file deletes `a` later than T and has an earlier row, and the second has an older `a`."""
    table = Table.create(
        str(path), schema=SCHEMA, record_key="id", event_time="ms", version=version, options={BUCKETS: 1}
    )
    table.upsert(_rows(("a", 1, False), ("b", 1, False)))
    table.upsert(_rows(("a", 30, True), ("b", 5, False)))
    table.upsert(_rows(("a", 25, False), ("c", 40, False)))
    return table


def _tell(table: Table, lie: Lie, *, is_hudis: bool = False) -> None:
    """Restates the stats of every commit; `is_hudis`: as a commit of Hudi, which says nothing of what they cover."""
    for path in sorted((Path(table.uri) / ".hoodie").rglob("*.deltacommit")):
        commit = CODEC.decode_commit(path.read_bytes(), str(path))
        stats = {partition: tuple(map(lie, found)) for partition, found in commit.write_stats.items()}
        hidden = (EVENT_TIMES_KEY, WRITER_KEY) if is_hudis else ()
        extra = {key: text for key, text in commit.extra_metadata.items() if key not in hidden}
        told = replace(commit, write_stats=stats, extra_metadata=extra)
        path.write_bytes(CODEC.encode_commit(told, table.version))


def _shown(table: Table) -> list[tuple[str, int]]:
    rows = table.snapshot().to_arrow(["id", "ms"]).to_pylist()
    return sorted((row["id"], row["ms"] - START_MS) for row in rows)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("is_hudis", [True, False], ids=["hudi", "eventide"])
def test_deletes_that_a_commit_does_not_count_bring_no_row_back(version: int, is_hudis: bool, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", version)
    _tell(table, lambda stat: stat._replace(num_deletes=0), is_hudis=is_hudis)
    told = Table.open(table.uri, BELIEVING)
    before = _shown(told)
    with pytest.raises(PlanMismatchError, match="hold deletes, and their writers' commits state none"):
        told.compact(before=START_MS + 20, cut="file")
    assert _shown(told) == before == [("b", 5), ("c", 40)]
    for instant in told.state().timeline.pending:
        told.rollback(instant.requested_time)
    whole = {str(STRATEGY): "UnBoundedCompactionStrategy", str(MAX_DELTA_COMMITS): "1"}
    Table.open(told.uri, whole).compact()
    assert _shown(told) == before


@pytest.mark.parametrize("version", [6, 9])
def test_a_stat_of_another_size_than_the_file_is_not_believed(version: int, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", version)
    late = START_MS + 1_000_000

    def lie(stat: WriteStat) -> WriteStat:
        size = (
            stat.file_size_bytes - 1
        )  # one that is greater says that the file has lost a byte, and the table is refused
        return stat._replace(
            min_event_time_ms=late, max_event_time_ms=late, file_size_bytes=size, total_write_bytes=size
        )

    _tell(table, lie)
    assert Table.open(table.uri).freshness().earliest_log_event_time_ms == START_MS + 5


@pytest.mark.parametrize("version", [6, 9])
def test_the_times_of_upstream_commits_are_not_believed(version: int, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", version)
    late = START_MS + 1_000_000
    _tell(table, lambda stat: stat._replace(min_event_time_ms=late, max_event_time_ms=late), is_hudis=True)
    upstream = {**BELIEVING, "hoodie.write.track.event.time.propagate.from.upstream": "true"}
    assert Table.open(table.uri, upstream).freshness().earliest_log_event_time_ms == START_MS + 5


@pytest.mark.parametrize("version", [6, 9])
def test_a_lie_in_the_header_of_a_block_is_found(version: int, tmp_path: Path) -> None:
    table = _table(tmp_path / "t", version)
    _tell(table, lambda stat: stat._replace(min_event_time_ms=None, max_event_time_ms=None))
    log = min(Path(table.uri).glob(".*.log.*"), key=lambda path: path.stat().st_mtime_ns)
    data, true = (
        log.read_bytes(),
        f'"eventide.min_event_time_ms":{START_MS + 5},"eventide.max_event_time_ms":{START_MS + 5}',
    )
    assert data.count(true.encode()) == 1
    log.write_bytes(data.replace(true.encode(), true.replace(str(START_MS + 5), str(START_MS + 35)).encode()))
    found = Table.open(table.uri).verify(deep=True)
    assert "event-times" in {check.name for check in found.failed}

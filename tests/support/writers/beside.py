"""Compactions beside a stock writer that never pauses, each compared with the acknowledged commits."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

import pyarrow as pa

from eventide import Table
from support.judge import HudiJudge, hudi_rs
from support.run.command_line import run
from support.run.reach import reached
from support.writers.batches import Batch, Row, merged

PATIENCE_SECONDS = 300


class StockWriter(Protocol):
    """Writes batch after batch, and records the committed ones outside the table."""

    def acknowledged(self) -> list[Batch]: ...

    def stop(self) -> list[Batch]: ...


@dataclass(slots=True)
class Calls:
    """The results of the calls of `compact`, counted in commits of the writer."""

    worked: int = 0
    idle: int = 0
    """Calls that found nothing new before the latest quiet moment, because the previous call had compacted up to it."""
    waited: list[int] = field(default_factory=list[int])
    """Commits that completed between the beginning of a call and its plan."""
    lasted: list[int] = field(default_factory=list[int])
    """Commits that completed during a call."""
    refused: list[str] = field(default_factory=list[str])
    behind: list[int] = field(default_factory=list[int])
    """Commits of a writer by which the watermark is behind T."""


def compact_beside(
    path: Path, writer: StockWriter, times: int, options: Mapping[str, str] = MappingProxyType({})
) -> Calls:
    """Calls `compact` after each new commit of the writer, with a T that includes everything committed."""
    given = [word for key, value in options.items() for word in ("--option", f"{key}={value}")]
    calls = Calls()
    known: set[Batch] = set()
    for _ in range(times):
        known = wait_for(writer, len(known) + 1)
        threshold_ms = max(batch.end_ms for batch in known)
        before = _deltacommits(path)
        answer = run("compact", path, "--before", threshold_ms, "--engine", "local", "--output", "json", *given)
        after = _deltacommits(path)
        calls.lasted.append(len(after.keys() - before.keys()))
        if answer.exit_code != 0:
            calls.refused.append(f"exit {answer.exit_code}: {answer.stderr.strip()}")
            continue
        told = answer.document
        if told["instant"] is not None:
            calls.worked += 1
            planned = _planned_at(path, told["instant"])
            calls.waited.append(sum(at <= planned for name, at in after.items() if name not in before))
        else:
            calls.idle += 1
        calls.behind.append(_behind(known, threshold_ms, told["watermark_ms"]))
        table = Table.open(str(path))
        check_covered(rows_of(table.read_optimized().to_arrow()), known, told["watermark_ms"])
        _check_between(rows_of(table.snapshot().to_arrow()), known)
    return calls


def check_all_readers(
    path: Path, judges: list[HudiJudge], truth: list[Batch], options: dict[str, str], words: str
) -> None:
    """Compares every reader with the expected rows, before and after a full compaction.

    `words` describe the writers in the summary.
    """
    expected = merged(row for batch in truth for row in batch.rows)
    for is_compacted in (False, True):
        if is_compacted:
            answer = run(
                "compact",
                path,
                "--before",
                max(batch.end_ms for batch in truth),
                "--option",
                "eventide.streams.compact=false",  # the writer has ended, if it was a stream
                "--engine",
                "local",
                "--output",
                "json",
            )
            assert answer.exit_code == 0, answer.stderr
        watermark_ms = Table.open(str(path)).freshness().watermark_ms
        assert watermark_ms is not None
        table = Table.open(str(path))
        found = {"eventide": (table.snapshot().to_arrow(), table.read_optimized().to_arrow())}
        for judge in judges:
            found[judge.version] = (
                judge.read(path, options=options),
                judge.read(path, "read_optimized", options=options),
            )
        by_rust = _options_of_hudi_rs(path)
        found["hudi-rs"] = (
            hudi_rs.read(path, options=by_rust),
            hudi_rs.read(path, "read_optimized", options=by_rust),
        )
        for reader, (snapshot, read_optimized) in found.items():
            assert rows_of(snapshot) == expected, f"{reader}'s snapshot"
            check_covered(rows_of(read_optimized), set(truth), watermark_ms, reader)
            assert not is_compacted or rows_of(read_optimized) == expected, f"{reader}'s read-optimized query"
            name = reader if reader[0].isalpha() else f"Hudi {reader}"
            reached(f"{words}: rows of {name} compared with the truth", snapshot.num_rows + read_optimized.num_rows)
    answer = run("verify", path, "--deep")
    assert answer.exit_code == 0, answer.stdout + answer.stderr


def stock_rollbacks(path: Path) -> int:
    """The rollbacks on the timeline: of writes that failed, and may have been retried."""
    return sum(1 for directory in (".hoodie", ".hoodie/timeline") for _ in path.glob(f"{directory}/*.rollback"))


def wait_for(writer: StockWriter, count: int) -> set[Batch]:
    """The batches of the writer, as soon as there are that many."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(found := set(writer.acknowledged())) < count:
        assert time.monotonic() < deadline, f"{len(found)} commits of the writer within {PATIENCE_SECONDS} s"
        time.sleep(0.02)
    return found


def _options_of_hudi_rs(path: Path) -> dict[str, str]:
    """hudi-rs's second reader refuses merge mode CUSTOM; its first one merges by the ordering field."""
    is_custom = "hoodie.record.merge.mode=CUSTOM" in (path / ".hoodie" / "hoodie.properties").read_text()
    return {"hoodie.read.file.group.reader.version": "1"} if is_custom else {}


def _deltacommits(path: Path) -> dict[str, int]:
    """The modification time of each completed write's timeline file."""
    found = [*path.glob(".hoodie/*.deltacommit"), *path.glob(".hoodie/timeline/*.deltacommit")]
    return {file.name: file.stat().st_mtime_ns for file in found}


def _planned_at(path: Path, instant: str) -> int:
    name = f"{instant}.compaction.requested"
    found = [*path.glob(f".hoodie/{name}"), *path.glob(f".hoodie/timeline/{name}")]
    return found[0].stat().st_mtime_ns


def _behind(known: set[Batch], threshold_ms: int, watermark_ms: int | None) -> int:
    """The number of a writer's commits, known at the call, that are above the watermark and below T."""
    reached = watermark_ms or 0
    below = [batch for batch in known if reached < batch.least_ms + 1 and batch.least_ms < threshold_ms]
    late = [batch for batch in below if any(reached <= row.event_ts < threshold_ms for row in batch.rows)]
    return max(
        (sum(batch.writer == writer for batch in late) for writer in {batch.writer for batch in known}), default=0
    )


def check_covered(found: dict[str, Row], known: set[Batch], watermark_ms: int | None, reader: str = "eventide") -> None:
    """Checks that the read-optimized view has everything before the watermark that was committed, or a later version."""
    if watermark_ms is None:
        return
    covered = merged(row for batch in known for row in batch.rows if row.event_ts < watermark_ms)
    missing = {key: row for key, row in covered.items() if key not in found or found[key].event_ts < row.event_ts}
    assert not missing, f"{reader}'s read-optimized query lacks {missing} below {watermark_ms}"


def _check_between(found: dict[str, Row], known: set[Batch]) -> None:
    """Checks that a snapshot beside the writer has no outdated and no unknown version."""
    older = {
        key: (row, found.get(key))
        for key, row in merged(row for batch in known for row in batch.rows).items()
        if key not in found or found[key].event_ts < row.event_ts
    }
    assert not older, f"lost: {older}"
    latest = max(batch.number for batch in known)
    # One of several writers may have a commit that is visible but not yet acknowledged.
    writers = {None} if any(batch.writer is None for batch in known) else {0, 1}
    written = {row for number in range(-1, latest + 50) for writer in writers for row in Batch(number, writer).rows}
    assert set(found.values()) <= written


def rows_of(found: pa.Table) -> dict[str, Row]:
    rows = [Row(*row.values()) for row in found.select(list(Row._fields)).to_pylist()]
    assert len({row.id for row in rows}) == len(rows), "a key is there twice"
    return {row.id: row for row in rows}

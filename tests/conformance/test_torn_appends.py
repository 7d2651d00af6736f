"""An append that broke off leaves torn bytes in a log file: every reader passes over them, and a compaction does, too."""

import json
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import CorruptLogBlockError
from eventide_core.table.files.log_block import MAGIC
from eventide_core.table.timeline.contents.plans import FallbackReason
from support.files.logs import INSTANT_TIME, block, parse_blocks
from support.judge import hudi_rs
from support.run.command_line import run
from support.tables.small import HOUR_MS, LATER_MS, make, rows, seen

BROKEN_OFF = MAGIC + bytes(13)


def written(path: Path, version: int) -> Table:
    table = make(path, version)
    table.upsert(rows(("k2", 1, "old"), ("k4", 1, "old")))
    table.upsert(rows(("k2", 2, "new")))
    table.upsert(rows(("k4", 9, "new")))
    return table


def logs_of(path: Path) -> list[Path]:
    return sorted(found for found in path.glob("part=*/.*.log.*") if not found.name.endswith(".crc"))


def beside(log: Path) -> Path:
    """A log file of version 6 that no commit names: of the same slice, with the next version."""
    head, _, token = log.name.rpartition("_")
    stem, _, version = head.rpartition(".")
    return log.with_name(f"{stem}.{int(version) + 5}_{token}")


@pytest.mark.parametrize("version", [6, 9])
def test_torn_bytes_behind_a_completed_write_keep_no_slice_from_its_compaction(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, version)
    for log in logs_of(path)[:1]:
        log.write_bytes(log.read_bytes() + BROKEN_OFF)
    if version == 6:
        beside(logs_of(path)[-1]).write_bytes(BROKEN_OFF)
    table = Table.open(str(path))
    before = seen(table.snapshot().to_arrow())
    assert seen(hudi_rs.read(path)) == before

    plan = table.plan_compaction(LATER_MS - 7 * HOUR_MS, cut="exact")
    assert FallbackReason.TORN_BYTES in plan.draft.plan.fallbacks
    table.compact(plan)
    assert seen(Table.open(str(path)).snapshot().to_arrow()) == before
    assert seen(hudi_rs.read(path)) == before
    if version == 6:  # from version 8 on, no writer appends to a log file, so that its size is a finding
        assert run("verify", path, "--deep").exit_code == 0


@pytest.mark.parametrize("version", [6, 9])
def test_bytes_of_a_completed_write_that_are_torn_still_stop_it(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    written(path, version)
    log = logs_of(path)[0]
    log.write_bytes(BROKEN_OFF + log.read_bytes()[len(BROKEN_OFF) :])
    table = Table.open(str(path))
    with pytest.raises(CorruptLogBlockError, match="torn before it names its write"):
        table.compact(table.plan_compaction(LATER_MS))
    assert run("verify", path).exit_code == 1


def prepend(path: Path, log: Path, torn: bytes) -> None:
    """As on HDFS with version 6: a writer died within its block, and the next one appended to the same log file."""
    data = torn + log.read_bytes()
    (commit,) = (found for found in (path / ".hoodie").glob("*.deltacommit") if log.name in found.read_text())
    document = json.loads(commit.read_text())
    for stats in document["partitionToWriteStats"].values():
        for stat in stats:
            if stat["path"].endswith(log.name):
                stat["fileSizeInBytes"] = len(data)
    commit.write_text(json.dumps(document))
    log.write_bytes(data)


def test_half_a_block_of_a_dead_write_before_a_whole_one_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "t"
    before = seen(written(path, 6).snapshot().to_arrow())
    log = logs_of(path)[-1]
    ((kind, header, content),) = parse_blocks(log.read_bytes())
    dead = block(kind, header | {INSTANT_TIME: f"{int(header[INSTANT_TIME]) - 1:017d}"}, content)
    prepend(path, log, dead[:-40])
    table = Table.open(str(path))
    assert seen(table.snapshot().to_arrow()) == seen(hudi_rs.read(path)) == before
    table.freshness()
    table.compact(before=LATER_MS + HOUR_MS)
    assert seen(Table.open(str(path)).snapshot().to_arrow()) == before


def test_torn_bytes_without_an_instant_before_a_whole_block_hold_the_watermark(tmp_path: Path) -> None:
    """They may be the first block of the write that the commit names: only queries pass over them, as Hudi's do."""
    path = tmp_path / "t"
    before = seen(written(path, 6).snapshot().to_arrow())
    log = logs_of(path)[-1]
    prepend(path, log, BROKEN_OFF)
    table = Table.open(str(path))
    assert seen(table.snapshot().to_arrow()) == seen(hudi_rs.read(path)) == before
    for ask in (table.freshness, lambda: table.compact(before=LATER_MS + HOUR_MS)):
        with pytest.raises(CorruptLogBlockError, match=r"block at byte 0: torn before it names its write"):
            ask()

"""Deletes of one write, some with an event time and some without: hudi-rs and Hudi 1.1.1 read them as eventide does.

Hudi itself fails to write such deletes together. Of each kind alone, it writes what eventide writes: blocks whose ordering
values are all from the ordering field, or all the int 0.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from golden.histories import EPOCH_MS, PLAIN
from support.judge import HudiJudge, hudi_rs

MODES = ["COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"]


def _rows(keys: list[int], word: str, ms: int | None) -> pa.Table:
    at = None if ms is None else EPOCH_MS + ms
    found = [{"id": f"k{key}", "part": "a", "event_ts": at, "val": f"{word}-{key}", "amount": 1.0} for key in keys]
    return pa.Table.from_pylist(found, schema=PLAIN)


def _written(path: Path, version: int, mode: str) -> list[str]:
    """A table with both kinds of deletes in one write, and then earlier rows of these keys. What it shows."""
    options = {"hoodie.write.record.merge.mode": mode, "hoodie.bucket.index.num.buckets": "1"}
    table = Table.create(
        str(path),
        schema=PLAIN,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=version,
        options=options if version >= 8 else {"hoodie.bucket.index.num.buckets": "1"},
    )
    table.upsert(_rows([0, 1, 2, 3], "base", 10))
    deletes = pa.concat_tables([_rows([1], "", 20), _rows([2], "", None), _rows([3], "", 21)])
    table.delete(deletes.select(["id", "part", "event_ts"]))
    table.upsert(_rows([3], "again", 15))
    return _words(table.snapshot().to_arrow())


def _words(rows: pa.Table) -> list[str]:
    return sorted(str(word) for word in rows.column("val").to_pylist())


def _expected(version: int, mode: str) -> list[str]:
    is_by_commit = version >= 8 and mode == "COMMIT_TIME_ORDERING"
    return ["again-3", "base-0"] if is_by_commit else ["base-0"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("version", [8, 9])
def test_hudi_rs_reads_deletes_with_and_without_order_of_one_write(tmp_path: Path, version: int, mode: str) -> None:
    path = tmp_path / "deletes"
    assert _written(path, version, mode) == _expected(version, mode)
    assert _words(hudi_rs.read(path)) == _expected(version, mode)


@pytest.mark.parametrize(("version", "mode"), [(6, MODES[1]), (8, MODES[0]), (9, MODES[0]), (9, MODES[1])])
def test_hudi_reads_deletes_with_and_without_order_of_one_write(
    tmp_path: Path, judge_111: HudiJudge, version: int, mode: str
) -> None:
    path = tmp_path / "deletes"
    _written(path, version, mode)
    assert _words(judge_111.read(path)) == _expected(version, mode)

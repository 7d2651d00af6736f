"""Copy-on-write tables of stock Hudi: eventide runs the table services on them, and Hudi reads and writes on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from support.judge import HudiJudge
from support.judge.options import (
    COPY_ON_WRITE,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    SIMPLE_INDEX,
    table_name,
)
from support.pasts import golden

COLUMNS: dict[str, pa.DataType] = {"id": pa.string(), "part": pa.string(), "event_ts": pa.int64()}
SCHEMA = pa.schema(COLUMNS)
SERVICES = {"hoodie.keep.min.commits": "1", "hoodie.keep.max.commits": "2", "hoodie.clean.commits.retained": "1"}
BY_LISTING = {"hoodie.metadata.enable": "false"}


@pytest.mark.broad
def test_hudi_continues_after_the_services_of_eventide(tmp_path: Path, judge_111: HudiJudge) -> None:
    """The last commit is undone, then the table goes back by one more, and only the latest slices stay."""
    name = "v9_copy_on_write"
    path, expected = golden.unpack(name, tmp_path), golden.expected(name)
    table = Table.open(str(path), SERVICES)
    saved, previous, last = (i.requested_time for i in table.state().timeline.writes[-3:])
    assert table.rollback(last)
    table.savepoint(saved)
    assert table.restore(saved) == (previous,)
    table.delete_savepoint(saved)
    assert table.clean().deleted
    content = {row[1]: row[3] for row in expected.read(as_of=saved)}
    for options in ({}, BY_LISTING):
        assert _content(judge_111.read(path, options=options)) == content
    row = dict(zip(expected.row_columns, expected.read(as_of=saved)[0][1:], strict=True))
    schema = pa.schema([table.snapshot().to_arrow().schema.field(name) for name in expected.row_columns])
    judge_111.write(
        path, [row | {"event_ts": 9_000_000_000_000}, row | {"id": "new"}], schema, options=expected.options
    )
    content |= {row["id"]: 9_000_000_000_000, "new": row["event_ts"]}
    assert _content(judge_111.read(path)) == _content(table.snapshot().to_arrow()) == content
    assert table.verify(deep=True).ok


@pytest.mark.parametrize(
    "is_indexed", [pytest.param(False, marks=pytest.mark.proof), pytest.param(True, marks=pytest.mark.proof)]
)
def test_hudi_0_15_continues_after_the_services_of_eventide(
    is_indexed: bool, tmp_path: Path, judge_015: HudiJudge
) -> None:
    options = MERGE_ON_READ | COPY_ON_WRITE | SIMPLE_INDEX | table_name("copied")
    life = Life(judge_015, tmp_path / "copied", options | (METADATA_TABLE if is_indexed else NO_METADATA_TABLE))
    life.write("bulk_insert", a1=100, a2=100, b1=100)
    saved = life.write(a1=200, c1=200)
    kept = dict(life.content)
    life.write("delete", a2=0)
    before = dict(life.content)

    undone = life.write(b1=300, b2=300)
    assert life.table.rollback(undone)
    life.content = before
    life.agree()

    life.table.savepoint(saved)
    life.write(a1=400, d1=400)
    assert life.table.restore(saved)
    life.content = kept
    life.agree()
    life.table.delete_savepoint(saved)

    for at in (500, 600, 700):
        life.write(a1=at)
    assert life.table.clean().deleted
    life.agree()
    assert bool(life.table.archive()) is not is_indexed  # a metadata table that was never compacted needs the timeline
    life.agree()
    life.write(a1=800, e1=800)


class Life:
    """A table, and what has to be in it: every reader says so after each step."""

    def __init__(self, judge: HudiJudge, path: Path, options: Mapping[str, str]) -> None:
        self.judge, self.path, self.options = judge, path, options
        self.content: dict[str, int] = {}

    @property
    def table(self) -> Table:
        return Table.open(str(self.path), SERVICES)

    def write(self, operation: str = "upsert", **keys: int) -> str:
        """A record of each key, in the partition of its first letter; the instant of the write."""
        rows = [{"id": key, "part": key[0], "event_ts": at} for key, at in keys.items()]
        mode: Any = "append" if self.content else "overwrite"
        self.judge.write(self.path, rows, SCHEMA, options=self.options, operation=operation, mode=mode)
        if operation == "delete":
            self.content = {key: at for key, at in self.content.items() if key not in keys}
        else:
            self.content = self.content | keys
        self.agree()
        return self.table.state().timeline.writes[-1].requested_time

    def agree(self) -> None:
        for options in ({}, BY_LISTING):
            assert _content(self.judge.read(self.path, options=options)) == self.content
        table = self.table
        for found in (table.snapshot(), table.read_optimized()):
            assert _content(found.to_arrow()) == self.content
        assert table.verify(deep=True).ok


def _content(found: pa.Table) -> dict[str, int]:
    rows = found.to_pylist()
    content = {row["id"]: row["event_ts"] for row in rows}
    assert len(content) == len(rows), "a key is there twice"
    return content

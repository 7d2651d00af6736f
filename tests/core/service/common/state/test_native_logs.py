"""A native log file of table version 10, in a table of an earlier version: no answer is given without its rows."""

import shutil
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import UnsupportedTableError
from support.pasts import golden

_NAME = "00000000-9d65-464d-9ee3-58be831d4ecc-1_0-9-9_20261121091044787_1.log.parquet"


def _answers(path: Path) -> None:
    table = Table.open(str(path))
    for ask in (
        lambda: table.snapshot().to_arrow(),
        lambda: table.plan_compaction("2026-11-21T00:00Z"),
        lambda: table.freshness(),
        lambda: table.repair(apply=True),
        lambda: table.verify(),
    ):
        with pytest.raises(UnsupportedTableError, match=rf"{_NAME} is a native log file.*run a full compaction"):
            ask()


def test_a_table_with_a_native_log_file_is_not_read(tmp_path: Path) -> None:
    path = golden.unpack("v6_compacted", tmp_path)
    shutil.copy(next(path.glob("part=b/*.parquet")), path / "part=b" / _NAME)
    _answers(path)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_committed_native_log_file_is_not_left_out(tmp_path: Path, *, is_there: bool) -> None:
    path = golden.unpack("v6_mdt", tmp_path)
    last = path / ".hoodie" / "20261121091044787.deltacommit"
    log = next(line for line in last.read_text().split('"') if line.startswith("part=b/."))
    last.write_text(last.read_text().replace(log, f"part=b/{_NAME}"))
    (path / log).rename(path / "part=b" / _NAME if is_there else tmp_path / "lost")
    shutil.rmtree(path / ".hoodie" / "metadata")
    properties = path / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("hoodie.table.metadata.partitions=files", ""))
    _answers(path)

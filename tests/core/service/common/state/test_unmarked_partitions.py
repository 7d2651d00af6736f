"""A partition whose .hoodie_partition_metadata is missing: its files are there, and readers skip them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import MissingFileError
from support.tables.append import ROWS, filled, seen

_ASKED: dict[str, Callable[[Table], object]] = {
    "read": lambda table: table.snapshot().to_arrow(),
    "plan": lambda table: table.plan_compaction("2026-11-21T00:00Z"),
    "describe": lambda table: table.describe(),
}


@pytest.fixture(params=[6, 9])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    filled(tmp_path / "t", request.param)
    return tmp_path / "t"


@pytest.mark.parametrize("asked", _ASKED)
def test_the_missing_file_of_a_partition_is_named_and_repair_writes_it(path: Path, asked: str) -> None:
    (mark,) = path.glob("*a/.hoodie_partition_metadata")
    mark.unlink()
    table = Table.open(str(path))
    name = mark.relative_to(path)
    with pytest.raises(
        MissingFileError, match=rf"if {name} is missing, `table\.repair\(\)` writes it again; otherwise"
    ):
        _ASKED[asked](table)
    (repair,) = table.repair(apply=True).repairs
    assert repair.path == str(name)
    assert seen(table) == sorted(ROWS)


def test_a_lost_file_of_a_partition_with_others_says_nothing_of_the_partition(path: Path) -> None:
    next(path.glob("*a/*.parquet")).unlink()
    with pytest.raises(MissingFileError, match=r"is still in use; restore the file"):
        Table.open(str(path)).snapshot()

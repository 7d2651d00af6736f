"""Reads while services work on the table: what a cleaner removed, or an archival moved, is looked up again.

First the orders that matter, one by one; then processes that loop beside each other. Not checked here: the services of stock
Hudi (tests/conformance/test_reads_beside_stock_services.py).
"""

from pathlib import Path

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import CleanedHistoryError, CleanedWhileReadingError, MissingFileError
from support.cases.reads_beside import read_beside
from support.processes.services_loop import FIRST, OPTIONS, one_round, services
from support.run.campaign import tries
from support.tables.small import LATER_MS, make, rows, seen

VERSIONS = (6, 9)


@pytest.fixture(params=VERSIONS, ids=lambda version: f"version {version}")
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    """A slice with a base file in each of two partitions."""
    return begin(tmp_path / "table", request.param)


def begin(path: Path, version: int) -> Table:
    make(path, version)
    table = Table.open(str(path), OPTIONS)
    table.upsert(rows(*FIRST))
    table.compact(before=LATER_MS)
    return table


def replace_slices(table: Table) -> None:
    """Two rounds of the services, after which no file of the slices before is there."""
    planned = table.snapshot().plan.paths
    for number in (0, 1, 2):
        one_round(table, number)
    present = {file.path for file in table.state().listing}
    assert planned, "there is a base file"
    assert not planned & present, "all of them are gone"


def test_a_query_whose_files_were_cleaned_before_it_was_read_is_planned_again(table: Table) -> None:
    snapshot, batches, optimized = table.snapshot(), table.snapshot(), table.read_optimized()
    replace_slices(table)
    now = seen(table.snapshot().to_arrow())
    assert seen(snapshot.to_arrow()) == now
    assert seen(pa.Table.from_batches(batches.to_batches())) == now
    assert seen(optimized.to_arrow()) == now


def test_a_query_that_has_begun_ends_with_what_to_do(table: Table) -> None:
    batches = table.snapshot().to_batches()
    next(batches)
    replace_slices(table)
    with pytest.raises(
        CleanedWhileReadingError, match=r"there is no file .*run the query again.*commits\.retained"
    ) as told:
        list(batches)
    assert told.value.exit_code == 4


def test_a_time_travel_whose_files_were_cleaned_is_refused(table: Table) -> None:
    then = table.as_of(table.state().timeline.writes[-1].requested_time)
    replace_slices(table)
    with pytest.raises(CleanedHistoryError):
        then.to_arrow()


def test_a_file_that_the_table_still_has_is_missing_indeed(table: Table, tmp_path: Path) -> None:
    snapshot = table.snapshot()
    path = tmp_path / "table" / min(snapshot.plan.paths)
    path.unlink()
    with pytest.raises(MissingFileError, match=path.name) as told:
        snapshot.to_arrow()
    assert not isinstance(told.value, CleanedWhileReadingError)


@pytest.mark.campaign
@pytest.mark.parametrize("version", VERSIONS)
def test_processes_beside_a_cleaner_and_an_archival_end_as_they_should(version: int, tmp_path: Path) -> None:
    path = tmp_path / "table"
    begin(path, version)
    with services(path) as rounds:
        read_beside(path, rounds, tries(5, 100), "services of eventide")

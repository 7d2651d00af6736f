"""The kit kills every mutant in seconds. The run ends with a table of them."""

import re

import pytest

from eventide.testing.histories import EPOCH_MS
from eventide.testing.living_table.table import LivingTable
from eventide_adapters.storage.faulty import SimulatedCrash
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import EventideError, UnsupportedTableError
from eventide_core.table.settings.properties import PROPERTIES_PATH
from support.mutants import MUTANTS
from support.mutants.mutant import BASE, BEFORE_T, Mutant, living
from support.run.reach import reached

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.number} {mutant.name}")
def test_a_known_way_to_be_wrong_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant.happens()
    with monkeypatch.context() as patch:
        mutant.is_wrong(patch)
        with pytest.raises((AssertionError, EventideError)) as found:
            mutant.happens()
    by = re.match(r"I\d+(?=, )", str(found.value))
    reached(f"mutant {mutant.number}, {mutant.name}: killed by {by[0] if by else found.value}"[:200])


@pytest.mark.parametrize("version", [6, 9])
def test_left_overs_are_never_applied_by_a_merger_that_minds_to_see_them_twice(version: int) -> None:
    """Mutant 8, left-overs visible before the commit to a custom payload, cannot be: such a table is refused."""
    table: LivingTable = living(version)
    table.write(BASE)
    table.write(BEFORE_T)
    properties = table.bench.storage.read(PROPERTIES_PATH) + (
        b"hoodie.compaction.payload.class=com.acme.Concatenating\n"
        b"hoodie.record.merge.mode=CUSTOM\nhoodie.record.merge.strategy.id=00000000-0000-0000-0000-000000000000\n"
    )
    table.bench.storage.put(PROPERTIES_PATH, properties)
    before = table.files
    with pytest.raises(UnsupportedTableError):
        table.bench.process().scheduler.schedule(CompactionRequest(EPOCH_MS + 3, None, LinkChoice.COPY))
    assert {path: file.data for path, file in table.files.items()} == {path: f.data for path, f in before.items()}
    reached("mutant 8, left-overs are seen twice by a custom merger: impossible, such a table is refused")


def test_a_simulated_crash_is_no_error_of_the_program() -> None:
    """Or a mutant could be taken for killed by the crash that its own patch makes."""
    assert not issubclass(SimulatedCrash, (AssertionError, EventideError))

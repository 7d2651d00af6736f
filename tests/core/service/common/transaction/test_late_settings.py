"""A process that is paused before it replaces hoodie.properties, until others have changed it, puts it late, and dies.

On S3, Google Cloud Storage and Azure, a late put is refused. On a disk and HDFS, which have no such condition, it takes back
what others declared (docs/reference/steps.md); a metadata table that it names is never read with files missing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import Layout
from eventide_adapters.storage.faulty import FaultyStorage, Operation
from eventide_core.config import METADATA_TABLE
from eventide_core.table.files.file_name import is_data_file
from eventide_core.table.settings.declared_sources import declared_sources
from eventide_core.table.settings.metadata_table import COLUMN_STATS, RECORD_INDEX
from support.pasts.served import EARLY, LAYOUTS, begin_past, clean
from support.pauses.services import shown
from support.pauses.standstill import ASLEEP_MS, OWN, Others, Woken, by_key, ingest, merged, verified, wakings

WITH_METADATA_TABLE = tuple(replace(layout, has_metadata_table=True) for layout in LAYOUTS)
DROP = {METADATA_TABLE: "drop"}


def declare(application: Application) -> None:
    application.declared_sources.declare("own", "stated", {})


def rebuild(application: Application) -> None:
    application.metadata_rebuilder.rebuild()


def rebuild_more(application: Application) -> None:
    application.metadata_rebuilder.rebuild((COLUMN_STATS, RECORD_INDEX))


SLEEPERS = {"declare": declare, "drop": ingest(OWN), "rebuild": rebuild, "rebuild with an index": rebuild_more}


def _declare(others: Others) -> None:
    others.bench.clock.sleep(ASLEEP_MS)
    others.bench.process().declared_sources.declare("theirs", "stated", {})


def _drop(others: Others) -> None:
    others.bench.clock.sleep(ASLEEP_MS)
    dropping = Others(Bench("dropping", EARLY | DROP), 300)
    dropping.bench.load(others.bench.moment())
    dropping.write()
    others.bench.load(dropping.bench.moment())
    others.written += dropping.written
    others.write()


def _rebuild(others: Others) -> None:
    _drop(others)
    rebuild(others.bench.process())
    others.write()


def _rebuild_more(others: Others) -> None:
    _drop(others)
    rebuild_more(others.bench.process())
    others.write()


def _is_of_settings(operation: Operation) -> bool:
    return operation.path == ".hoodie/hoodie.properties"


def _is_of_rebuild(operation: Operation) -> bool:
    """What a rebuild puts, and its deletes of what it finds."""
    return _is_of_settings(operation) or operation.path.startswith(".hoodie/metadata/")


@pytest.fixture(params=[True, False], ids=["on condition", "without condition"])
def has_condition(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the storage replaces a file on the condition that nobody has changed it."""
    if not request.param:
        monkeypatch.setattr(FaultyStorage, "read_version", lambda *_: None)
    return bool(request.param)


@pytest.mark.parametrize("sleeper", SLEEPERS)
@pytest.mark.parametrize("layout", WITH_METADATA_TABLE)
def test_late_settings_take_nothing_back_where_the_storage_has_the_condition(
    layout: Layout, sleeper: str, has_condition: bool
) -> None:
    kept: set[bool] = set()
    for bench, woken in _woken(layout, sleeper, _declare):
        bench.load(woken.moment)
        kept.add("theirs" in declared_sources(bench.process().files.config().properties))
    assert kept == {has_condition}


@pytest.mark.parametrize("sleeper", SLEEPERS)
@pytest.mark.parametrize("meanwhile", [_drop, _rebuild, _rebuild_more])
@pytest.mark.parametrize("layout", WITH_METADATA_TABLE)
@pytest.mark.usefixtures("has_condition")
def test_a_metadata_table_that_is_named_late_shows_no_wrong_file(
    layout: Layout, meanwhile: Callable[[Others], None], sleeper: str
) -> None:
    assert _checked(_woken(layout, sleeper, meanwhile))


@pytest.mark.slow
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize("sleeper", ["rebuild", "rebuild with an index"])
@pytest.mark.parametrize("meanwhile", [_rebuild, _rebuild_more])
@pytest.mark.parametrize(
    "layout", [pytest.param(WITH_METADATA_TABLE[0], marks=pytest.mark.broad), WITH_METADATA_TABLE[1]]
)
def test_a_rebuild_beside_one_with_other_indexes_leaves_no_wrong_file(
    layout: Layout, meanwhile: Callable[[Others], None], sleeper: str, *, dies: bool
) -> None:
    """Whatever file it puts late: the metadata table is whole, or nobody reads it from the next action on."""
    woken = _woken(layout, sleeper, meanwhile, at=_is_of_rebuild, dies=dies)
    assert _checked(woken) > 5


def _checked(found: Iterator[tuple[Bench, Woken]]) -> int:
    """Checks the table after each pause, and after others wrote. The number of pauses."""
    number = 0
    for bench, woken in found:
        number += 1
        assert woken.blocked is None, woken
        bench.load(woken.moment)
        before = by_key(shown(bench.process()))
        others = Others(bench, 1_000)
        bench.clock.sleep(ASLEEP_MS)
        others.write()
        others.write()
        application = bench.process()
        assert by_key(shown(application)) == merged(frozenset(before.values()), others.written)
        assert verified(application) == "", woken
        if application.files.config().metadata_partitions:
            there = {file.path for file in application.state().listing if is_data_file(file.name)}
            listed = application.files.metadata_table.listing(()) or {}
            assert {f"{partition}/{name}" for partition, names in listed.items() for name in names} == there
    return number


def _woken(
    layout: Layout,
    sleeper: str,
    meanwhile: Callable[[Others], None],
    *,
    at: Callable[[Operation], bool] = _is_of_settings,
    dies: bool = True,
) -> Iterator[tuple[Bench, Woken]]:
    """The table after each pause of the sleeper, and where to look at it."""
    past = begin_past(clean, layout)
    bench = Bench("late settings", EARLY | (DROP if sleeper == "drop" else {}))
    start = past.start if sleeper == "drop" else Bench("built", EARLY).run(past.start, rebuild)
    woken = wakings(bench, start, SLEEPERS[sleeper], dies=dies, at=at, meanwhile=meanwhile)
    beside = Bench("late settings", EARLY)
    return ((beside, one) for one in woken)

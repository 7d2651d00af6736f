"""A savepoint that was begun by a process that slept, and died."""

import pytest

from eventide.bootstrap import Application
from eventide.testing.histories import Layout
from support.pasts.served import LAYOUTS, begin_past, clean
from support.pauses.standstill import ASLEEP_MS, Others, archive, wakings

TAG = "month-end"


def _tag(number: int, application: Application) -> str:
    instant = application.state().timeline.writes[number].requested_time
    return application.savepoints.save_tag(TAG, instant=instant, threshold_ms=None, comments="").instant


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.version))
def test_a_late_pin_takes_no_tag_from_another_commit(layout: Layout) -> None:
    past = begin_past(clean, layout)
    tagged: list[str] = []

    def others_tag(others: Others) -> None:
        others.bench.clock.sleep(ASLEEP_MS)
        tagged.append(_tag(0, others.bench.process()))

    (woken,) = wakings(
        past.bench,
        past.start,
        lambda application: _tag(-1, application),
        dies=True,
        at=lambda operation: operation.path.endswith(".savepoint.inflight"),
        meanwhile=others_tag,
    )
    past.bench.load(woken.moment)
    past.bench.clock.sleep(ASLEEP_MS)
    archive(past.bench.process())
    savepoints = past.bench.process().savepoints
    assert [tag.instant for tag in savepoints.tags()] == tagged
    assert savepoints.tagged(TAG).instant == tagged[0]
    assert woken.operation.path not in past.bench.storage.dump()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.version))
def test_a_savepoint_whose_pin_is_lost_stays_and_keeps_its_files(layout: Layout) -> None:
    """As in a copy of the table made without the inflight files."""
    past = begin_past(clean, layout)
    past.bench.load(past.start)
    application = past.bench.process()
    _tag(0, application)
    (pin,) = (path for path in past.bench.storage.dump() if path.endswith(".savepoint.inflight"))
    past.bench.storage.delete(pin)
    (kept,) = past.bench.process().savepoints.tags()
    others = Others(past.bench, 1_000)
    others.go_on(2)
    assert past.bench.process().savepoints.tags() == (kept,)
    assert kept.savepoint.paths <= past.bench.storage.dump().keys()
    assert past.bench.process().savepoints.delete_tag(TAG) == kept.instant
    assert past.bench.process().savepoints.tags() == ()


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.version))
def test_a_savepoint_that_others_deleted_does_not_come_back(layout: Layout) -> None:
    """Its process slept before the completed file, and died right after it."""
    past = begin_past(clean, layout)

    def others_delete(others: Others) -> None:
        others.bench.clock.sleep(ASLEEP_MS)
        archive(others.bench.process())  # completes it
        assert others.bench.process().savepoints.delete_tag(TAG)

    (woken,) = wakings(
        past.bench,
        past.start,
        lambda application: _tag(0, application),
        dies=True,
        at=lambda operation: operation.path.endswith(".savepoint"),
        meanwhile=others_delete,
    )
    assert woken.blocked is None
    assert woken.operation.path in woken.moment.files
    past.bench.load(woken.moment)
    assert past.bench.process().savepoints.tags() == ()
    past.bench.clock.sleep(ASLEEP_MS)
    Others(past.bench, 1_000).write()
    assert woken.operation.path not in past.bench.storage.dump()

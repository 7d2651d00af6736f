"""What a write that was computed from rows asks of the timeline before it commits."""

import pytest

from eventide_core.action.write.basis import ReadBasis
from eventide_core.errors import WriteConflictError
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.timeline import Timeline

PENDING, READ, OWN = "20260101000000000", "20260101000000001", "20260101000000002"
TIMELINE = Timeline.of([Instant(READ, Action.DELTA_COMMIT, State.COMPLETED, READ)])
BASIS = ReadBasis(frozenset({READ}), frozenset({PENDING}))


def test_a_pending_write_that_was_undone_since_changed_no_row() -> None:
    BASIS.check_kept(OWN, TIMELINE, lambda time: time == PENDING)


def test_a_pending_write_that_completed_and_was_archived_may_have_changed_rows() -> None:
    with pytest.raises(WriteConflictError, match="have been archived"):
        BASIS.check_kept(OWN, TIMELINE, lambda _: False)

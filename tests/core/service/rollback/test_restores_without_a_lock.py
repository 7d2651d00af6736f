"""A restore that loses its lock after it has begun says that it has to be run again, and completes then."""

import pytest

from eventide.testing.crash_enumeration import StandingStill, writes_of
from eventide.testing.histories import Layout
from eventide_core.errors import BusyError, LockError
from support.pasts.served import LAYOUTS
from support.pauses.scenes import scene
from support.pauses.services import shown
from support.pauses.standstill import ASLEEP_MS, OWN, by_key, ingest, merged

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("layout", LAYOUTS, ids=["v6", "v9"])
def test_a_restore_that_loses_its_lock_is_completed_by_its_next_run(layout: Layout) -> None:
    restored = scene("restore", layout)
    bench = restored.bench
    writes = writes_of(bench, restored.start, restored.run)
    begun = next(n for n, write in enumerate(writes) if write.path.endswith(".restore.inflight"))
    bench.load(restored.start)

    def others() -> None:
        bench.clock.sleep(ASLEEP_MS)
        with pytest.raises(BusyError, match="a restore is in progress"):
            ingest(OWN)(bench.process())

    with pytest.raises(LockError, match=r"the restore at \d+ has begun: run it again to complete it"):
        restored.run(bench.process(StandingStill(bench.storage, begun, others)))
    restored.again(bench.process())
    assert bench.process().state().timeline.pending == ()
    assert by_key(shown(bench.process())) == merged(restored.after, ())

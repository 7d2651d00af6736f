"""Finds the streams of Hudi that may compact the table themselves, beside which eventide makes no plan.

A stream of Spark into Hudi compacts unless `hoodie.datasource.compaction.async.enable` is false. As it starts, before it
writes anything, it queues every compaction plan that is pending, also one of eventide. If another process has completed
the plan by the time that the stream's compactor takes it, or works on it, the compactor fails, and the sink then waits
for the failed thread for 24 hours, without an error. Nothing on a table shows that a stream starts, or that its
compaction is off. So while the active timeline has a write of such a stream, eventide puts no plan and runs none of
Hudi's, unless the user states `eventide.streams.compact=false`.
"""

from eventide_core import config as keys
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.scheduling.settings import CompactionSettings
from eventide_core.table.settings.stream_batch import BATCH_KEY
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY


def refusal_beside_stream(state: TableState, settings: CompactionSettings) -> str | None:
    """Why eventide makes no plan beside a stream of Hudi; None if there is none, or if it doesn't compact.

    eventide's own streams record the same batches, in commits with checksums.
    """
    if not settings.streams_compact:
        return None
    for write in reversed(state.timeline.writes):
        extra = state.commit(write).extra_metadata
        if BATCH_KEY in extra and CHECKSUMS_KEY not in extra:
            return (
                f"a stream of Hudi wrote at {write.requested_time}, and such a stream compacts the table itself by default: "
                "beside other compactions it can stop without an error. Set hoodie.datasource.compaction.async.enable="
                f"false in the stream, start it again, and then set {keys.STREAMS_COMPACT}=false here"
            )
    return None

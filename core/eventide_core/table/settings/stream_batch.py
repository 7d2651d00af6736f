"""The micro-batch of a stream that a write belongs to, as Hudi's streaming sink records it in extra metadata.

    _hudi_streaming_sink_checkpoint    JSON: {"<sink>": "<number>"}

A stream writes its batches one after another with increasing numbers, and repeats each one until it has succeeded. So a
batch whose number is not above the last written one has already been written.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.errors import CorruptTimelineError

BATCH_KEY = "_hudi_streaming_sink_checkpoint"


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One batch of a stream. `sink` identifies the stream among all that write to the table, across its restarts.

    `number` rises from batch to batch, and is the same when a batch is repeated.
    """

    sink: str
    number: int

    @property
    def extra_metadata(self) -> dict[str, str]:
        """The extra metadata of the batch's commit."""
        return {BATCH_KEY: json.dumps({self.sink: str(self.number)})}


def batches_of(extra_metadata: Mapping[str, str]) -> tuple[StreamBatch, ...]:
    """The batches in a commit's extra metadata; none if no stream wrote it. Raises CorruptTimelineError."""
    text = extra_metadata.get(BATCH_KEY)
    if not text:
        return ()
    try:
        return tuple(StreamBatch(sink, int(number)) for sink, number in json.loads(text).items())
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise CorruptTimelineError(f"a commit has {BATCH_KEY}={text[:80]!r}, which names no batches") from None

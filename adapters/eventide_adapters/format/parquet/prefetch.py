"""Prefetches the batches of a file. Holds one more batch in memory than the caller uses."""

from collections.abc import Iterator

import pyarrow as pa

from eventide_core.access.threads import Threads


def prefetch(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Passes the batches on. While the caller uses one, a thread makes the next one.

    The thread also performs the reads from the storage. `rows` is the expected number of rows. The last batch, and
    therefore the only batch of a small file, needs no thread. An error while a batch is made is raised when the caller
    requests that batch. If the caller stops early, it waits for the batch that is being made, so `batches` is idle
    afterwards.
    """

    def following() -> pa.RecordBatch | None:
        return next(batches, None)

    batch = following()
    if batch is not None and len(batch) < rows:
        with Threads(1) as thread:
            while batch is not None and len(batch) < rows:
                rows -= len(batch)
                coming = thread.submit(following)
                yield batch
                batch = coming.result()
    if batch is not None:
        yield batch
        # More rows than expected can still follow.
        yield from batches

"""Threads beside the caller's, for pages that are compressed, row groups that are encoded, and batches that are decoded.

With the caller, there are as many as Arrow has processors. Spark states that number for its Python workers
(OMP_NUM_THREADS), the operating system for a process that is bound to some processors. The slices that are merged or read
side by side in one process share them: more threads than processors take up to a sixth more CPU time, and a fifth more
memory.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from eventide_core.access.threads import Threads

_lock = threading.Lock()
_slices = 0  # that are merged or read at this moment


@contextmanager
def slice_at_work() -> Iterator[None]:
    """Counts a slice while it is merged or read."""
    global _slices
    with _lock:
        _slices += 1
    try:
        yield
    finally:
        with _lock:
            _slices -= 1


def processors() -> int:
    """How many processors one slice has, its caller's included."""
    return max(1, pa.cpu_count() // max(1, _slices))


def threads_at_most(count: int) -> Threads | None:
    """So many threads, or one for each processor but the caller's; None if there is no other.

    Each starts with its first work.
    """
    others = processors() - 1
    return Threads(min(count, others)) if others else None


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

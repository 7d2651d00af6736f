"""Threads beside the caller's, for pages that are compressed and row groups that are encoded.

There are as many as Arrow has processors. Spark states that number for its Python workers (OMP_NUM_THREADS), the operating
system for a process that is bound to some processors. With one processor, everything is done by the caller.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa


def threads_at_most(count: int) -> ThreadPoolExecutor | None:
    """So many threads, or one for each processor; None if there is one processor. Each starts with the first work for it."""
    processors = pa.cpu_count()
    return ThreadPoolExecutor(min(count, processors)) if processors > 1 else None

"""Batches of a file, read while the ones before them are in use: one ahead, so that memory holds one more."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa


def prefetch(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """The same batches. While one of them is used, the next is made on a thread, and with it what it takes from a storage.

    `rows` is how many are said to come: the last batch, and so a small file's only one, needs no thread. What making a
    batch raises, asking for it raises. Whoever asks for no more waits for the batch that is being made, so `batches` is at
    rest by then.
    """
    batch = next(batches, None)
    if batch is not None and len(batch) < rows:
        with ThreadPoolExecutor(1) as thread:
            while batch is not None and len(batch) < rows:
                rows -= len(batch)
                coming = thread.submit(next, batches, None)
                yield batch
                batch = coming.result()
    if batch is not None:
        yield batch
        # More than was said come anyway.
        yield from batches

"""The engine without Spark: threads of this process."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from os import cpu_count
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Runs tasks on one thread per processor. The columnar work releases Python's global interpreter lock."""

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or cpu_count() or 1

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,  # noqa: ARG002 - a task of a thread costs nothing
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        """The results in the items' order. The first error ends the run after the tasks that have already started."""
        if not items:
            return []

        def run(item: T) -> R:
            result = function(item)
            if on_done is not None:
                on_done()
            return result

        if min(self._threads, len(items)) == 1:
            return [run(item) for item in items]
        with ThreadPoolExecutor(min(self._threads, len(items))) as pool:
            futures = [pool.submit(run, item) for item in items]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

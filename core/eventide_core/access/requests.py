"""Requests to a storage that don't depend on each other."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from eventide_core.access.threads import Future, Threads
from eventide_core.ports import Engine, Storage

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")

_AT_ONCE: Final = 8
AHEAD_BYTES_MAX: Final = 16 << 20
"""As much as arrives while as much is decoded. A larger log block is read in pieces as it is decoded."""


def responses(
    storage: Storage, ask: Callable[[A], B], items: Iterable[A], bytes_of: Callable[[A], int] | None = None
) -> Iterator[B]:
    """`ask` of each item, in order. Of a remote storage, the next eight are asked meanwhile.

    `bytes_of` predicts the size of a response: those behind the next one have AHEAD_BYTES_MAX together. Raises what the
    first failed one raised, after the responses before it.
    """
    if not storage.is_remote:
        yield from map(ask, items)
        return
    waiting = deque[tuple[int, Future[B]]]()
    ahead = 0  # the bytes of those behind the first
    with Threads(_AT_ONCE) as threads:
        try:
            for item in items:
                size = 0 if bytes_of is None else bytes_of(item)
                while waiting and (len(waiting) == _AT_ONCE or ahead + size > AHEAD_BYTES_MAX):
                    _, first = waiting.popleft()
                    ahead -= waiting[0][0] if waiting else 0
                    yield first.result()
                ahead += size if waiting else 0
                waiting.append((size, threads.submit(ask, item)))
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            for _, unneeded in waiting:
                unneeded.cancel()


@dataclass(frozen=True, slots=True)
class Requests:
    """`engine` sends them from this process, many at a time where waiting for responses takes most of the time."""

    engine: Engine

    def each(self, ask: Callable[[A], B], items: Sequence[A]) -> list[B]:
        """The responses, in the items' order. Raises what the first failed request raises."""
        return self.engine.map(ask, items)

    def both(self, first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
        """The responses to two questions of different kinds."""
        a, b = self.each(_answer, (first, second))
        return a, b  # type: ignore[return-value] # in the questions' order

    def all_of(
        self, first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], fourth: Callable[[], D]
    ) -> tuple[A, B, C, D]:
        """The responses to four questions of different kinds."""
        a, b, c, d = self.each(_answer, (first, second, third, fourth))
        return a, b, c, d  # type: ignore[return-value] # in the questions' order


def _answer(ask: Callable[[], object]) -> object:
    return ask()

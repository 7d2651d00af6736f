"""A SparkSession for one run: started without its log output, and only if there is something to do."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from eventide_core.errors import EngineError
from eventide_core.ports import BackgroundEngine, Engine
from eventide_core.ports.threads import Handed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_LOG_BYTES_MAX = 1 << 20  # a failing start reports it within a few kilobytes


class EngineOnDemand:
    """ports.Engine that starts the actual engine with the first task."""

    def __init__(self, start: Callable[[], Engine]) -> None:
        self._start = start
        self._started: Engine | None = None

    def start(self) -> None:
        """Starts the engine now, unless it has been started."""
        self._engine()

    @property
    def session(self) -> "SparkSession | None":
        """The session of the engine; None if it has none."""
        session: SparkSession | None = getattr(self._engine(), "session", None)
        return session

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        return self._engine().map(function, items, sizes=sizes, on_done=on_done) if items else []

    def begin(
        self, function: Callable[[T], R], items: Sequence[T], *, on_done: Callable[[], None] | None = None
    ) -> Sequence[Handed[R]] | None:
        """Begins what `map` runs. None if the engine hasn't been started, or runs tasks elsewhere."""
        engine: object = self._started
        return engine.begin(function, items, on_done=on_done) if isinstance(engine, BackgroundEngine) else None

    def _engine(self) -> Engine:
        if self._started is None:
            self._started = self._start()
        return self._started


@contextmanager
def quiet_session(master: str | None, *, is_loud: bool) -> Iterator["SparkSession"]:
    """A session that ends with the block, unless it existed before. `is_loud`: Spark's log goes to stderr.

    Raises EngineError, with Spark's output, if Spark does not start.
    """
    from pyspark.sql import SparkSession

    from eventide.spark.engine import spark_session

    is_ours = SparkSession.getActiveSession() is None
    spark = spark_session(master) if is_loud else _started_quietly(master)
    try:
        yield spark
    finally:
        if is_ours:
            spark.stop()


def _started_quietly(master: str | None) -> "SparkSession":
    """Starts Spark while stderr points to a file. Its JVM inherits that file as stderr, and keeps it."""
    from eventide.spark.engine import spark_session

    with tempfile.TemporaryFile() as log:
        sys.stderr.flush()
        terminal = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            return spark_session(master)
        except Exception as error:
            raise EngineError(
                f"Spark did not start: {_last_words(log.fileno()) or error}; --debug shows its log"
            ) from error
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def _last_words(descriptor: int) -> str:
    text = os.pread(descriptor, _LOG_BYTES_MAX, 0).decode(errors="replace")
    return next((line.strip() for line in reversed(text.splitlines()) if "Exception" in line or "Error" in line), "")

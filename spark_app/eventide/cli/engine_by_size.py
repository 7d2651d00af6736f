"""Little work runs on threads of this process, much work on Spark, which starts only then, without its log output."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from eventide.engine_local import LocalEngine
from eventide.formatting import format_size
from eventide_core.errors import EngineError
from eventide_core.ports import BackgroundEngine, Engine, RunningTask

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

LARGE_BYTES: Final = 1024**3
"""Two threads merge about 100 MB of files a second (benchmarks/README.md), and Spark takes ten seconds or more to start.
Below this size, that time is not won back, however many executors there are.
"""


class EngineBySize:
    """ports.Engine that chooses by the bytes which the tasks of a call read.

    `start` starts Spark's engine; None if there is none. `is_fixed`: it runs everything. `say` gets a sentence that states
    which engine runs the tasks, and why, once for each.
    """

    def __init__(
        self,
        start: Callable[[], Engine] | None,
        say: Callable[[str], None],
        *,
        is_fixed: bool = False,
        large_bytes: int = LARGE_BYTES,
    ) -> None:
        self._start, self._say, self._is_fixed, self._large_bytes = start, say, is_fixed, large_bytes
        self._threads: Engine = LocalEngine()
        self._spark: Engine | None = None
        self._chosen: Engine | None = None
        self._said: set[str | None] = set()

    @property
    def name(self) -> str | None:
        """The engine that ran the last tasks, as `--engine` names it; None if none ran."""
        return None if self._chosen is None else "local" if self._chosen is self._threads else "spark"

    @property
    def session(self) -> "SparkSession | None":
        """The session of Spark's engine, which starts for it; None if there is none."""
        session: SparkSession | None = getattr(self._spark_engine(), "session", None)
        return session

    def prepare(self, size: int = 0) -> Engine:
        """The engine for tasks that read `size` bytes. Starts it."""
        is_large = self._is_fixed or size >= self._large_bytes
        chosen = (self._spark_engine() if is_large else None) or self._threads
        self._chosen = chosen
        if self.name not in self._said and size and self._start is not None and not self._is_fixed:
            self._said.add(self.name)
            where = "on threads of this process" if chosen is self._threads else "on Spark"
            self._say(f"{format_size(size)} to read: {where}; from {format_size(self._large_bytes)} on, Spark pays off")
        return chosen

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        if not items:
            return []
        engine = self.prepare(sum(sizes or ()))
        return engine.map(function, items, sizes=sizes, on_done=on_done)

    def begin(
        self, function: Callable[[T], R], items: Sequence[T], *, on_done: Callable[[], None] | None = None
    ) -> Sequence[RunningTask[R]] | None:
        """Begins what `map` runs. None if no engine has been chosen, or if it runs tasks elsewhere."""
        engine: object = self._chosen
        return engine.begin(function, items, on_done=on_done) if isinstance(engine, BackgroundEngine) else None

    def _spark_engine(self) -> Engine | None:
        if self._spark is None and self._start is not None:
            self._spark = self._start()
        return self._spark


if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG_BYTES_MAX = 1 << 20  # a failing start reports it within a few kilobytes


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

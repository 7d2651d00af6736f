"""The engine on Spark: one task per item on executors, or several items per task if they are many or small.

Tasks run through the DataFrame API, so that a session of Spark Connect works like a classic one. Row n of a range stands for
the nth portion of the items. The mapped function carries the portions, pickled, and each result returns pickled too.
"""

import os
import pickle
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa

from eventide.spark.java_home import find_java_home
from eventide.spark.workers import failure_of, is_connect, ship_packages
from eventide_core.access.threads import Threads
from eventide_core.errors import EngineError, EventideError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_TURNS = 16
_WATCH_SECONDS = 0.2  # how often the user's progress bar moves
_TASK_BYTES = 16 << 20  # half a second of merging: the tenth of a second that a task costs matters little beside it
_TASKS_A_CORE_MIN = 4  # with fewer tasks, cores could idle while the last one runs
_TASKS_A_CORE = 32  # more tasks don't balance better, and each costs the driver and a worker about ten milliseconds
_PIECE_BYTES = 32 << 20  # a result is split into rows of this size: a Spark Connect message holds at most 128 MiB
_CORES_MAX = 1 << 12  # rows of the range that counts the partitions of a Connect server
_ANSWERS: Final = "place long, piece binary"
_JOB: Final = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class SparkEngine:
    """Runs tasks on the executors of a SparkSession; Spark retries a task whose worker or storage failed."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark = spark
        ship_packages(spark)

    @property
    def session(self) -> "SparkSession":
        return self._spark

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        """The results in the items' order.

        Raises a task's typed error unchanged, and any other error as EngineError after Spark's retries.
        """
        if not items:
            return []
        shared = portions(sizes or [_TASK_BYTES] * len(items), parallelism(self._spark))
        pickled = (pickle.dumps([(place, items[place]) for place in portion]) for portion in shared)
        tasks = _Tasks(function, tuple(pickled))
        answered = self._spark.range(0, len(shared), 1, len(shared)).mapInArrow(tasks, _ANSWERS)
        pieces: list[list[bytes]] = [[] for _ in items]
        with _progress(self._spark, on_done, len(items), len(shared)):
            try:
                for place, piece in answered.collect():
                    pieces[place].append(bytes(piece))
            except Exception as error:
                raise failure_of(error) from error
        answers: list[Any] = [pickle.loads(b"".join(parts)) for parts in pieces]
        for answer in answers:
            if isinstance(answer, EventideError):
                raise answer
        return answers


@dataclass(frozen=True, slots=True)
class _Tasks:
    """Runs on an executor: calls the function with each item of the numbered portions.

    An error that a retry cannot repair is a result, not a failed task.
    """

    function: Callable[[Any], Any]
    portions: tuple[bytes, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_numpy():
                for place, item in pickle.loads(self.portions[number]):
                    answer = pickle.dumps(self._answer(item))
                    for begin in range(0, len(answer), _PIECE_BYTES):
                        columns: list[Any] = [
                            pa.array([place], pa.int64()),
                            pa.array([answer[begin : begin + _PIECE_BYTES]]),
                        ]
                        yield pa.RecordBatch.from_arrays(columns, names=["place", "piece"])

    def _answer(self, item: Any) -> Any:
        try:
            return self.function(item)
        except EventideError as error:
            if error.exit_code == EngineError.exit_code:
                raise
            return error


@contextmanager
def _progress(spark: "SparkSession", on_done: Callable[[], None] | None, total: int, tasks: int) -> Iterator[None]:
    """Calls `on_done` once for each item as tasks end, while the driver waits for all tasks."""
    reported = 0

    def tell(completed: int) -> None:
        nonlocal reported
        while on_done is not None and reported < min(completed, tasks) * total // tasks:
            reported += 1
            on_done()

    with _connect_progress(spark, tell) if is_connect(spark) else _classic_progress(spark, tell, on_done is not None):
        yield
    tell(tasks)


@contextmanager
def _classic_progress(spark: "SparkSession", tell: Callable[[int], None], is_watched: bool) -> Iterator[None]:
    """Follows the status tracker. The jobs run in a separate job group; afterwards the caller's group is set again."""
    context: Any = spark.sparkContext
    tracker, group, ended = context.statusTracker(), f"eventide-{uuid.uuid4()}", threading.Event()

    def watch() -> None:
        while not ended.wait(_WATCH_SECONDS):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
            tell(sum(stage.numCompletedTasks for stage in stages if stage is not None))

    before = {key: context.getLocalProperty(key) for key in _JOB}
    context.setJobGroup(group, "eventide", interruptOnCancel=True)
    try:
        with Threads(1) as threads:
            with suppress(RuntimeError):  # no thread can start, so no progress is reported meanwhile
                if is_watched:
                    threads.submit(watch)
            try:
                yield
            finally:
                ended.set()
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)


@contextmanager
def _connect_progress(spark: Any, tell: Callable[[int], None]) -> Iterator[None]:
    """Follows the client's progress reports on the waiting thread. Reports on other threads concern other work."""
    thread = threading.get_ident()

    def handler(stages: Iterable[Any] | None, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ARG001
        if threading.get_ident() == thread:
            tell(sum(stage.num_completed_tasks for stage in stages or ()))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


def parallelism(spark: "SparkSession") -> int:
    """The number of tasks that Spark runs at once, as far as it knows; with Connect, the partitions of a large range."""
    if not is_connect(spark):
        return spark.sparkContext.defaultParallelism
    from pyspark.sql import functions

    divided = spark.range(_CORES_MAX).select(functions.spark_partition_id()).collect()
    return len({row[0] for row in divided})


def task_count(spark: "SparkSession", items: int) -> int:
    """The number of tasks for these items: one per item, but at most several rounds for each core.

    Starting a Python task takes a tenth of a second, as long as reading a small slice.
    """
    return max(1, min(items, _TURNS * parallelism(spark)))


def portions(sizes: Sequence[int], cores: int) -> list[range]:
    """Groups adjacent items into tasks by the bytes that each item reads: small items, or all items if there are many."""
    total = sum(sizes)
    enough = max(min(_TASK_BYTES, total / (_TASKS_A_CORE_MIN * cores)), total / (_TASKS_A_CORE * cores))
    ranges: list[range] = []
    begin, filled = 0, 0
    for place, size in enumerate(sizes):
        if place > begin and filled + size > enough:
            ranges.append(range(begin, place))
            begin, filled = place, 0
        filled += size
    return [*ranges, range(begin, len(sizes))]


def spark_session(master: str | None = None) -> "SparkSession":
    """A SparkSession for the command line: this Python interpreter, a suitable Java, UTC, no web UI."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = find_java_home()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("eventide").master(master or "local[*]")
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()

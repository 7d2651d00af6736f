"""The engine on Spark: a task an item on executors, or some items a task where there are very many, or they are small."""

import os
import re
import sys
import tempfile
import threading
import uuid
import zipfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eventide.spark.java_home import find_java_home
from eventide_core.errors import EngineError, EventideError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

PACKAGES = ("eventide_core", "eventide_adapters", "eventide")
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.|py4j\.|Caused by)[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")
_TURNS = 16
_WATCH_SECONDS = 0.2  # how often a person's progress bar moves
_TASK_BYTES = 16 << 20  # half a second of merging, beside which a task's tenth of one matters little
_TASKS_A_CORE_MIN = 4  # fewer could leave cores waiting for the last one
_TASKS_A_CORE = 32  # more tasks than that balance nothing, and each costs the driver and a worker some ten milliseconds


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

        A typed error of a task comes back as itself; anything else, after Spark's retries, as EngineError.
        """
        if not items:
            return []
        context = self._spark.sparkContext
        group = f"eventide-{uuid.uuid4()}"
        context.setJobGroup(group, "eventide", interruptOnCancel=True)
        shared = portions(sizes or [_TASK_BYTES] * len(items), context.defaultParallelism)
        tasks = context.parallelize([[items[place] for place in portion] for portion in shared], len(shared))
        with _Watch(self._spark, group, on_done, len(items), len(shared)):
            try:
                answers: list[Any] = tasks.flatMap(_Guarded(function)).collect()
            except Exception as error:
                raise EngineError(f"a task failed on Spark: {cause_of(error)}; nothing was committed") from error
        for answer in answers:
            if isinstance(answer, EventideError):
                raise answer
        return answers


def cause_of(error: Exception) -> str:
    """What went wrong on the executor, of all that Spark says: the last line of the first Python stack in it."""
    lines = str(error).strip().splitlines()
    for line in lines:
        if _PYTHON_ERROR.match(line):
            return line.strip()
    return lines[0] if lines else repr(error)


class _Guarded:
    """Calls a function on an executor; an error that a retry cannot mend is an answer, not a failed task."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, items: Sequence[Any]) -> list[Any]:
        return [self._answer(item) for item in items]

    def _answer(self, item: Any) -> Any:
        try:
            return self._function(item)
        except EventideError as error:
            if error.exit_code == EngineError.exit_code:
                raise
            return error


class _Watch:
    """Tells `on_done` of the items whose tasks have ended, while the driver waits for all of them."""

    def __init__(
        self, spark: "SparkSession", group: str, on_done: Callable[[], None] | None, total: int, tasks: int
    ) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._group = group
        self._on_done = on_done
        self._total = total
        self._tasks = tasks
        self._told = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        if self._on_done is not None:
            self._thread.start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        if self._on_done is not None:
            self._thread.join()
            if kind is None:
                self._tell(self._total)

    def _watch(self) -> None:
        while not self._ended.wait(_WATCH_SECONDS):
            done = 0
            for job in self._tracker.getJobIdsForGroup(self._group):
                info = self._tracker.getJobInfo(job)
                for stage in info.stageIds if info is not None else ():
                    found = self._tracker.getStageInfo(stage)
                    done += found.numCompletedTasks if found is not None else 0
            self._tell(min(done, self._tasks) * self._total // self._tasks)

    def _tell(self, done: int) -> None:
        assert self._on_done is not None
        while self._told < done:
            self._told += 1
            self._on_done()


def task_count(spark: "SparkSession", items: int) -> int:
    """How many tasks share these items: one each, or several turns for every core where there are far more of them.

    To start a Python task costs a tenth of a second, as much as a small slice.
    """
    return max(1, min(items, _TURNS * spark.sparkContext.defaultParallelism))


def portions(sizes: Sequence[int], cores: int) -> list[range]:
    """Which neighbours share a task, by the bytes that each reads: small ones, or all where they are very many."""
    total = sum(sizes)
    enough = max(min(_TASK_BYTES, total / (_TASKS_A_CORE_MIN * cores)), total / (_TASKS_A_CORE * cores))
    found: list[range] = []
    begin, filled = 0, 0
    for place, size in enumerate(sizes):
        if place > begin and filled + size > enough:
            found.append(range(begin, place))
            begin, filled = place, 0
        filled += size
    return [*found, range(begin, len(sizes))]


def ship_packages(spark: "SparkSession") -> None:
    """Sends eventide's own packages to executors that are not on this machine. Once a session."""
    context = spark.sparkContext
    master = context.master or ""
    if master == "local" or master.startswith("local[") or getattr(spark, "_eventide_shipped", False):
        return
    path = Path(tempfile.mkdtemp(prefix="eventide-")) / "eventide-packages.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            spec = find_spec(package)
            assert spec is not None
            assert spec.submodule_search_locations
            root = Path(next(iter(spec.submodule_search_locations)))
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, Path(package) / file.relative_to(root))
    context.addPyFile(str(path))
    setattr(spark, "_eventide_shipped", True)  # noqa: B010 - a mark of ours on a foreign object


def spark_session(master: str | None = None) -> "SparkSession":
    """A SparkSession for the command line: this interpreter, a Java that fits, UTC, no web page."""
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

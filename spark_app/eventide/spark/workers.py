"""Spark's Python workers: what they bring, what a session sends to them, and what is wrong with them if a task fails.

1. Local Spark starts the workers. Without PYSPARK_PYTHON it takes the first `python3` on PATH, which is another Python if
   no virtual environment is activated: eventide sets the driver's own.
2. Executors on other machines, and a Connect server's, get eventide's packages from the session. Everything that
   the packages need is installed there.
3. Before the first task of a session, some workers report their Python version and the packages that they find. A package
   that is missing, or another eventide than the driver's, ends here, before anything is written.
4. An executor that joins later fails with its first task, and the error names it.
"""

import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from eventide_core.errors import ConfigError, EngineError, UnsupportedEngineError, WorkerPackagesError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKAGES: Final = ("eventide_core", "eventide_adapters", "eventide")
# What tasks import.
NEEDED: Final = ("eventide", "pyarrow", "numpy", "fastavro", "fsspec", "deflate", "isal", "xxhash")
_ASKED_MAX: Final = 64  # workers; each costs a task of some milliseconds
_SHIPPED: Final = "_eventide_shipped"  # marks a session or a context whose workers were asked, and have the packages
_PYTHON_ERROR = re.compile(r"(?!org\.|java\.|py4j\.|Caused by)[A-Za-z_][\w.]*(Error|Exception|Exit|Interrupt)\b")
_EXECUTOR = re.compile(r"\(TID \d+\) \((\S+) executor (\S+)\)")
_MISSING = re.compile(r"No module named '(\w+)")
_PYTHONS = re.compile(r"different version:? (\d+\.\d+) than that in driver:? (\d+\.\d+)")
_CURE: Final = (
    "start the session with PYSPARK_PYTHON set to an interpreter that has them, such as the one of this virtual "
    "environment, or install them there"
)


def is_connect(spark: "SparkSession") -> bool:
    """Whether this is a session of Spark Connect, which has no SparkContext."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def ship_packages(spark: "SparkSession") -> None:
    """Sends eventide's packages to executors on other machines, and asks workers what they have, once per session.

    The file lasts as long as the session: Spark deletes its file directory when it stops. A Connect server keeps a copy.
    Raises WorkerPackagesError, EngineError, ConfigError for what isn't a session, and UnsupportedEngineError for Spark
    Connect before 4.
    """
    given: object = spark
    if not hasattr(given, "createDataFrame"):
        raise ConfigError(f"{given!r} isn't a SparkSession: pass one")
    if is_connect(spark):
        session: Any = spark
        if not hasattr(session, "registerProgressHandler"):
            raise UnsupportedEngineError(
                f"the session is one of Spark Connect {spark.version}: connect to Spark 4, or use a classic session"
            )
        if not hasattr(session, _SHIPPED):
            with tempfile.TemporaryDirectory(prefix="eventide-") as directory:
                session.addArtifacts(str(_packed_packages(Path(directory))), pyfile=True)
            _require_packages(_asked_by_connect(session))
            setattr(session, _SHIPPED, True)
        return
    context: Any = spark.sparkContext
    if hasattr(context, _SHIPPED):
        return
    master = context.master or ""
    if master == "local" or master.startswith("local["):
        if not os.environ.get("PYSPARK_PYTHON") and sys.executable:
            context.pythonExec = sys.executable
        workers = _asked(context, 1)
        # This process found eventide where the workers don't look, such as in a directory that it added to `sys.path`.
        if any(facts["packages"]["eventide"] is None for facts in workers):
            _add_packages(context)
            workers = _asked(context, 1)
    else:
        _add_packages(context)
        workers = _asked(context, min(max(1, context.defaultParallelism), _ASKED_MAX))
    _require_packages(workers)
    setattr(context, _SHIPPED, True)


def failure_of(error: Exception) -> EngineError:
    """A failed task as a typed error: what was raised there, and for a package or a Python, on which executor."""
    cause, place = cause_of(error), _EXECUTOR.search(str(error))
    where = "a worker of Spark" if place is None else f"executor {place[2]} of Spark on {place[1]}"
    pythons, missing = _PYTHONS.search(str(error)), _MISSING.search(cause)
    if pythons is not None:
        return WorkerPackagesError(
            f"{where} runs Python {pythons[1]}, and this process Python {pythons[2]}; start the session with "
            f"PYSPARK_PYTHON set to a Python {pythons[2]} that has eventide's packages; nothing was committed"
        )
    if missing is not None and missing[1] in (*NEEDED, *PACKAGES):
        return WorkerPackagesError(
            f"{where} has no package {missing[1]} ({_own_version(missing[1])} here); {_CURE}; nothing was committed"
        )
    return EngineError(f"a task failed on Spark: {cause}; nothing was committed")


def cause_of(error: Exception) -> str:
    """The executor's error within Spark's message: the last line of the first Python stack."""
    lines = str(error).strip().splitlines()
    for line in lines:
        if _PYTHON_ERROR.match(line):
            return line.strip()
    # A worker that died has no Python stack; the first line of py4j's message says only what was called.
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    return causes[-1] if causes else lines[0] if lines else repr(error)


def _look(needed: tuple[str, ...]) -> Callable[[], str]:
    """What describes a Python as JSON. It is pickled by value: the worker may have no eventide, or another one."""

    def look() -> str:
        import json
        import platform
        import socket
        import sys
        from contextlib import suppress
        from importlib import import_module
        from importlib.metadata import version

        versions: dict[str, str | None] = {}
        for name in needed:
            versions[name] = None
            with suppress(ImportError):
                module = import_module(name)
                versions[name] = "an unknown version"
                # A directory of eventide on PYTHONPATH has no metadata, or finds the metadata of the one that is installed.
                versions[name] = str(getattr(module, "__version__", None) or version(name))
        facts = {"host": socket.gethostname(), "python": sys.executable, "packages": versions}
        return json.dumps(facts | {"version": platform.python_version()})

    return look


def _asked(context: Any, workers: int) -> list[Any]:
    """What the workers have: through an RDD, which needs no Arrow on them."""
    look = _look(NEEDED)
    try:
        answers = context.range(0, workers, 1, workers).map(lambda _: look()).collect()
    except Exception as error:
        raise failure_of(error) from error
    return [json.loads(answer) for answer in answers]


def _asked_by_connect(session: Any) -> list[Any]:
    look = _look(NEEDED)

    def answer(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"answer": [look()]})

    try:
        rows = session.range(0, 1, 1, 1).mapInArrow(answer, "answer string").collect()
    except Exception as error:
        raise failure_of(error) from error
    return [json.loads(row[0]) for row in rows]


def _require_packages(workers: Iterable[Mapping[str, Any]]) -> None:
    """Raises WorkerPackagesError for the first worker that lacks a package, or has another eventide."""
    own = json.loads(_look(NEEDED)())["packages"]
    for facts in workers:
        packages = facts["packages"]
        where = f"Spark's Python worker on {facts['host']} ({facts['python']}, Python {facts['version']})"
        lacks = [f"{name} ({own[name]} here)" for name in NEEDED if packages[name] is None]
        if lacks:
            raise WorkerPackagesError(f"{where} has no package {', '.join(lacks)}; {_CURE}; nothing was written")
        if packages["eventide"] != own["eventide"]:
            raise WorkerPackagesError(
                f"{where} has eventide {packages['eventide']}, and this process {own['eventide']}; install the same "
                "version there, or start a new session whose workers have none: it brings its own; nothing was written"
            )


def _own_version(name: str) -> str:
    return str(json.loads(_look((name,))())["packages"][name])


def _add_packages(context: Any) -> None:
    from pyspark import SparkFiles

    # Spark serves the file in place, so the file is in Spark's own directory, which is deleted with the context.
    served = Path(SparkFiles.getRootDirectory(), "eventide")
    served.mkdir(exist_ok=True)
    context.addPyFile(str(_packed_packages(served)))


def _packed_packages(directory: Path) -> Path:
    path = directory / "eventide-packages.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            spec = find_spec(package)
            assert spec is not None
            assert spec.submodule_search_locations
            root = Path(next(iter(spec.submodule_search_locations)))
            for file in sorted(root.rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, Path(package) / file.relative_to(root))
        try:
            installed = distribution("eventide")
        except PackageNotFoundError:
            return path
        # The version, and the adapters by name, come from the packages beside them, whatever is installed there.
        for name in ("METADATA", "entry_points.txt"):
            text = installed.read_text(name)
            if text is not None:
                archive.writestr(f"eventide-{installed.version}.dist-info/{name}", text)
    return path

"""Sessions that a user made, whose Python workers are not this Python: named before anything is written."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import eventide
from eventide import EngineError, Table, WorkerPackagesError
from eventide.spark import workers
from eventide.spark.engine import SparkEngine
from eventide.spark.java_home import find_java_home
from support.values.columns import schema_of

pytestmark = pytest.mark.real

_SCHEMA = schema_of(id=pa.string(), at=pa.timestamp("ms", "UTC"))
_PACKAGES = Path(pa.__file__).parents[1]
MakePython = Callable[..., str]


@pytest.fixture
def make_python(tmp_path: Path) -> MakePython:
    """A `python` for the workers: this one with another PYTHONPATH, and without what is installed if `-S` is passed."""

    def make(*arguments: str, path: Path | None = None) -> str:
        program = tmp_path / "python"
        words = " ".join([f'exec "{sys.executable}"', *arguments, '"$@"'])
        program.write_text(f'#!/bin/sh\nPYTHONPATH="{path or ""}:$PYTHONPATH" {words}\n')
        program.chmod(0o755)
        return str(program)

    return make


@contextmanager
def plain_session(monkeypatch: pytest.MonkeyPatch, python: str | None) -> Iterator[SparkSession]:
    """A session as a user makes it: eventide has no part in it."""
    monkeypatch.setenv("JAVA_HOME", find_java_home())
    if python is None:
        monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    else:
        monkeypatch.setenv("PYSPARK_PYTHON", python)
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def test_workers_of_a_local_session_run_the_drivers_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The `python3` on PATH is the machine's if the virtual environment isn't activated."""
    with plain_session(monkeypatch, None) as spark:
        assert spark.sparkContext.pythonExec == "python3"

        def which(_: int) -> str:
            import sys

            return sys.executable

        assert SparkEngine(spark).map(which, [0]) == [sys.executable]


def test_a_local_session_brings_eventide_where_its_workers_do_not_find_it(
    monkeypatch: pytest.MonkeyPatch, make_python: MakePython
) -> None:
    """As in a notebook that added a directory to `sys.path`."""
    with plain_session(monkeypatch, make_python("-S", path=_PACKAGES)) as spark:

        def where(_: int) -> str:
            import eventide

            return str(eventide.__file__)

        assert "eventide-packages.zip" in SparkEngine(spark).map(where, [0])[0]


def _no_packages(make: MakePython, _: Path) -> str:
    return make("-S")


_OF_ANOTHER_VERSION = """
import sys
class Version(tuple):
    major, minor, micro, releaselevel, serial = 3, 99, 0, "final", 0
sys.version_info = Version((3, 99, 0, "final", 0))
"""


def _other_python(make: MakePython, directory: Path) -> str:
    (directory / "sitecustomize.py").write_text(_OF_ANOTHER_VERSION)
    return make(path=directory)


def _other_eventide(make: MakePython, directory: Path) -> str:
    (directory / "eventide").mkdir()
    (directory / "eventide" / "__init__.py").write_text('__version__ = "0.0.9"\n')
    return make(path=directory)


@pytest.mark.parametrize(
    ("python", "why"),
    [
        (
            _no_packages,
            rf"worker on \S+ \(.* Python [\d.]+\) has no package pyarrow \({pa.__version__} here\), numpy .*PYSPARK_PYTHON",
        ),
        (
            _other_python,
            r"executor \S+ of Spark on \S+ runs Python 3\.99, and this process Python 3\.\d+; .*PYSPARK_PYTHON",
        ),
        (_other_eventide, rf"has eventide 0\.0\.9, and this process {eventide.__version__}; install the same"),
    ],
)
def test_workers_that_lack_something_are_named_before_anything_is_written(
    python: Callable[[MakePython, Path], str],
    why: str,
    monkeypatch: pytest.MonkeyPatch,
    make_python: MakePython,
    tmp_path: Path,
) -> None:
    table = Table.create(
        tmp_path / "t",
        schema=_SCHEMA,
        record_key="id",
        event_time="at",
    )
    table.upsert(pa.table({"id": ["a"], "at": [datetime(2025, 3, 1, tzinfo=UTC)]}, schema=_SCHEMA))
    other = tmp_path / "other"
    other.mkdir()
    before = sorted(str(path) for path in (tmp_path / "t").rglob("*"))
    uses: tuple[Callable[[SparkSession], Any], ...] = (
        lambda spark: table.compact(before="2026-01-01T00:00Z", engine=spark),
        lambda spark: table.snapshot().to_spark(spark),
        eventide.register,
    )
    with plain_session(monkeypatch, python(make_python, other)) as spark:
        for use in uses:
            with pytest.raises(WorkerPackagesError, match=why) as caught:
                use(spark)
            assert caught.value.exit_code == 2
    assert sorted(str(path) for path in (tmp_path / "t").rglob("*")) == before


_LOST = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 9) (10.0.0.7 executor 2): org.apache.spark.api.python.PythonException: Traceback (most recent call last):\n"
    '  File "worker.py", line 1\n'
)


def test_an_executor_that_joined_later_is_named() -> None:
    """It was not asked: the first task that it runs fails there."""
    missing = workers.failure_of(RuntimeError(f"{_LOST}ModuleNotFoundError: No module named 'fastavro'\n"))
    assert isinstance(missing, WorkerPackagesError)
    assert str(missing).startswith("executor 2 of Spark on 10.0.0.7 has no package fastavro (")
    of_the_user = workers.failure_of(RuntimeError(f"{_LOST}ModuleNotFoundError: No module named 'mine'\n"))
    assert type(of_the_user) is EngineError
    assert "No module named 'mine'" in str(of_the_user)

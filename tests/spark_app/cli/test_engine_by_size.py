"""Which engine runs the tasks of a command: threads for little work, Spark for much, and the one that the user names."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from eventide.cli.engine_by_size import EngineBySize
from support.pasts import golden
from support.run.command_line import run, run_json

T = TypeVar("T")
R = TypeVar("R")


class Elsewhere:
    """An engine whose tasks run elsewhere."""

    session = "the session"

    def __init__(self) -> None:
        self.sizes: list[Sequence[int] | None] = []

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,
        on_done: Callable[[], None] | None = None,  # noqa: ARG002
    ) -> list[R]:
        self.sizes.append(sizes)
        return [function(item) for item in items]


class Started:
    def __init__(self) -> None:
        self.engines: list[Elsewhere] = []
        self.said: list[str] = []

    def __call__(self) -> Elsewhere:
        self.engines.append(Elsewhere())
        return self.engines[-1]


def test_little_work_runs_on_threads_and_much_on_an_engine_that_starts_once() -> None:
    started = Started()
    engine = EngineBySize(started, started.said.append, large_bytes=1000)
    assert engine.map(str, [1, 2], sizes=[499, 500]) == ["1", "2"]
    assert (engine.name, started.engines) == ("local", [])
    assert engine.map(str, [1, 2], sizes=[500, 500]) == ["1", "2"]
    assert engine.map(str, [3], sizes=[5000]) == ["3"]
    assert engine.name == "spark"
    assert [one.sizes for one in started.engines] == [[[500, 500], [5000]]]
    assert engine.map(str, [3], sizes=[1]) == ["3"]
    assert engine.name == "local"
    assert started.said == [
        "999 B to read: on threads of this process; from 1000 B on, Spark pays off",
        "1000 B to read: on Spark; from 1000 B on, Spark pays off",
    ]


def test_an_engine_that_the_user_names_runs_everything_and_needs_no_reason() -> None:
    started = Started()
    engine = EngineBySize(started, started.said.append, is_fixed=True)
    assert engine.map(str, [], sizes=[]) == []
    assert started.engines == []
    assert engine.map(str, [1]) == ["1"]
    assert (engine.name, len(started.engines), started.said) == ("spark", 1, [])


def test_without_spark_all_work_runs_on_threads_and_none_is_announced() -> None:
    started = Started()
    engine = EngineBySize(None, started.said.append, large_bytes=1)
    assert engine.map(str, [1], sizes=[10**12]) == ["1"]
    assert (engine.name, engine.session, started.said) == ("local", None, [])


def test_a_catalog_gets_a_session_whatever_the_size() -> None:
    started = Started()
    session: object = EngineBySize(started, started.said.append).session
    assert session == "the session"


def test_tasks_begin_ahead_only_on_threads_that_were_chosen() -> None:
    started = Started()
    engine = EngineBySize(started, started.said.append, large_bytes=1000)
    assert engine.begin(str, [1, 2]) is None
    engine.prepare(1000)
    assert engine.begin(str, [1, 2]) is None
    engine.prepare(1)
    begun = engine.begin(str, [1, 2])
    assert begun is None or [task.result() for task in begun] == ["1", "2"]


@pytest.mark.parametrize("words", [(), ("--engine", "auto"), ("--engine", "local")])
def test_a_small_compaction_starts_no_spark(words: tuple[str, ...], tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    before = ("--before", 1_700_900_000_000)
    assert run_json("compact", table, *before, *words)["engine"] == "local"
    again = run("compact", table, *before, *words)
    assert again.exit_code == 0
    assert "starting Spark" not in again.stderr

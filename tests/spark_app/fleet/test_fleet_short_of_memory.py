"""A fleet whose threads can't start, die before their round, or have no memory to report its end."""

import threading
from _thread import start_new_thread
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from eventide.fleet import service
from eventide.fleet.settings import fleet_of_file
from eventide_core.access import threads

NAMES = ["a", "b", "c"]


def served(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables of the rounds of a fleet, none of which is there, so that each round ends with an error."""
    monkeypatch.setattr(service, "_POLL_SECONDS", 0.01)
    parts = ["[fleet]\nworkers = 2\n", '[defaults]\ntarget_lag = "1h"\ndata_latency = "30m"\n']
    parts += [f"[[table]]\nuri = '{directory / name}'\n" for name in NAMES]
    (directory / "fleet.toml").write_text("".join(parts), encoding="utf-8")
    rounds = service.FleetService(fleet_of_file(directory / "fleet.toml", {})).run(threading.Event(), rounds=len(NAMES))
    return sorted(found.table.name for found in rounds if found.error is not None)


def refused(*_: object) -> int:
    raise RuntimeError("can't start new thread")


def dead(*_: object) -> int:
    return 0  # as a thread without memory for its first line


@pytest.mark.parametrize("start", [refused, dead])
@pytest.mark.parametrize("numbers", [{0}, {1}, {0, 1, 2}])
def test_every_round_is_done_without_a_thread(
    start: Callable[..., int], numbers: set[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = iter(range(10**6))

    def chosen(*given: Any) -> int:
        return start() if next(count) in numbers else start_new_thread(*given)

    monkeypatch.setattr(threads, "start_new_thread", chosen)
    assert served(tmp_path, monkeypatch) == NAMES


def test_the_end_of_a_round_is_seen_without_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(SimpleQueue[int]):
        def put(self, *_: object, **__: object) -> None:
            raise MemoryError

    monkeypatch.setattr(service, "SimpleQueue", Full)
    assert served(tmp_path, monkeypatch) == NAMES

"""The parts of a test run: one for all processes, and gone with the run, however it ends."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import AuthenticationError
from pathlib import Path

import pytest

from support.run.child_processes import environment
from support.run.parts import AskedParts, KeptParts

END_TIMEOUT_SECONDS = 60


@contextmanager
def directory_of(directory: Path, note: str) -> Iterator[str]:
    (directory / note).touch()
    yield str(directory)
    Path(os.environ["ENDED_PARTS"]).write_text(note)


@contextmanager
def broken(_: Path) -> Iterator[str]:
    raise FileNotFoundError("no such server")
    yield ""


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Holds the note of the part that ended last."""
    monkeypatch.setenv("ENDED_PARTS", str(tmp_path / "ended"))
    return tmp_path / "ended"


def test_all_who_ask_get_the_part_that_was_started_once(ended: Path) -> None:
    kept = KeptParts()
    asking = [AskedParts(kept.address, kept.key) for _ in range(4)]
    with ThreadPoolExecutor(len(asking)) as threads:
        parts_given = set(threads.map(lambda parts: parts.get(directory_of, "a"), asking))
    assert parts_given == {kept.get(directory_of, "a")}
    assert kept.get(directory_of, "b") not in parts_given
    for parts in asking:
        parts.close()
    assert not ended.exists(), "a part ends with the run, not with a process that asked for it"
    kept.close()
    assert ended.read_text() == "a", "the last one started ends first"
    assert not any(Path(directory).exists() for directory in parts_given)


def test_what_stops_a_part_is_reported_to_each_who_asks() -> None:
    kept = KeptParts()
    asking = AskedParts(kept.address, kept.key)
    for parts in (kept, asking, asking):
        with pytest.raises(FileNotFoundError, match="no such server"):
            parts.get(broken)
    asking.close()
    kept.close()


def test_who_does_not_know_the_key_is_turned_away_and_the_others_go_on(ended: Path) -> None:
    kept = KeptParts()
    with pytest.raises(AuthenticationError):
        AskedParts(kept.address, b"guessed")
    asking = AskedParts(kept.address, kept.key)
    assert asking.get(directory_of, "a") == kept.get(directory_of, "a")
    asking.close()
    kept.close()
    assert ended.exists()


def test_a_killed_run_takes_its_servers_along(tmp_path: Path) -> None:
    started, pid = tmp_path / "started", tmp_path / "pid"
    serving = f"import os, signal; open({str(pid)!r}, 'w').write(str(os.getpid())); open({str(started)!r}, 'w')"
    running = f"""
import sys
from pathlib import Path
from support.servers.server_process import server
command = [sys.executable, "-c", {serving + "; signal.pause()"!r}]
with server(command, Path({str(tmp_path / "log")!r}), Path({str(started)!r}).exists):
    print("serving", flush=True)
    sys.stdin.read()
"""
    run = subprocess.Popen(
        [sys.executable, "-c", running],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    with run:
        assert run.stdout is not None
        assert run.stdout.readline() == "serving\n"
        served = os.pidfd_open(int(pid.read_text()))
        run.kill()
    try:
        ended, _, _ = select.select([served], [], [], END_TIMEOUT_SECONDS)
    finally:
        os.close(served)
    assert ended, "the server outlived the run"

"""The table service under Kubernetes and systemd: it says when it is ready and that it lives, and ends in time."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventide import Table
from support.run.command_line import run
from support.tables.small import OPTIONS, SERVE, make, rows

pytestmark = pytest.mark.slow

# Whoever is inside a round stays there until it is interrupted.
STUCK = """
import sys, threading
from eventide.__main__ import main
from eventide.table.table_service import TableService
TableService.round = lambda *_, **__: (print("inside", flush=True), threading.Event().wait())
main()
"""


def messages_of(receiver: socket.socket) -> list[str]:
    found: list[str] = []
    while True:
        try:
            found.append(receiver.recv(1000).decode())
        except BlockingIOError:
            return found


@pytest.mark.parametrize("form", ["a path", "an abstract name"])
def test_the_service_is_ready_after_a_round_and_shows_that_it_lives(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "t", 9).upsert(rows(("k0", -3, "due")))
    health, name = tmp_path / "health", f"eventide-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "s") if form == "a path" else f"\0{name}")
        receiver.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "s") if form == "a path" else f"@{name}")
        words = ("--rounds", 2, "--every", "1s", "--health", health)
        assert run("serve", tmp_path / "t", *SERVE, *OPTIONS, *words).exit_code == 0
        messages = messages_of(receiver)
    assert messages[0] == "WATCHDOG=1", "the compaction lives before it has ended"
    assert sum("READY=1" in message for message in messages) == 2
    document = json.loads(health.read_text())
    assert (document["round"], document["troubles"]) == (2, [])


def test_the_file_of_a_service_is_empty_before_its_first_round(tmp_path: Path) -> None:
    health = tmp_path / "health"
    health.write_text("of the last process")
    assert run("serve", tmp_path / "absent", "--health", health).exit_code == 2
    assert health.read_bytes() == b""
    refused = run("serve", tmp_path / "absent", "--health", tmp_path / "no" / "health")
    assert (refused.exit_code, "--health" in refused.stderr) == (5, True)


def test_a_step_that_outlasts_the_grace_period_is_interrupted(tmp_path: Path) -> None:
    make(tmp_path / "t", 9)
    command = [sys.executable, "-c", STUCK, "serve", str(tmp_path / "t"), "--grace", "1s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 130
    assert time.monotonic() - began >= 1


@pytest.mark.broad
def test_what_the_grace_period_interrupts_the_next_round_completes(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, buckets=300)
    keys = [f"k{number}" for number in range(3000)]
    table.upsert(rows(*((key, -9, "base") for key in keys)))
    table.upsert(rows(*((key, -3, "due") for key in keys)))
    words = ["serve", str(tmp_path / "t"), "--rounds", "1", "--grace", "1s", *SERVE, *OPTIONS]
    with subprocess.Popen([sys.executable, "-m", "eventide", *map(str, words)]) as process:
        while process.poll() is None and not list((tmp_path / "t").rglob("*.compaction.inflight")):
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in (0, 130)
    assert run("serve", tmp_path / "t", "--rounds", 1, *SERVE, *OPTIONS).exit_code == 0
    table = Table.open(table.uri, table.options)
    read = table.read_optimized().to_arrow()
    assert dict(zip(read["id"].to_pylist(), read["word"].to_pylist(), strict=True)) == dict.fromkeys(keys, "due")
    assert table.verify(deep=True).ok

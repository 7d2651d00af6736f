"""A fleet's process that is ended while its first compaction merges."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eventide import Table
from support.run.child_processes import environment
from support.run.command_line import run
from support.tables.small import SOON, make, rows, seen

pytestmark = pytest.mark.slow

COUNT = 3


def served(directory: Path) -> tuple[Path, subprocess.Popen[str]]:
    """A fleet of tables that are due, and its process, in the merge of its first compaction."""
    table = make(directory / "t0", 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    table.upsert(rows(("k0", -3, "due"), ("k1", 3, "left over")))
    for number in range(1, COUNT):
        shutil.copytree(directory / "t0", directory / f"t{number}", symlinks=True)
    fleet = directory / "fleet.toml"
    parts = ['[defaults]\ntarget_lag = "1h"\ndata_latency = "30m"\n[options]\n']
    parts += [f'"{key}" = "{value}"\n' for key, value in SOON.items()]
    parts += [f"[[table]]\nuri = '{directory / f't{number}'}'\n" for number in range(COUNT)]
    fleet.write_text("".join(parts), encoding="utf-8")
    command = [sys.executable, "-m", "support.processes.held_merge", str(directory / "go_on")]
    command += ["serve", "--fleet", str(fleet), "--engine", "local", "--output", "json"]
    service = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (directory / "go_on.started").exists():
        assert service.poll() is None, service.communicate()[1]
        time.sleep(0.01)
    return fleet, service


def pending(directory: Path) -> list[int]:
    """How many actions each table has pending."""
    return [len(Table.open(str(directory / f"t{number}")).state().timeline.pending) for number in range(COUNT)]


def test_sigterm_in_the_middle_of_a_round_ends_the_fleet_after_the_compaction(tmp_path: Path) -> None:
    fleet, service = served(tmp_path)
    with service:
        service.send_signal(signal.SIGTERM)
        (tmp_path / "go_on").touch()
        stdout, stderr = service.communicate(timeout=120)
    assert service.returncode == 0, stderr
    (done,) = [json.loads(line) for line in stdout.splitlines()]
    assert (done["state"], done["deleted"], done["archived"]) == ("compacted", 0, [])
    assert pending(tmp_path) == [0] * COUNT
    rest = run("serve", "--fleet", fleet, "--engine", "local", "--rounds", COUNT)
    assert rest.exit_code == 0, rest.stdout


def test_a_second_signal_ends_the_fleet_and_the_next_run_completes_its_compaction(tmp_path: Path) -> None:
    fleet, service = served(tmp_path)
    with service:
        service.send_signal(signal.SIGINT)
        service.send_signal(signal.SIGTERM)
        try:
            _, stderr = service.communicate(timeout=60)
        finally:
            service.kill()
    assert service.returncode == 130
    assert stderr.strip() == "error: interrupted"
    assert sum(pending(tmp_path)) == 1
    rest = run("serve", "--fleet", fleet, "--engine", "local", "--rounds", COUNT, "--output", "json")
    assert rest.exit_code == 0, rest.stdout
    assert sum(len(json.loads(line)["resumed"]) for line in rest.stdout.splitlines()) == 1
    assert pending(tmp_path) == [0] * COUNT
    for number in range(COUNT):
        table = Table.open(str(tmp_path / f"t{number}"))
        assert seen(table.snapshot().to_arrow())["k0"][1] == "due"

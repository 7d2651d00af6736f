"""A fleet of real tables on disk: its service, and its status."""

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from support.run.child_processes import environment
from support.run.command_line import content_of, run, run_json
from support.tables.small import SOON, make, rows, seen

pytestmark = pytest.mark.slow

TABLES = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table with a record that is due and one that is not."""
    path = tmp_path_factory.mktemp("fleet") / "made"
    table = make(path, 9)
    table.upsert(rows(("k0", -9, "base"), ("k1", -9, "base")))
    table.upsert(rows(("k0", -3, "due"), ("k1", 3, "left over")))
    return path


def fleet_file(directory: Path, made: Path, count: int, *, extra: str = "") -> Path:
    """A fleet of copies of a table. Names one directory more, which has no table."""
    parts = [
        "[fleet]\nworkers = 2\nstate = 'state.json'\n",
        '[defaults]\ntarget_lag = "1h"\ndata_latency = "30m"\n',
        "[options]\n",
    ]
    parts += [f'"{key}" = "{value}"\n' for key, value in SOON.items()]
    for number in range(count):
        shutil.copytree(made, directory / f"t{number:02}", symlinks=True)
        parts.append(f"[[table]]\nuri = '{directory / f't{number:02}'}'\n")
    parts.append(f"[[table]]\nuri = '{directory / 'none'}'\n{extra}")
    path = directory / "fleet.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return path


def lines(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_a_fleet_compacts_every_table_beside_one_that_fails_and_says_so(made: Path, tmp_path: Path) -> None:
    path = fleet_file(tmp_path, made, TABLES)
    before = run_json("status", "--fleet", path)["tables"]
    assert Counter(one["state"] for one in before) == {"unknown": TABLES + 1}

    served = run("serve", "--fleet", path, "--engine", "local", "--rounds", TABLES + 1, "--output", "json")
    done = lines(served.stdout)
    assert Counter(one["table"] for one in done) == {"none": 1, **{f"t{number:02}": 1 for number in range(TABLES)}}
    failed = next(one for one in done if one["table"] == "none")
    assert failed["state"] == "failed"
    assert failed["retry_at_ms"] > failed["at_ms"]
    assert "none" in failed["error"]
    for one in done:
        if one is failed:
            continue
        assert (one["state"], one["error"], one["retry_at_ms"], one["met"]) == ("compacted", None, None, True)
        table = Table.open(one["uri"])
        optimized, whole = seen(table.read_optimized().to_arrow()), seen(table.snapshot().to_arrow())
        assert {key: row for key, row in whole.items() if row[0] < one["cut_ms"]}.items() <= optimized.items()

    page = tmp_path / "fleet.html"
    found = run_json("status", "--fleet", path, "--to", page)
    states = {one["table"]: one for one in found["tables"]}
    assert found["tables"][0]["table"] == "none", "the most urgent first"
    assert states["none"]["problem"] == states["none"]["last_error"]
    assert all(states[f"t{number:02}"]["state"] == "met" for number in range(TABLES))
    links = Links(page.read_text(encoding="utf-8")).found
    assert len(links) == TABLES
    assert all((tmp_path / link).is_file() for link in links)


def test_the_status_fits_a_screen_and_shows_all_tables_on_request(made: Path, tmp_path: Path) -> None:
    path = fleet_file(tmp_path, made, 22)
    short, whole = (run("status", "--fleet", path, *words, columns=80).stdout for words in ([], ["--verbose"]))
    assert short.count("\n") <= 24
    assert "... and 8 more" in short
    assert "and 11 more: held back by no compaction yet" in short
    assert all(f"t{number:02}" in whole for number in range(22))
    before = content_of(tmp_path)
    assert run("status", tmp_path / "t00").exit_code == 0
    assert run_json("status", tmp_path / "t00", "--target-lag", "90s")["tables"][0]["target_lag_ms"] == 90_000
    assert content_of(tmp_path) == before, "it writes nothing"


def test_a_fleet_remembers_costs_and_errors_from_run_to_run(made: Path, tmp_path: Path) -> None:
    path = fleet_file(tmp_path, made, 1)
    assert run("serve", "--fleet", path, "--engine", "local", "--rounds", 2).exit_code in (0, 2)
    remembered = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))["tables"]
    assert remembered["t00"]["learned"]["cost_per_byte_ms"] > 0
    assert remembered["none"]["last_error"]
    # A compaction that took nearly the whole target before: it is said before anything is compacted.
    remembered["t00"]["learned"] |= {"residual_ms": 3_599_000.0, "cost_per_byte_ms": 1.0}
    (tmp_path / "state.json").write_text(json.dumps({"tables": remembered}), encoding="utf-8")
    answer = run("serve", "--fleet", path, "--engine", "local", "--rounds", 1)
    assert "1 table will miss the target lag: t00" in answer.stderr
    (tmp_path / "state.json").write_text("not JSON", encoding="utf-8")
    assert run("status", "--fleet", path).exit_code == 0


def test_sigterm_ends_a_fleet_that_waits(made: Path, tmp_path: Path) -> None:
    path = fleet_file(tmp_path, made, 1)
    command = [sys.executable, "-m", "eventide", "serve", "--fleet", str(path), "--engine", "local", "--output", "json"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        assert {json.loads(service.stdout.readline())["table"] for _ in range(2)} == {"t00", "none"}
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("serve",),
        ("status",),
        ("serve", "/t", "--fleet", "f.toml"),
        ("status", "--catalog", "hive"),
        ("serve", "--fleet", "f.toml", "--database", "d"),
        ("serve", "--fleet", "f.toml"),
        ("serve", "/t", "--target-lag", "5m"),
        ("serve", "/t", "--database", "d"),
        ("serve", "/t", "--every", "0"),
        ("serve", "--fleet", "f.toml", "--every", "5m"),
        ("status", "/t", "--database", "d"),
        ("status", "/t", "--target-lag", "0"),
        ("status", "/nowhere"),
    ],
)
def test_a_command_line_that_names_no_fleet_is_wrong_usage(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2

"""What is deprecated works and warns, in Python and on the command line: here by names that nothing else has."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

import click
import pytest

from eventide import Table
from eventide.cli.maintenance.show import show
from eventide.own_warnings import DEPRECATED_OPTIONS, DeprecatedUseWarning, warn_of_use
from eventide_core.config import BUCKETS, Option, Options, markers
from eventide_core.config.option import TEXT
from support.run.child_processes import environment
from support.run.command_line import run
from support.tables.hourly import made

NEW, OLD = "eventide.invented.new", "eventide.invented.old"
INVENTED = Option(NEW, TEXT, "", "An invented option.", aliases=(OLD,))
OF_OPTION = f"option {OLD} is deprecated, and eventide 9.0 removes it: use {NEW}"
OF_FLAG = "--invented-old is deprecated, and eventide 9.0 removes it: use --invented-new"
IN_A_PROCESS = f"""
import sys
from eventide.own_warnings import DEPRECATED_OPTIONS
from eventide_core.config import Option, markers
from eventide_core.config.option import TEXT
markers.INVENTED = Option({NEW!r}, TEXT, "", "An invented option.", aliases=({OLD!r},))
DEPRECATED_OPTIONS[{OLD!r}] = ({NEW!r}, "9.0")
from eventide.__main__ import main
main()
"""


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setitem(DEPRECATED_OPTIONS, OLD, (NEW, "9.0"))
    monkeypatch.setattr(markers, "INVENTED", INVENTED, raising=False)
    return made(tmp_path)


def test_a_deprecated_key_works_and_warns_where_the_table_is_opened(table: Table) -> None:
    with pytest.warns(DeprecationWarning, match=f"^{OF_OPTION}$") as warned:
        found = Table.open(table.uri, {OLD: "x"})
    assert [(one.category, one.filename) for one in warned] == [(DeprecatedUseWarning, __file__)]
    assert Options(found.options).get(INVENTED) == "x"


def test_a_deprecated_parameter_warns_who_passed_it() -> None:
    def read(*, new: str | None = None, old: str | None = None) -> str | None:
        if old is not None:
            warn_of_use("old=", "new=", "9.0")
        return new if old is None else old

    of_eventide: Callable[..., str | None] = FunctionType(
        read.__code__, {"__name__": "eventide.invented", "warn_of_use": warn_of_use}, argdefs=read.__defaults__
    )
    with pytest.warns(
        DeprecationWarning, match="^old= is deprecated, and eventide 9.0 removes it: use new=$"
    ) as warned:
        assert of_eventide(new=None, old="x") == "x"
    assert [one.filename for one in warned] == [__file__]


def test_it_is_one_line_of_a_run_that_opens_the_table_twice(table: Table, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("id,ms\na,1\n")
    words = ("ingest", table.uri, tmp_path / "rows.csv", "--option", f"{OLD}=x", "--option", f"{BUCKETS}=1")
    told = run(*words)
    assert (told.exit_code, told.stderr.count(OF_OPTION)) == (0, 1)
    assert f"warning: {OF_OPTION}" in told.stderr.splitlines()
    assert OLD not in run(*words, "--quiet").stderr


def test_it_is_a_line_of_the_json_log(table: Table) -> None:
    (line,) = run("show", table.uri, "--option", f"{OLD}=x", "--log-format", "json").stderr.splitlines()
    said = json.loads(line)
    assert (said["level"], said["event"]) == ("warning", OF_OPTION)


def test_a_deprecated_flag_is_a_line(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(_ctx: click.Context, _parameter: click.Parameter, is_given: bool) -> None:
        if is_given:
            warn_of_use("--invented-old", "--invented-new", "9.0")

    flag = click.Option(["--invented-old"], is_flag=True, hidden=True, expose_value=False, callback=warn)
    monkeypatch.setattr(show, "params", [*show.params, flag])
    told = run("show", table.uri, "--invented-old")
    assert (told.exit_code, told.stderr) == (0, f"warning: {OF_FLAG}\n")
    assert run("show", table.uri).stderr == ""


def test_a_process_says_it_although_python_hides_it(table: Table) -> None:
    words = [sys.executable, "-c", IN_A_PROCESS, "show", table.uri, "--option", f"{OLD}=x"]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, f"warning: {OF_OPTION}\n")

"""A process imports nothing before it is needed. The resulting times are in benchmarks/."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import click
import pyarrow as pa
import pytest

import eventide
from eventide.cli.app import VERBS
from eventide.cli.app import eventide as command_line
from eventide_core import errors
from support.pasts import golden

pytestmark = pytest.mark.slow

_HEAVY = {"fastavro", "fsspec", "numpy", "pandas.core", "pyarrow", "pyspark", "rich.console", "sqlglot"}


def _imported(*words: str) -> set[str]:
    """The modules that a new process of Python imports."""
    run = subprocess.run([sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.parametrize(
    "words", [("-c", "import eventide; dir(eventide)"), ("-m", "eventide", "--version"), ("-m", "eventide", "--help")]
)
def test_a_start_imports_no_library(words: tuple[str, ...]) -> None:
    assert not _imported(*words) & _HEAVY


_USE_CASES = {
    "eventide.report",
    "eventide.table.table_service",
    "eventide.rows.writer",
    "eventide_adapters.format.metadata_table.update",
    "eventide_adapters.format.write.record_writer",
    "eventide_core.service.compaction.run",
    "eventide_core.service.maintenance.clean",
    "eventide_core.service.repair.repair",
    "eventide_core.service.verification.verify",
    "eventide_core.service.write.append",
}


@pytest.mark.parametrize("verb", ["show", "freshness"])
def test_a_look_at_a_table_imports_neither_pandas_nor_spark(verb: str, tmp_path: Path) -> None:
    table = golden.unpack("v9_event_bucket", tmp_path)
    found = _imported("-m", "eventide", verb, str(table), "--output", "json")
    assert "pyarrow" in found
    assert not found & {"pandas.core", "pyspark", "rich.console", "sqlglot", "fsspec", "pyarrow.parquet"}
    assert not found & _USE_CASES


def test_a_compaction_of_a_table_without_sources_imports_nothing_that_asks_one(tmp_path: Path) -> None:
    table = golden.unpack("v9_event_bucket", tmp_path)
    found = _imported("-m", "eventide", "compact", str(table), "--before", "1700000001000", "--engine", "local")
    assert "eventide_core.service.compaction.run" in found
    asking: tuple[str, ...] = (
        "eventide_adapters.arrival",
        "eventide_adapters.markers",
        "eventide.table.counted",
        "eventide.table.cut",
    )
    asking += ("eventide_core.service.query.windows", "eventide_core.action.windows.done_markers", "confluent_kafka")
    assert not {name for name in found if name.startswith(asking)}


@pytest.mark.parametrize("words", [("show",), ("plan", "--before", "1700000001000")])
def test_a_table_whose_headers_answer_needs_no_arrow(words: tuple[str, ...], tmp_path: Path) -> None:
    table = tmp_path / "trips"
    rows = pa.table({"id": ["a"], "at": [1_700_000_000_000]})
    opened = eventide.Table.create(str(table), schema=rows.schema, record_key="id", event_time="at")
    for _ in range(2):
        opened.upsert(rows)
    verb, *more = words
    found = _imported("-m", "eventide", verb, str(table), *more, "--output", "json")
    assert "eventide_adapters.format.slice.log_content.content" in found
    assert not found & {"numpy", "pyarrow"}
    assert not found & _USE_CASES


def test_a_compaction_imports_neither_pandas_nor_what_asks_sources(tmp_path: Path) -> None:
    """Of a caller's process too, from which eventide doesn't hide pandas."""
    table = tmp_path / "trips"
    rows = pa.table({"id": [str(number) for number in range(20_000)], "at": range(20_000), "is_new": [True] * 20_000})
    opened = eventide.Table.create(str(table), schema=rows.schema, record_key="id", event_time="at")
    opened.bulk_insert(rows)
    opened.upsert(rows.slice(10))
    opened.delete(rows.slice(5, 10))
    found = _imported(
        "-c", f"import eventide; eventide.Table.open({str(table)!r}).compact(before='1970-01-01T00:16:40Z')"
    )
    assert "eventide_adapters.format.slice.merge.slice_merger" in found
    assert not found & {"pandas", "confluent_kafka", "opentelemetry"}
    of_arrival = re.compile(r"eventide_adapters\.(arrival|markers)|.*\.(done_markers|counted|window_content)$")
    assert not list(filter(of_arrival.match, found)), "there are neither sources nor markers"
    assert opened.snapshot().to_arrow().num_rows == 19_990


def test_pyarrow_still_finds_pandas_after_a_run_that_spared_it() -> None:
    code = (
        "import sys; from eventide.cli import own_process; own_process.claim(); own_process.hide_pandas(); "
        "import pyarrow as pa; "
        "assert 'pandas' not in sys.modules; assert len(pa.table({'a': [1, 2]}).to_pandas()) == 2"
    )
    assert "pandas.core" in _imported("-c", code)


def test_an_exit_looks_for_no_cycles() -> None:
    code = (
        "import atexit, gc, os, sys; from eventide.__main__ import main; sys.argv = ['eventide', '--version']; "
        "atexit.register(lambda: os.write(2, b'%d %d' % (len(gc.get_objects()), gc.get_freeze_count()))); main()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    collected, frozen = map(int, run.stderr.split())
    assert collected < 1000 < frozen


def test_the_help_of_the_group_is_that_of_the_verbs() -> None:
    context = click.Context(command_line)
    assert command_line.list_commands(context) == sorted(VERBS)
    for name, (_, text) in VERBS.items():
        verb = command_line.get_command(context, name)
        assert verb is not None
        assert verb.name == name
        assert verb.get_short_help_str(200) == text


def test_every_error_and_nothing_else_is_public() -> None:
    kin = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.EventideError)
    }
    assert kin <= set(eventide.__all__)
    assert dir(eventide) == sorted(eventide.__all__)
    assert all(getattr(eventide, name) is not None for name in eventide.__all__)
    assert eventide.BusyError is errors.BusyError
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", eventide.__version__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        eventide.nothing  # noqa: B018


def test_type_checkers_see_the_names_that_are_public() -> None:
    tree = ast.parse(Path(str(eventide.__file__)).read_text(encoding="utf-8"))
    seen = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert "*" in seen  # of the errors
    assert set(eventide.__all__) - {"__version__"} <= seen | vars(errors).keys()

"""All options together: each declared once and listed, each default and choice taken, an unknown one named."""

import pkgutil
import re
import warnings
from collections import Counter
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide
import eventide_adapters
import eventide_core
from eventide import Table, UnknownOptionWarning
from eventide.options.sections import SECTIONS, all_options
from eventide_core.action.compaction.trigger import Trigger
from eventide_core.config import CLEANING_POLICY, CLOCK_SKEW_MS, CUT, LOG_BLOCK_FORMAT, THRESHOLD, TRIGGER
from eventide_core.config.option import Option, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import NoProgress
from eventide_core.table.settings.write_shape import LogBlockFormat
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy
from eventide_core.table.timeline.contents.plans import CutMode
from support.pasts import golden
from support.run.command_line import run

ROOT = Path(__file__).parents[3]
PACKAGES = (eventide_core, eventide_adapters, eventide)
OPTIONS = tuple(all_options())
MISSPELLED = "eventide.table.exlusive"
MISSPELLED_OF_HUDI = "hoodie.tabel.name"


def test_every_option_is_declared_once_and_listed() -> None:
    names = (
        found.name for package in PACKAGES for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    listed = {id(option) for option in OPTIONS}
    unlisted = {
        f"{name}.{constant}"
        for name in names
        if not name.startswith(("eventide.testing", "eventide.__main__", "eventide.airflow"))
        for constant, value in vars(import_module(name)).items()
        if isinstance(value, Option) and id(value) not in listed
    }
    assert unlisted == set()
    assert [
        name for name, count in Counter(name for option in OPTIONS for name in option.names).items() if count > 1
    ] == []
    assert len({module for _, module in SECTIONS}) == len({title for title, _ in SECTIONS}) == len(SECTIONS)


def test_an_option_is_read_by_its_declaration_and_nowhere_by_its_key() -> None:
    """Neither `options.get("eventide...")` nor `options["eventide..."]`. A message may name a key, and `path` is Spark's."""
    reading = re.compile(r"""(?:\.(?:get|below|pop|setdefault)\(|\[)\s*f?["'](?:eventide|s3|hdfs|fsspec)\.""")
    by_options = re.compile(r"""(?:options|typed|settings)\.(?:get|text|name|below|pop)\(\s*f?["'](?!path\b)""")
    raw = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for source in ("core", "adapters", "spark_app")
        for path in sorted((ROOT / source).rglob("*.py"))
        for pattern in (reading, by_options)
        for found in pattern.finditer(path.read_text(encoding="utf-8"))
    ]
    assert raw == []


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_the_default_and_every_choice_that_the_page_names_are_taken(option: Option[Any]) -> None:
    if option.default_text:
        assert Options({option: option.default_text}).get(option) == option.default
    read = [Options({name: text}).get(option) for name in option.names for text in option.kind.choices]
    assert len(set(read)) == len(option.kind.choices)


def _values_of_the_page() -> list[tuple[str, str]]:
    """Each option of the reference pages with its default and each value that their type column names."""
    pages = sorted((ROOT / "docs" / "reference").glob("configuration*.md"))
    found: list[tuple[str, str]] = []
    for line in "".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        if not line.startswith("| `"):
            continue
        names, default, kind, _ = (cell.strip() for cell in line.strip("|").split(" | ", 3))
        values = [*re.findall(r"`([^`]+)`", default), *(kind.split(", ") if ", " in kind else [])]
        found += [(name, value) for name in re.findall(r"`([^`]+)`", names) for value in values]
    return found


@pytest.mark.parametrize(("name", "value"), _values_of_the_page())
def test_every_value_on_the_reference_page_is_taken(name: str, value: str) -> None:
    option = next(option for option in OPTIONS if name in option.names)
    Options({name: value}).get(option)


# What the page says is refused, needs something that is not there, or sends metrics to a server.
ELSEWHERE = {
    "hoodie.datasource.hive_sync.mode",
    "hoodie.datasource.hive_sync.create_managed_table",
    "hoodie.datasource.hive_sync.metastore.uris",
    "hoodie.datasource.hive_sync.enable",
    "hoodie.datasource.meta.sync.enable",
    "hoodie.meta.sync.enable",
    "hoodie.metrics.on",
    "hoodie.datasource.write.operation",  # a write refuses an operation of another kind
    "hoodie.compaction.partial.link.mode",  # hardlinks, and symlinks of tables that are not exclusive
    "as.of.watermark",
}


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(max(len(option.kind.choices) for option in OPTIONS)))
def test_a_table_lives_under_every_value_on_the_reference_page(nth: int, tmp_path: Path) -> None:
    """The nth value of all options at once, which is the first one again where an option has fewer."""
    values = dict[str, list[str]]()
    for name, value in _values_of_the_page():
        values.setdefault(name, []).append(value)
    chosen = {name: found[nth % len(found)] for name, found in values.items() if name not in ELSEWHERE}
    chosen |= {THRESHOLD: "1970-01-01T00:00:00.004Z", CLOCK_SKEW_MS: "1"}
    rows = pa.table({"id": ["a", "b"], "part": ["p", "q"], "at": [1, 2], "op": ["U", "U"]})
    table = Table.create(
        str(tmp_path / "trips"), schema=rows.schema, record_key="id", partition="part", event_time="at", options=chosen
    )
    table.upsert(rows)
    table.upsert(rows.set_column(2, "at", pa.array([3, 4])))
    assert table.snapshot().to_arrow().num_rows == 2
    table.plan_compaction().explain()
    table.service().round(NoProgress())
    table.clean()
    table.archive()
    assert table.verify(deep=True).ok
    assert {row["at"] for row in table.snapshot().to_arrow().to_pylist()} == {3, 4}


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_an_option_states_its_meaning_and_its_default(option: Option[Any]) -> None:
    assert re.fullmatch(r"[A-Z].*\.", option.doc), "a sentence"
    assert "\n" not in option.doc
    if option.otherwise is not None:
        assert option.default is None or option.default in option.kind.choices


@pytest.mark.parametrize(
    ("option", "nouns"),
    [(CUT, CutMode), (CLEANING_POLICY, CleaningPolicy), (LOG_BLOCK_FORMAT, LogBlockFormat), (TRIGGER, Trigger)],
    ids=str,
)
def test_the_choices_are_the_tables_own_nouns(option: Option[Any], nouns: type[StrEnum]) -> None:
    assert option.kind.choices == tuple(str(noun) for noun in nouns)


def test_an_unknown_option_is_named_where_a_table_is_opened(tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    with pytest.raises(ConfigError, match=f"{MISSPELLED} is unknown; did you mean eventide.table.exclusive"):
        Table.open(str(table), {MISSPELLED: "true"})
    with pytest.warns(UnknownOptionWarning, match=f"{MISSPELLED_OF_HUDI} is .* did you mean hoodie.table.name") as told:
        Table.open(str(table), {MISSPELLED_OF_HUDI: "x"})
    assert [Path(found.filename).name for found in told] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Table.open(str(table), {"eventide.table.exclusive": "true", "hoodie.memory.merge.fraction": "1"})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "file"])
def test_an_unknown_option_is_named_by_the_command_line(how: str, tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    file = tmp_path / "lake.toml"
    file.write_text(f'[options]\n{MISSPELLED_OF_HUDI} = "true"\n', encoding="utf-8")
    words = ("--option", f"{MISSPELLED_OF_HUDI}=true") if how == "option" else ("--config", file)
    answer = run("show", table, "--output", "json", *words)
    assert answer.exit_code == 0
    assert answer.document["table"]
    assert answer.stderr == (
        f"warning: option {MISSPELLED_OF_HUDI} is unknown to eventide; did you mean hoodie.table.name?\n"
    )
    assert run("show", table, "--quiet", *words).stderr == ""
    refused = run("show", table, "--option", f"{MISSPELLED}=true")
    assert (refused.exit_code, refused.stderr) == (
        2,
        f"error: option {MISSPELLED} is unknown; did you mean eventide.table.exclusive?\n",
    )

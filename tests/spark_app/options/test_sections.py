"""All options together: each declared once and listed, each default and choice taken, an unknown one named."""

from __future__ import annotations

import pkgutil
import re
import warnings
from collections import Counter
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import eventide
import eventide_adapters
import eventide_core
from eventide import Table, UnknownOptionWarning
from eventide.options.sections import SECTIONS, all_options
from eventide_core.action.compaction_trigger import Trigger
from eventide_core.config import CLEANING_POLICY, CUT, LOG_BLOCK_FORMAT, TRIGGER
from eventide_core.config.option import Option, Options
from eventide_core.table.clean_metadata import CleaningPolicy
from eventide_core.table.plans import CutMode
from eventide_core.table.write_shape import LogBlockFormat
from support import golden
from support.command_line import run

ROOT = Path(__file__).parents[3]
PACKAGES = (eventide_core, eventide_adapters, eventide)
OPTIONS = tuple(all_options())
MISSPELLED = "eventide.table.exlusive"


def test_every_option_is_declared_once_and_listed() -> None:
    names = (
        found.name for package in PACKAGES for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    )
    listed = {id(option) for option in OPTIONS}
    unlisted = {
        f"{name}.{constant}"
        for name in names
        if not name.startswith(("eventide.testing", "eventide.__main__"))
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


@pytest.mark.parametrize("option", OPTIONS, ids=str)
def test_an_option_says_what_it_means_and_what_its_default_is(option: Option[Any]) -> None:
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
    with pytest.warns(
        UnknownOptionWarning, match=f"{MISSPELLED} is unknown .* did you mean eventide.table.exclusive"
    ) as told:
        Table.open(str(table), {MISSPELLED: "true"})
    assert [Path(found.filename).name for found in told] == [Path(__file__).name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Table.open(str(table), {"eventide.table.exclusive": "true", "hoodie.tabel.name": "x"})


@pytest.mark.slow
@pytest.mark.parametrize("how", ["option", "file"])
def test_an_unknown_option_is_named_by_the_command_line(how: str, tmp_path: Path) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    file = tmp_path / "lake.toml"
    file.write_text(f'[options]\n{MISSPELLED} = "true"\n', encoding="utf-8")
    words = ("--option", f"{MISSPELLED}=true") if how == "option" else ("--config", file)
    answer = run("show", table, "--output", "json", *words)
    assert answer.exit_code == 0
    assert answer.document["table"]
    assert answer.stderr == (
        f"warning: option {MISSPELLED} is unknown and has no effect; did you mean eventide.table.exclusive?\n"
    )
    assert run("show", table, "--quiet", *words).stderr == ""

"""The configuration reference, from the options that `eventide.options.sections` lists."""

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from eventide.options.sections import SECTIONS, options_of
from eventide_core.config.option import FIRST_VERSION, Option

ROOT = Path(__file__).parents[3]

_HEAD = """# Options

<!-- Made by `./run docs` from the declarations that spark_app/eventide/options/sections.py lists: change them there. -->

Every option that eventide reads. Set them as `--option KEY=VALUE` or in a file with `--config FILE.toml`, in
`Table.open(uri, options)`, to `eventide.stream_sink(table, options)`, or as `.option(KEY, VALUE)` of `format("eventide")`.
Hudi's keys keep Hudi's meaning; the defaults are eventide's, and some differ from Hudi's. If an option has several names,
the first that is set counts. eventide warns of a key that begins with `eventide.` or `s3.` and is on neither page. It
ignores other keys: they belong to Hudi. What a table records about itself in `hoodie.properties` is on [the page of the
format](../on_disk_format.md).

Choices and flags are read in any case. A duration is written as 90s, 30m, 2h, or 1d, or several of these one after another.

This page has the options of compactions, queries, writes and streams. Options of locks, services, catalogs and stores are on
[a page of their own](configuration_services.md).
"""
_HEAD_OF_SERVICES = """# Options of locks, services, catalogs and stores

<!-- Made by `./run docs` from the declarations that spark_app/eventide/options/sections.py lists: change them there. -->

How to set them, and the other options: [Options](configuration.md).
"""
_FIRST_OF_SERVICES = "Lock, heartbeats, failed writes"
_COLUMNS = "| option | default | type | meaning |\n|---|---|---|---|\n"


def configuration_pages() -> dict[str, str]:
    """A table for each section, on two pages."""
    first = [title for title, _ in SECTIONS].index(_FIRST_OF_SERVICES)
    heads = {
        "configuration.md": (_HEAD, SECTIONS[:first]),
        "configuration_services.md": (_HEAD_OF_SERVICES, SECTIONS[first:]),
    }
    return {
        name: "\n".join((head, *(_section(title, module) for title, module in sections)))
        for name, (head, sections) in heads.items()
    }


def _section(title: str, module: ModuleType) -> str:
    source = Path(inspect.getfile(module)).relative_to(ROOT)
    return f"## {title}\n\nDeclared in `{source}`.\n\n{_COLUMNS}" + "".join(map(_row, options_of(module)))


def _row(option: Option[Any]) -> str:
    names = "<br>".join(f"`{name}`" for name in option.names)
    default = option.otherwise or (f"`{option.default_text}`" if option.default_text else "none")
    since = "" if option.since == FIRST_VERSION else f" Since {option.since}."
    cells = (names, default, option.kind.name, option.doc + since)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"

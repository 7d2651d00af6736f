"""Texts and tables on the page. Texts from a table are escaped only here."""

from collections.abc import Sequence
from html import escape
from typing import Final

NAME_CHARACTERS: Final = 32
"""Characters of a partition or a key in a table, which leave room for two times beside two file names."""


def shown(value: object) -> str:
    """A text for HTML and SVG: markup is escaped, and invisible characters are spelled out.

    XML does not allow control characters, and characters that change the writing direction would let a name pose as another.
    """
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(value))
    return escape(text, quote=True)


def shortened(text: str, length: int) -> str:
    """The text, without its middle if it is longer than `length`."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def named(text: str, length: int = 28) -> str:
    """A name as HTML, shortened in the middle. Pointing at it shows all of it.

    If it is written from right to left, the text around it is not.
    """
    short = shortened(text, length)
    if short == text:
        return shown(text) if text.isascii() else f"<bdi>{shown(text)}</bdi>"
    return f'<bdi class="short" title="{shown(text)}">{shown(short)}</bdi>'


_ROWS_SHOWN = 200  # per table; `--output json` has all rows
_ROWS_UNFOLDED = 12  # few enough that the next heading is on the same screen
_NUMBERS = {
    "late records", "late then", "slices", "log files", "bytes", "without event time", "behind the cut by", "took",
    "log files held back",
}  # fmt: skip
_TEXTS = {
    "partition", "file slice", "log file", "in full, by reason", "why", "what it waits for", "key", "tag", "comment",
}  # fmt: skip


def html_table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    kinds = ["number" if name in _NUMBERS else "text" if name in _TEXTS else "time" for name in columns]
    heads = "".join(f'<th scope="col" class="{kind}">{name}</th>' for name, kind in zip(columns, kinds, strict=True))
    if len(rows) > _ROWS_SHOWN:
        caption = f"{caption}{'; ' if caption else ''}the first {_ROWS_SHOWN} of {len(rows):,}"
    heading = f"<caption>{shown(caption)}</caption>" if caption else ""
    lines = [f"<tr>{_cells(row, columns, kinds)}</tr>" for row in rows[:_ROWS_SHOWN]]
    unfolded = len(lines) if len(lines) <= _ROWS_UNFOLDED + 1 else _ROWS_UNFOLDED

    def part(part_lines: Sequence[str]) -> str:
        return f"<thead><tr>{heads}</tr></thead><tbody>{''.join(part_lines)}</tbody></table>"

    label = caption or columns[0]
    first = wide(label, f"<table>{heading}{part(lines[:unfolded])}")
    if unfolded == len(lines):
        return first
    rest = wide(label, f"<table>{part(lines[unfolded:])}")
    return f'{first}<details class="more"><summary>{len(lines) - unfolded:,} more</summary>{rest}</details>'


def section(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", text: str = ""
) -> str:
    """A section of the page: a text and a table, both HTML already. Without rows, there is none."""
    return f"<h2>{title}</h2>{text}{html_table(caption, columns, rows)}" if rows else ""


def _cells(row: Sequence[str], columns: Sequence[str], kinds: Sequence[str]) -> str:
    return "".join(map(cell_of, columns, row, kinds))


def cell_of(column: str, cell: str, kind: str) -> str:
    """A cell, which also states its column: in a narrow window, each row is a list."""
    return f'<td class="{kind}" data-column="{shown(column)}">{cell}</td>'


def wide(label: str, content: str) -> str:
    """Makes wide content scrollable by itself, also with the keyboard."""
    return f'<div class="wide" role="region" tabindex="0" aria-label="{shown(label)}">{content}</div>'

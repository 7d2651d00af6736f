"""Draws a table as text that fits a width.

1. A table that fits the width is drawn as it is.
2. Otherwise, long words, such as file names and keys, lose their middle, as little of it as fits. Times, instants and
   sentences are not shortened. Where words are to stay whole, as in rows, this step and the next are left out.
3. If only the last column is too wide, and its words fit, its sentences are wrapped at spaces.
4. A table that is still too wide is drawn as one block of lines for each row: `column  value`.

A text is wrapped at spaces, unless it has no width. No line ends with spaces.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from rich.cells import cell_len

from eventide_core.errors import printable

_GAP = "  "
_LAST_MIN = 24  # columns that are enough to read a sentence in
_WORD_WIDTHS = (64, 48, 40, 32, 28)  # columns of a shortened word, from the first that makes the table fit
_NARROW = (24, 20, 16)  # the last resort before a block of lines for each row
_WHOLE = re.compile(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d)?)?|\d{14,17}")


@dataclass(frozen=True, slots=True)
class Lines:
    """A table for people.

    `title` is the line above the table; empty for none. `columns` are the heads, and each of `rows` has a value for each of
    them: numbers, texts, and None for an empty cell.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def drawn(table: Lines, width: int, *, keeps_words: bool = False) -> Iterator[str]:
    """The lines of the text. `width` is the number of columns; with `keeps_words`, no word is shortened."""
    if table.title:
        yield table.title
    heads = [printable(name) for name in table.columns]
    cells = [["" if value is None else printable(str(value), keeps_lines=True) for value in row] for row in table.rows]
    if _width(heads, cells) <= width:
        yield from _as_table(table, heads, cells)
    elif keeps_words:
        yield from _as_blocks(heads, cells)
    elif (fitting := _fitting(heads, cells, width)) is not None:
        yield from _as_table(table, *fitting)
    else:
        room = width - max(map(cell_len, heads)) - len(_GAP)
        yield from _as_blocks(heads, [["\n".join(_in_room(cell, room)) for cell in row] for row in cells])


def shortened(text: str, width: int) -> str:
    """A long word, which may be indented, without its middle; a time and a text of several words stay."""
    word = text.lstrip(" ")
    indent = len(text) - len(word)
    if cell_len(text) <= width or " " in word or "\n" in word or _WHOLE.fullmatch(word):
        return text
    kept = width - indent - 1
    return f"{text[:indent]}{word[: kept // 2]}…{word[-(kept - kept // 2) :]}"


def _fitting(
    heads: Sequence[str], cells: Sequence[Sequence[str]], width: int
) -> tuple[Sequence[str], Sequence[Sequence[str]]] | None:
    """The heads and cells with words as long as fit the width; None if only blocks of lines do."""
    for most in (*_WORD_WIDTHS, *_NARROW):
        short = [[shortened(cell, most) for cell in row] for row in cells]
        short_heads = [shortened(head, most) for head in heads]
        if _width(short_heads, short) <= width:
            return short_heads, short
        if most in _WORD_WIDTHS and (wrapped := _with_last_wrapped(short_heads, short, width)) is not None:
            return short_heads, wrapped
    return None


def _in_room(text: str, room: int) -> Iterator[str]:
    """The lines of a cell, wrapped at spaces, with words as long as the room."""
    for line in text.split("\n"):
        for part in _lines(line, room) if cell_len(line) > room else [line]:
            yield shortened(part, max(room, _NARROW[-1]))


def wrapped(text: str, width: int | None) -> str:
    """The text in lines that fit the width, as far as its words do. Further lines of a line are indented."""
    if width is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> Iterator[str]:
    if cell_len(line) <= width:
        yield line
        return
    sentence = line.lstrip(" ")
    indent = " " * (len(line) - len(sentence))
    widest = max((cell_len(word) for word in sentence.split(" ") if cell_len(word) <= width), default=0)
    further = " " * max(min(len(indent) + len(_GAP), width - widest), 0)  # less, rather than a line that is too long
    first, *more = _lines(sentence, width - max(len(indent), len(further)))
    yield (indent + first).rstrip()
    yield from (f"{further}{part}".rstrip() for part in more)


def _with_last_wrapped(heads: Sequence[str], cells: Sequence[Sequence[str]], width: int) -> list[list[str]] | None:
    """The cells with the last one of each row on several lines; None if they would not fit or be hard to read."""
    room = width - _width(heads, [[*row[:-1], ""] for row in cells]) + cell_len(heads[-1])
    words = [word for row in cells for word in row[-1].split()]
    if room < max([_LAST_MIN, cell_len(heads[-1]), *map(cell_len, words)]):
        return None
    return [[*row[:-1], "\n".join(chain(*(_lines(line, room) for line in row[-1].split("\n"))))] for row in cells]


def _lines(text: str, width: int) -> list[str]:
    """The text in lines of whole words."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if not lines[-1] or cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _widths(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[int]:
    return [
        max(cell_len(line) for text in (head, *(row[position] for row in cells)) for line in text.split("\n"))
        for position, head in enumerate(heads)
    ]


def _width(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> int:
    return sum(_widths(heads, cells)) + len(_GAP) * (len(heads) - 1)


def _as_table(table: Lines, heads: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = _widths(heads, cells)
    are_numbers = [
        bool(table.rows) and all(isinstance(row[position], int | float | None) for row in table.rows)
        for position in range(len(heads))
    ]

    def line(texts: Sequence[str]) -> str:
        padded = (
            " " * (width - cell_len(text)) + text if is_number else text + " " * (width - cell_len(text))
            for text, width, is_number in zip(texts, widths, are_numbers, strict=True)
        )
        return _GAP.join(padded).rstrip()

    yield line(heads)
    yield "─" * (sum(widths) + len(_GAP) * (len(heads) - 1))
    for row in cells:
        parts = [text.split("\n") for text in row]
        for number in range(max((len(part) for part in parts), default=1)):
            yield line([part[number] if number < len(part) else "" for part in parts])


def _as_blocks(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    width = max(cell_len(head) for head in heads)
    for number, row in enumerate(cells):
        if number:
            yield ""
        for head, text in zip(heads, row, strict=True):
            first, *more = text.split("\n")
            yield f"{head}{' ' * (width - cell_len(head))}{_GAP}{first}".rstrip()
            yield from (f"{' ' * width}{_GAP}{line}".rstrip() for line in more)

"""The text of the page. Texts from a table are escaped only here."""

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

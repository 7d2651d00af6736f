"""The text of the page. Texts from a table are escaped only here."""

from html import escape


def shown(value: object) -> str:
    """A text as HTML and SVG hold it: its markup escaped, and what is no visible character spelled out.

    Control characters are no XML at all, and those that turn the direction of writing would let a name pose as another.
    """
    text = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in str(value))
    return escape(text, quote=True)


def shortened(text: str, length: int) -> str:
    """The text with its middle left out where it is longer than that."""
    if len(text) <= length:
        return text
    tail = (length - 1) // 2
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"

"""Text, times and sizes as the page says them. Whatever comes from a table is escaped here, and nowhere else."""

from html import escape

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


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


def duration(milliseconds: int | None, absent: str = "none") -> str:
    """A span of time in its two greatest units."""
    if milliseconds is None:
        return absent
    left, parts = abs(milliseconds), list[str]()
    for unit, name in _UNITS:
        count, left = divmod(left, unit)
        if count:
            parts.append(f"{count:,} {name}")
    sign = "-" if milliseconds < 0 else ""
    return sign + " ".join(parts[:2]) if parts else f"{milliseconds} ms"


def size(count: int) -> str:
    """Bytes in the greatest unit that leaves a digit before the point."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")

"""Shows a value in a notebook as a small HTML table."""

from collections.abc import Iterable
from html import escape

from eventide_core.errors import printable


def html_facts(caption: str, facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values. Texts come from the table, so their markup is escaped."""
    rows = "".join(f"<tr><th>{_shown(name)}</th><td>{_shown(value)}</td></tr>" for name, value in facts)
    return f"<table><caption>{_shown(caption)}</caption><tbody>{rows}</tbody></table>"


def _shown(value: object) -> str:
    return escape(printable(str(value)))

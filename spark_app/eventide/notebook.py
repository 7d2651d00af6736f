"""How a value shows itself in a notebook: a small table of HTML."""

from collections.abc import Iterable
from html import escape

from eventide_core.errors import printable


def html_facts(caption: str, facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values. Each text is the table's own, so nothing in it passes for markup."""
    rows = "".join(f"<tr><th>{_shown(name)}</th><td>{_shown(value)}</td></tr>" for name, value in facts)
    return f"<table><caption>{_shown(caption)}</caption><tbody>{rows}</tbody></table>"


def _shown(value: object) -> str:
    return escape(printable(str(value)))

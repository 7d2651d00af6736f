"""Shows a value in a notebook as a small HTML table.

The core knows no HTML: importing this module adds the method that notebooks look for to its `Freshness`.
"""

from collections.abc import Iterable, Sequence
from html import escape

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import printable


def html_facts(caption: str, facts: Iterable[tuple[str, object]]) -> str:
    """A table of names and values. Texts come from the table, so their markup is escaped."""
    rows = "".join(f"<tr><th>{_shown(name)}</th><td>{_shown(value)}</td></tr>" for name, value in facts)
    return f"<table><caption>{_shown(caption)}</caption><tbody>{rows}</tbody></table>"


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of rows. None is an empty cell."""
    head = "".join(f"<th>{_shown(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{'' if value is None else _shown(value)}</td>" for value in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{_shown(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: object) -> str:
    return escape(printable(str(value)))


def _freshness(fresh: Freshness) -> str:
    return html_facts("Freshness of the read-optimized table", fresh.facts())


type.__setattr__(Freshness, "_repr_html_", _freshness)

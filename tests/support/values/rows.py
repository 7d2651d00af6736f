"""The rows of an eventide query as comparable values."""

from collections import Counter

import pyarrow as pa

from eventide.rows.reader import Rows


def rows(shown: Rows) -> Counter[tuple[tuple[str, str], ...]]:
    """Each row by its columns, without the meta columns that name files."""
    return Counter(
        tuple(sorted((name, repr(value)) for name, value in row.items() if name != "_hoodie_file_name"))
        for row in shown.to_arrow().to_pylist()
    )


def in_order(table: pa.Table) -> list[dict[str, object]]:
    """Each row by its columns, without the meta column that names files, by key."""
    names = [name for name in table.column_names if name != "_hoodie_file_name"]
    return table.select(names).sort_by("id").to_pylist()

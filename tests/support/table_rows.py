"""The rows of an eventide query as comparable values."""

from collections import Counter

from eventide.rows.reader import Rows


def rows(found: Rows) -> Counter[tuple[tuple[str, str], ...]]:
    """Each row by its columns, without the meta columns that name files."""
    return Counter(
        tuple(sorted((name, repr(value)) for name, value in row.items() if name != "_hoodie_file_name"))
        for row in found.to_arrow().to_pylist()
    )

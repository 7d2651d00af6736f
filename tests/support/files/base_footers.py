"""The footers of a table's base files."""

from pathlib import Path

import pyarrow.parquet as pq


def footers_of(path: Path) -> dict[str, dict[str, str]]:
    """Of each base file by its name, the pairs of its footer."""
    found = {}
    for file in path.rglob("*.parquet"):
        if ".hoodie" not in file.parts:
            pairs = pq.read_metadata(file).metadata or {}
            found[file.name] = {key.decode(): value.decode(errors="replace") for key, value in pairs.items()}
    return found

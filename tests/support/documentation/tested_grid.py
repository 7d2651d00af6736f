"""The tables of docs/tested_tables.md, from the declarations of the tests.

Written by `python -m support.documentation.tested_grid`:

    writers     which Hudi writes tables of which version, and in which tests
    settings    what the matrix varies for each writer
    readers     which readers are compared on tables of which version
    values      which types come back by which way as they left (round_trips.py)

Each combination without a test must have a reason in `REASONS`, and a combination with a test must not: `problems`
finds both. The summary of a run shows what it compared (`compared`).
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Final

from golden.recipes import recipes
from support.pasts.matrix import Cell, Writer, covering_cells
from support.run.reach import reached
from support.turns.kinds import EVENTIDE, HUDI_RS, KINDS
from support.values import round_trips

PAGE: Final = Path(__file__).parents[3] / "docs" / "tested_tables.md"
BEGIN = "<!-- tables of support.documentation.tested_grid: begin -->"
END = "<!-- tables of support.documentation.tested_grid: end -->"
VERSIONS: Final = (6, 8, 9)
SPARK: Final = ("0.14.0", "0.15.0", "1.0.2", "1.1.1", "1.2.0")
JAVA: Final = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
"""Hudi's Java client, by the version of Hudi that it runs on, and the version of the tables that it writes."""

MATRIX, GOLDEN, TURNS, BESIDE, COMPAT = "matrix", "golden", "turns", "beside", "compat"
FILES: Final = {
    MATRIX: "test_matrix.py",
    GOLDEN: "test_golden_reads.py",
    TURNS: "test_interleaved_histories.py",
    BESIDE: "test_beside_writers.py",
    COMPAT: "test_hudi014.py",
}
IN_COMPAT: Final = ("0.14.0", 6)
"""What `./run compat hudi014` has beside eventide: its bundles end at Spark 3.4, and all other tests run Spark 3.5."""
PARQUET: Final = "base files as plain Parquet"

_NO_EIGHT = "a: versions 8 and 9 came with Hudi 1"
_NO_NINE = "b: version 9 came with Hudi 1.1"
REASONS: Final[Mapping[tuple[str, int], str]] = {
    ("0.14.0", 8): _NO_EIGHT,
    ("0.14.0", 9): _NO_EIGHT,
    ("0.15.0", 8): _NO_EIGHT,
    ("0.15.0", 9): _NO_EIGHT,
    ("1.0.2", 9): _NO_NINE,
}


def compared(cell: Cell, reader: str) -> None:
    """Counts a comparison of a reader on the table of a cell, for the summary of the run."""
    reached(f"compared on tables of Hudi {cell.writer.bundle}, version {cell.writer.version}: {reader}")


def written() -> dict[tuple[str, int], set[str]]:
    """The tests in which a Hudi on Spark writes tables of a version."""
    found: dict[tuple[str, int], set[str]] = {}
    for writer in Writer:
        found.setdefault((writer.bundle, writer.version), set()).add(MATRIX)
    for recipe in recipes():
        found.setdefault((recipe.bundle, int(recipe.name[1])), set()).add(GOLDEN)
    for kind in KINDS:
        for writer_version in kind.writers:
            found.setdefault((writer_version, kind.version), set()).add(TURNS)
    for place in JAVA.items():
        found.setdefault(place, set()).add(BESIDE)
    found.setdefault(IN_COMPAT, set()).add(COMPAT)
    return found


def problems() -> list[str]:
    """Combinations with neither a test nor a reason, or with both."""
    tested = written()
    places = product(SPARK, VERSIONS)
    return [f"{bundle}, version {v}" for bundle, v in places if ((bundle, v) in tested) == ((bundle, v) in REASONS)]


def tables() -> str:
    """The four tables in Markdown."""
    return "\n".join([*_writers(), "", *_settings(), "", *_readers(), "", *round_trips.table()])


def page() -> str:
    """The page with the tables inserted."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def _writers() -> Iterator[str]:
    tested = written()
    yield "| writer | version 6 | version 8 | version 9 |"
    yield "|---|---|---|---|"
    for bundle in SPARK:
        cells = [
            ", ".join(name for name in FILES if name in tested.get((bundle, v), ())) or f"({REASONS[bundle, v][0]})"
            for v in VERSIONS
        ]
        yield f"| Hudi {bundle} on Spark | {' | '.join(cells)} |"
    java = [", ".join(bundle for bundle, of in JAVA.items() if of == v) for v in VERSIONS]
    yield f"| Hudi's Java client | {' | '.join(f'{BESIDE}: {bundles}' for bundles in java)} |"
    yield ""
    yield f"{'; '.join(f'{name} is `{file}`' for name, file in FILES.items())}."
    yield ""
    yield from (f"- ({reason[0]}){reason[2:]}." for reason in sorted(set(REASONS.values())))


def _settings() -> Iterator[str]:
    yield "| writer and version | merge mode | index | key generator | log blocks | metadata table |"
    yield "|---|---|---|---|---|---|"
    cells = covering_cells(2)
    for writer in Writer:
        own = [cell for cell in cells if cell.writer is writer]
        kinds = [
            sorted({str(kind) for kind in of_cells})
            for of_cells in (
                [cell.merge for cell in own],
                [cell.index for cell in own],
                [cell.keys for cell in own],
                [cell.blocks for cell in own],
                [cell.metadata for cell in own],
            )
        ]
        yield f"| {writer.bundle}, {writer.version} | {' | '.join(', '.join(kind) for kind in kinds)} |"


def _readers() -> Iterator[str]:
    yield "| reader | version 6 | version 8 | version 9 |"
    yield "|---|---|---|---|"
    for bundle in SPARK:
        cells = [", ".join(_tests_of_reader(bundle, v)) or f"({REASONS[bundle, v][0]})" for v in VERSIONS]
        yield f"| Hudi {bundle} on Spark | {' | '.join(cells)} |"
    for reader in (HUDI_RS, EVENTIDE):
        yield f"| {reader} | {' | '.join(', '.join((MATRIX, *_tests_of_reader(reader, v))) for v in VERSIONS)} |"
    yield f"| {PARQUET} | {' | '.join([MATRIX] * len(VERSIONS))} |"


def _tests_of_reader(reader: str, version: int) -> Iterator[str]:
    if any(writer.bundle == reader and writer.version == version for writer in Writer):
        yield MATRIX
    if any(reader in kind.orders and kind.version == version for kind in KINDS):
        yield TURNS
    if (reader, version) == IN_COMPAT:
        yield COMPAT


if __name__ == "__main__":
    PAGE.write_text(page())

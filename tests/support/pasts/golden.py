"""The golden tables, which real Hudi wrote once and each test unpacks again, with the rows that Hudi reads in them."""

import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

DIRECTORY = Path(__file__).parents[2] / "golden"

Values: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class GoldenStep:
    """One step of a table's history: Hudi's operation, or `compact`; `rows` in the order of `row_columns`.

    `failed`: the writer died before its commit was completed.
    """

    operation: str
    failed: bool
    rows: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The answer of one judge to one query: `rows` in the order of `columns`, or the error that it raised.

    `judge` is a bundle version or `hudi-rs`; `as_of` is an instant; `begin` (exclusive) is a completion time on tables
    of version 8 and later, otherwise an instant.
    """

    judge: str
    query: str
    as_of: str | None
    begin: str | None
    rows: tuple[Values, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class GoldenTable:
    """The history and the readings of a golden table.

    Values are JSON's: timestamps and dates are ISO-8601, decimals are their digits, binaries are hexadecimal.
    The first of `columns` is `_hoodie_commit_time`, the others are `row_columns`. `instants` are in timeline
    order.
    """

    name: str
    bundle: str
    options: Mapping[str, str]
    steps: tuple[GoldenStep, ...]
    instants: tuple[Mapping[str, str | None], ...]
    columns: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def row_columns(self) -> tuple[str, ...]:
        """The columns of the table itself."""
        return self.columns[1:]

    def read(
        self,
        query: str = "snapshot",
        *,
        judge: str | None = None,
        as_of: str | None = None,
        begin: str | None = None,
    ) -> tuple[Values, ...]:
        """The rows that `judge` (by default the bundle that wrote the table) read.

        Raises KeyError if it has no reading.
        """
        wanted = (judge or self.bundle, query, as_of, begin)
        for reading in self.readings:
            if (
                reading.judge,
                reading.query,
                reading.as_of,
                reading.begin,
            ) == wanted and reading.error is None:
                return reading.rows
        raise KeyError(wanted)


def names() -> tuple[str, ...]:
    """The names of the golden tables."""
    return tuple(sorted(path.name.removesuffix(".tar.gz") for path in DIRECTORY.glob("*.tar.gz")))


def unpack(name: str, directory: Path) -> Path:
    """Unpacks the table below `directory`, including hidden checksum files and modification times."""
    table = directory / name
    with tarfile.open(DIRECTORY / f"{name}.tar.gz") as archive:
        archive.extractall(table, filter="data")
    return table


def expected(name: str) -> GoldenTable:
    """The content of the table, and what real Hudi reads from it."""
    document = json.loads((DIRECTORY / f"{name}.expected.json").read_text())
    pool = [tuple(row) for row in document["rows"]]
    return GoldenTable(
        name=name,
        bundle=document["bundle"],
        options=document["options"],
        steps=tuple(
            GoldenStep(step["operation"], step["failed"], tuple(tuple(row) for row in step["rows"]))
            for step in document["steps"]
        ),
        instants=tuple(document["instants"]),
        columns=tuple(document["columns"]),
        readings=tuple(
            Reading(
                judge=reading["judge"],
                query=reading["query"],
                as_of=reading.get("as_of"),
                begin=reading.get("begin"),
                rows=tuple(pool[number] for number in reading.get("rows", ())),
                error=reading.get("error"),
            )
            for reading in document["reads"]
        ),
    )

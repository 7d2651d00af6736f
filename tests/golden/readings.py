"""What every judge reads from a golden table, as JSON: each distinct row once, a reading as numbers of rows."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from support.judge import JudgedInstant

Read: TypeAlias = Callable[..., pa.Table]
Question: TypeAlias = dict[str, str]

COMMIT_TIME = "_hoodie_commit_time"
ABSENT = "(no such column)"


class Readings:
    """Collects the answers to the four queries of one table from one judge after the other."""

    def __init__(self, schema: pa.Schema, instants: tuple[JudgedInstant, ...], *, begins_at_completion: bool) -> None:
        """`begins_at_completion`: incremental queries count completion times, as on table version 8 and later."""
        self._begins_at_completion = begins_at_completion
        self._columns = [COMMIT_TIME, *schema.names]
        self._instants = instants
        self._numbers: dict[str, int] = {}
        self._rows: list[list[object]] = []
        self._reads: list[dict[str, object]] = []

    def ask(self, judge: str, read: Read) -> None:
        """Asks `judge` every question; an answer that it refuses is recorded as its message."""
        for question in self._questions():
            try:
                rows = read(**question)
            except Exception as refusal:
                self._reads.append({"judge": judge, **question, "error": str(refusal)[:200]})
                continue
            numbers = sorted(map(self._number, rows.to_pylist()))
            self._reads.append({"judge": judge, **question, "rows": numbers})

    def document(self) -> dict[str, object]:
        """The JSON members that `support.pasts.golden` reads."""
        instants = [
            {
                "requested_time": instant.requested_time,
                "action": instant.action,
                "state": instant.state,
                "completion_time": instant.completion_time,
            }
            for instant in self._instants
        ]
        return {"instants": instants, "columns": self._columns, "rows": self._rows, "reads": self._reads}

    def _questions(self) -> Iterator[Question]:
        yield {"query": "snapshot"}
        yield {"query": "read_optimized"}
        for instant in self._instants:
            if instant.state == "COMPLETED" and instant.action in ("commit", "deltacommit", "replacecommit"):
                yield {"query": "snapshot", "as_of": instant.requested_time}
                completion = instant.completion_time if self._begins_at_completion else None
                yield {"query": "incremental", "begin": completion or instant.requested_time}

    def _number(self, row: dict[str, Any]) -> int:
        values = as_values(row, self._columns)
        number = self._numbers.setdefault(repr(values), len(self._rows))
        if number == len(self._rows):
            self._rows.append(values)
        return number


def as_values(row: dict[str, Any], columns: Sequence[str]) -> list[object]:
    """A row as it is in JSON. A column that an earlier schema of the table did not have is distinguished from a null."""
    return [as_json(row[name]) if name in row else ABSENT for name in columns]


def as_json(value: Any) -> object:
    """A column value as `support.pasts.golden` reads it back by the column's type."""
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return value.hex()
        case dict():
            return {name: as_json(inner) for name, inner in value.items()}
        case [tuple(), *_]:  # a map, whose entries have no order
            return sorted([entry[0], as_json(entry[1])] for entry in value)
        case list():
            return [as_json(inner) for inner in value]
        case _:
            return value

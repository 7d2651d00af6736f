"""The requests to Hudi that several tables can share: `HudiJudge.together`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, slots=True)
class Write:
    """Rows in one commit."""

    path: Path
    rows: pa.Table
    options: Mapping[str, str]
    operation: str = "upsert"

    def request(self, scratch: Path) -> dict[str, Any]:
        file = scratch / f"rows-{uuid4().hex}.parquet"
        pq.write_table(self.rows, file)
        options = {**self.options, "hoodie.datasource.write.operation": self.operation}
        return {"method": "write", "path": str(self.path), "rows": str(file), "options": options, "mode": "append"}


@dataclass(frozen=True, slots=True)
class Statements:
    """Statements of Spark SQL, run in a separate session with these settings. Their rows are discarded."""

    statements: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def request(self, _: Path) -> dict[str, Any]:
        return {"method": "statements", "statements": list(self.statements), "settings": dict(self.settings)}


Deed: TypeAlias = Write | Statements


def call_on(path: Path, procedure: str, settings: Mapping[str, str], **arguments: object) -> Statements:
    """A call of a Hudi procedure that takes the table by name."""
    name = f"called_{uuid4().hex}"
    call = call_of(procedure, table=name, **arguments)
    statements = (f"create table {name} using hudi location '{path}'", call, f"drop table {name}")
    return Statements(statements, settings)


def call_of(procedure: str, **arguments: object) -> str:
    """The statement that calls one of Hudi's procedures."""
    named = ", ".join(f"{name} => {_literal(value)}" for name, value in arguments.items())
    return f"call {procedure}({named})"


def pairs(options: Mapping[str, str]) -> str:
    """Options in the form that procedures take."""
    return ",".join(f"{key}={value}" for key, value in options.items())


def _literal(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case _:
            return "'" + str(value).replace("'", "\\'") + "'"

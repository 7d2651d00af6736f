"""What a fleet service remembers from run to run: the costs of each table, and its last error.

The file can be deleted at any time: the service measures again.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from eventide.report import write_page
from eventide_core.action.fleet.scheduler import Learned


@dataclass(frozen=True, slots=True)
class Remembered:
    """A table as the service last saw it.

    `learned` has the averages by which the scheduler predicts the table; None before its first measured round. `last_error`
    is the message of the last round that failed, and `last_error_ms` when that was; None without one.
    """

    learned: Learned | None = None
    last_error: str | None = None
    last_error_ms: int | None = None


def read_memory(path: Path | None) -> dict[str, Remembered]:
    """The tables by name; empty without a file, and for a file that this version can't read."""
    if path is None:
        return {}
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        return {name: _remembered(fields) for name, fields in document["tables"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def write_memory(path: Path, tables: Mapping[str, Remembered]) -> None:
    """Replaces the file atomically. Raises ConfigError if it can't be written."""
    write_page(path, json.dumps({"tables": {name: asdict(one) for name, one in tables.items()}}, indent=1) + "\n")


def _remembered(fields: Mapping[str, Any]) -> Remembered:
    learned = fields["learned"]
    return Remembered(
        None if learned is None else Learned(**{name: float(value) for name, value in learned.items()}),
        None if fields["last_error"] is None else str(fields["last_error"]),
        None if fields["last_error_ms"] is None else int(fields["last_error_ms"]),
    )

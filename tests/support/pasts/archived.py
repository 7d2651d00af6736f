"""Archived timelines of version 8 and later, of any length, in Hudi's layout."""

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from eventide_core.table.timeline.instant import instant_time

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("instantTime", pa.string()),
    pa.field("completionTime", pa.string()),
    pa.field("action", pa.string()),
    pa.field("metadata", pa.binary()),
    pa.field("plan", pa.binary()),
    pa.field("version", pa.int32(), nullable=False),
]
_COMMIT = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "extraMetadata", "type": ["null", {"type": "map", "values": "string"}]},
            {"name": "operationType", "type": ["null", "string"]},
        ],
    }
)


@dataclass(frozen=True, slots=True)
class Archived:
    """One archived instant. `extra` is the metadata of a commit beside its write stats."""

    requested: str
    completed: str
    action: str = "deltacommit"
    extra: tuple[tuple[str, str], ...] = ()

    def row(self) -> dict[str, object]:
        stream = io.BytesIO()
        fastavro.writer(stream, _COMMIT, [{"extraMetadata": dict(self.extra), "operationType": "UPSERT"}])
        return {
            "instantTime": self.requested,
            "completionTime": self.completed,
            "action": self.action,
            "metadata": stream.getvalue(),
            "plan": None,
            "version": 1,
        }


def instants(count: int, first_ms: int, step_ms: int = 60_000) -> list[Archived]:
    """Delta commits, one after another. Each has about two kilobytes of unique metadata."""
    return [
        Archived(
            instant_time(first_ms + nth * step_ms),
            instant_time(first_ms + nth * step_ms + step_ms // 2),
            extra=(("number", str(nth)), ("filling", "".join(str(nth * n % 9973) for n in range(500)))),
        )
        for nth in range(count)
    ]


def write_file(directory: Path, archived: Sequence[Archived], level: int = 0, *, row_group: int = 1000) -> str:
    """Writes one file of archived instants. Returns its name, which no manifest contains yet."""
    times = [instant.requested for instant in archived]
    name = f"{min(times)}_{max(times)}_{level}.parquet"
    directory.mkdir(parents=True, exist_ok=True)
    rows = pa.Table.from_pylist([instant.row() for instant in archived], pa.schema(COLUMNS))
    pq.write_table(rows, directory / name, row_group_size=row_group)
    return name


def publish(directory: Path, names: Sequence[str], version: int = 1) -> None:
    """Makes these the files of the latest manifest."""
    files = [{"fileName": name, "fileLen": (directory / name).stat().st_size} for name in names]
    (directory / f"manifest_{version}").write_text(json.dumps({"files": files}))
    (directory / "_version_").write_text(str(version))


def write_tree(directory: Path, archived: Sequence[Archived]) -> list[str]:
    """Writes files as Hudi's merges leave them: the oldest instants in files of thousands, the newest in files of tens."""
    names: list[str] = []
    position = 0
    for level, size in ((3, 1000), (2, 100), (1, 10)):
        keep = 9 * size // 10 if level > 1 else 0
        while len(archived) - position > size + keep:
            names.append(write_file(directory, archived[position : position + size], level))
            position += size
    names.append(write_file(directory, archived[position:], 0))
    return names

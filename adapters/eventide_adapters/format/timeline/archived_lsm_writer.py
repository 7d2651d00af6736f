"""Writes the archived timeline of version 8 and later: a Parquet file, then the manifest that names it.

Order of writes: the file, `manifest_<N + 1>`, `_version_`. No reader reads the first two before `_version_` names the
manifest, so a second run can replace the files that a crash left. A row contains the completed file of an action unchanged.
For a clean, a compaction or a clustering, it also contains the requested file as the plan.

A merge writes the rows of several files into one, in the same order of writes, and removes nothing. `remove_old` removes
what only manifests name that are no longer kept: the manifests first, then the files, as Hudi does. So a manifest that
exists never names a file that doesn't.
"""

import io
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_core.ports import ArchivedAction, Lease, Storage
from eventide_core.table.timeline.archived_timeline import (
    VERSION_NAME,
    HistoryFileName,
    manifest_name,
    manifest_version,
)
from eventide_core.table.timeline.instant import Action, State

_WITH_PLAN: Final = frozenset((Action.CLEAN, Action.COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT))
_LEVEL: Final = 0  # the level of files that no merge has written
_ROW_VERSION: Final = 1
_ROW_GROUP_BYTES_MAX: Final = 16 * 1024 * 1024  # a reader of one commit's metadata decodes one row group
_MANIFESTS_KEPT: Final = 3  # as in Hudi
_AVRO_FIELDS: Final = (
    ("instantTime", "string"),
    ("completionTime", "string"),
    ("action", "string"),
    ("metadata", "bytes"),
    ("plan", "bytes"),
)
_AVRO_SCHEMA: Final = json.dumps(
    {
        "type": "record",
        "name": "HoodieLSMTimelineInstant",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [
            *({"name": name, "type": ["null", kind], "default": None} for name, kind in _AVRO_FIELDS),
            {"name": "version", "type": "int", "default": _ROW_VERSION},
        ],
    }
)
# Hudi's reader resolves a file by the Avro schema in its footer.
SCHEMA: Final = pa.schema(
    [
        *(pa.field(name, pa.string() if kind == "string" else pa.binary()) for name, kind in _AVRO_FIELDS),
        pa.field("version", pa.int32(), nullable=False),
    ]
)


def append_actions(
    storage: Storage, directory: str, actions: Sequence[ArchivedAction], known: Sequence[str], version: int | None
) -> None:
    """Adds the actions to the files `known` of manifest `version`, None if there is none yet."""
    times = [action.completed.requested_time for action in actions]
    name = f"{min(times)}_{max(times)}_{_LEVEL}.parquet"
    storage.put(f"{directory}/{name}", encode_actions(actions))
    publish(storage, directory, [*(known_name for known_name in known if known_name != name), name], version)


def encode_actions(actions: Sequence[ArchivedAction]) -> bytes:
    """A file with a row for each action."""
    return encode_rows([pa.Table.from_pylist([_row(action) for action in actions], SCHEMA)])


def publish(storage: Storage, directory: str, names: Iterable[str], version: int | None) -> None:
    """Makes these the current files, after manifest `version`."""
    manifest = {"files": [{"fileName": name, "fileLen": _size(storage, f"{directory}/{name}")} for name in names]}
    number = (version or 0) + 1
    storage.put(f"{directory}/{manifest_name(number)}", json.dumps(manifest, indent=2).encode())
    storage.put(f"{directory}/{VERSION_NAME}", str(number).encode())


def encode_rows(tables: Iterable[pa.Table]) -> bytes:
    """A file with the rows of these tables, which have the columns of SCHEMA."""
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, SCHEMA, compression="gzip") as writer:
        waiting: list[pa.Table] = []
        for table in tables:
            waiting.append(table)
            if sum(known.nbytes for known in waiting) >= _ROW_GROUP_BYTES_MAX:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        writer.add_key_value_metadata({"parquet.avro.schema": _AVRO_SCHEMA})
    return stream.getvalue()


def remove_old(
    storage: Storage, directory: str, merges: int, named_by: Callable[[int], Iterable[str]], lease: Lease
) -> None:
    """Keeps the last manifests, one more for each of the `merges`, and the files that they name."""
    entries = {entry.path.rpartition("/")[2]: entry.path for entry in storage.list(directory)}
    versions = {name: version for name in entries if (version := manifest_version(name)) is not None}
    kept = sorted(versions.values(), reverse=True)[: _MANIFESTS_KEPT + merges]
    if len(kept) == len(versions):
        return
    named = {name for version in kept for name in named_by(version)}
    old = [name for name, version in versions.items() if version not in kept]
    unnamed = [name for name in entries if HistoryFileName.parse(name) is not None and name not in named]
    for name in (*old, *unnamed):
        lease.check()
        storage.delete(entries[name])


def _row(action: ArchivedAction) -> dict[str, object]:
    plans = [
        file.data
        for file in action.files
        if file.instant.state is State.REQUESTED and file.instant.action in _WITH_PLAN and file.data
    ]
    completed = [file.data for file in action.files if file.instant.is_completed]
    return {
        "instantTime": action.completed.requested_time,
        "completionTime": action.completed.completion_time,
        "action": str(action.completed.action),
        "metadata": completed[0] if completed else None,
        "plan": plans[0] if plans else None,
        "version": _ROW_VERSION,
    }


def _size(storage: Storage, path: str) -> int:
    info = storage.stat(path)
    return 0 if info is None else info.size

"""Adds to the archived timeline of version 8 and later: one Parquet file per call, then the manifest that names it.

Order of writes: the file, `manifest_<N + 1>`, `_version_`. No reader reads the first two before `_version_` names the
manifest, so a second run can replace the files that a crash left. A row contains the completed file of an action unchanged.
For a clean, a compaction or a clustering, it also contains the requested file as the plan.
"""

import io
import json
from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_core.ports import ArchivedAction, Storage
from eventide_core.table.archived_timeline import VERSION_NAME, manifest_name
from eventide_core.table.instant import Action, State

_WITH_PLAN: Final = frozenset((Action.CLEAN, Action.COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT))
_LEVEL: Final = 0  # the level of files that no merge has written
_ROW_VERSION: Final = 1
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
_SCHEMA: Final = pa.schema(
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
    storage.put(f"{directory}/{name}", _file(actions))
    files = [*(known_name for known_name in known if known_name != name), name]
    manifest = {"files": [{"fileName": found, "fileLen": _size(storage, f"{directory}/{found}")} for found in files]}
    number = (version or 0) + 1
    storage.put(f"{directory}/{manifest_name(number)}", json.dumps(manifest, indent=2).encode())
    storage.put(f"{directory}/{VERSION_NAME}", str(number).encode())


def _file(actions: Sequence[ArchivedAction]) -> bytes:
    rows = pa.Table.from_pylist([_row(action) for action in actions], _SCHEMA)
    stream = io.BytesIO()
    with pq.ParquetWriter(stream, _SCHEMA, compression="gzip") as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"parquet.avro.schema": _AVRO_SCHEMA})
    return stream.getvalue()


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

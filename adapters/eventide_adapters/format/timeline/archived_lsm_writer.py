"""Writes the archived timeline of version 8 and later: a Parquet file, then the manifest that names it.

Order of writes: the file, `manifest_<N + 1>`, `_version_`. N is the last manifest that exists, whatever `_version_`
contains. A row contains the completed file of an action unchanged. For a clean, a compaction or a clustering, it also
contains the requested file as the plan.

A process may be paused before each of these writes until others have archived beyond it (docs/architecture.md, "Paused
processes"). So no file is replaced but `_version_`: the file of a crash is used again if it has the same content, and
otherwise the name gets a wider range. If a process lost the lock while it put `_version_`, it raises it to the last
manifest. No process lowers it.

A merge writes the rows of several files into one, in the same order of writes, and removes nothing. `remove_old` removes
what only manifests name that are no longer kept: the manifests first, then the files, as Hudi does. So a manifest that
exists never names a file that doesn't. A file that no manifest has named stays while its name may be made again.
"""

import io
import json
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.timeline.container import schema_definition
from eventide_core.errors import BusyError, CorruptTimelineError, LockError
from eventide_core.ports import ArchivedAction, Lease, Storage
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.archived_timeline import (
    VERSION_NAME,
    HistoryFileName,
    history_file,
    manifest_name,
    manifest_version,
    manifest_versions,
    may_be_made_again,
)
from eventide_core.table.timeline.instant import Action, State

_WITH_PLAN: Final = frozenset((Action.CLEAN, Action.COMPACTION, Action.CLUSTERING, Action.REPLACE_COMMIT))
_LEVEL: Final = 0  # the level of files that no merge has written
_ROW_VERSION: Final = 1
_ROW_GROUP_BYTES_MAX: Final = 16 * 1024 * 1024  # a reader of one commit's metadata decodes one row group
_MANIFESTS_KEPT: Final = 3  # as in Hudi
# Hudi's reader resolves a file by the Avro schema in its footer.
_AVRO_SCHEMA: Final = AvroSchema.of(json.dumps(schema_definition("lsm_timeline_instant")))
SCHEMA: Final = arrow_schema(_AVRO_SCHEMA)


def append_actions(
    storage: Storage, directory: str, actions: Sequence[ArchivedAction], known: Sequence[str], lease: Lease
) -> None:
    """Adds the actions to the current files `known`."""
    file = history_file((action.completed.requested_time for action in actions), _LEVEL)
    name = put_file(storage, directory, file, encode_actions(actions), lease)
    publish(storage, directory, [*known, name], lease)


def put_file(storage: Storage, directory: str, file: HistoryFileName, data: bytes, lease: Lease) -> str:
    """Puts the file under its name, or under one of a wider range if a crash left another content there."""
    lease.check()
    path = f"{directory}/{file.name}"
    if storage.put_if_absent(path, data) or storage.read(path) == data:
        return file.name
    return put_file(storage, directory, file.widened, data, lease)


def encode_actions(actions: Sequence[ArchivedAction]) -> bytes:
    """A file with a row for each action."""
    return encode_rows([pa.Table.from_pylist([_row(action) for action in actions], SCHEMA)])


def publish(storage: Storage, directory: str, names: Iterable[str], lease: Lease) -> None:
    """Makes these the current files. Raises BusyError if another writer publishes others at the same time."""
    manifest = {"files": [{"fileName": name, "fileLen": _size(storage, f"{directory}/{name}")} for name in names]}
    number = _last_manifest(storage, directory) + 1
    path = f"{directory}/{manifest_name(number)}"
    lease.check()
    if not storage.put_if_absent(path, json.dumps(manifest, indent=2).encode()):
        raise BusyError(f"another writer put {path} at the same time; try again")
    raise_version(storage, directory, number, lease)


def raise_version(storage: Storage, directory: str, number: int, lease: Lease) -> None:
    """Makes `_version_` name this manifest, the last one."""
    path = f"{directory}/{VERSION_NAME}"
    lease.check()
    storage.put(path, str(number).encode())
    try:
        lease.check()
    except LockError:
        while (last := _last_manifest(storage, directory)) > number:
            number = last
            storage.put(path, str(number).encode())
        raise


def _last_manifest(storage: Storage, directory: str) -> int:
    return max(manifest_versions(entry.path for entry in storage.list(directory)), default=0)


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
        writer.add_key_value_metadata({"parquet.avro.schema": _AVRO_SCHEMA.text})
    return stream.getvalue()


def remove_old(
    storage: Storage,
    directory: str,
    merges: int,
    current: Collection[HistoryFileName],
    files_of: Callable[[int], Iterable[HistoryFileName]],
    lease: Lease,
) -> None:
    """Keeps the last manifests, one more for each of the `merges`, and the files that they name."""
    entries = {entry.path.rpartition("/")[2]: entry.path for entry in storage.list(directory)}
    versions = {name: version for name in entries if (version := manifest_version(name)) is not None}
    kept = sorted(versions.values(), reverse=True)[: _MANIFESTS_KEPT + merges]
    if len(kept) == len(versions):
        return
    named: set[str] = set()
    for version in kept:
        with suppress(CorruptTimelineError):  # Hudi died while it wrote the manifest; nobody reads it
            named.update(file.name for file in files_of(version))
    old = [name for name, version in versions.items() if version not in kept]
    files = [file for name in entries if (file := HistoryFileName.parse(name)) is not None and name not in named]
    unnamed = [file.name for file in files if not may_be_made_again(file, current)]
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

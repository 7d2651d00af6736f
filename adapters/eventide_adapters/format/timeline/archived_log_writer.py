"""Adds to the archived timeline of version 6: one log file per call, with one block of HoodieArchivedMetaEntry per action.

The blocks are Avro blocks. Each state of an action is an entry, as in Hudi's archives. Values without a field in the schema
of an entry are omitted: the log version and the slice's files in a log file's write stat, and eventide's additions to a
plan.
"""

import io
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro
from fastavro.types import Schema

from eventide_adapters.format.timeline.codec import read_json
from eventide_adapters.format.timeline.container import MAGIC, read_container, schema_definition
from eventide_adapters.format.timeline.document import corrupt
from eventide_core.errors import EventideError
from eventide_core.ports import ArchivedAction, ArchivedFile
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.timeline.instant import COMPLETED_ACTION, Action, State, instant_time

_DEFINITION: Final = schema_definition("archived_entry")
_SCHEMA: Final[Schema] = fastavro.parse_schema(_DEFINITION)
_CONTENT_VERSION: Final = 3
_NOTHING: Final[Mapping[str, Any]] = {"partitionToWriteStats": {}, "extraMetadata": {}, "operationType": "UNKNOWN"}
_OF_WRITES: Final = frozenset(("hoodieCommitMetadata", "hoodieReplaceCommitMetadata"))
_FIELD_OF: Final[Mapping[tuple[Action, bool], str]] = {
    (Action.COMMIT, True): "hoodieCommitMetadata",
    (Action.COMMIT, False): "hoodieCommitMetadata",
    (Action.DELTA_COMMIT, True): "hoodieCommitMetadata",
    (Action.DELTA_COMMIT, False): "hoodieCommitMetadata",
    (Action.REPLACE_COMMIT, True): "hoodieReplaceCommitMetadata",
    (Action.COMPACTION, False): "hoodieCompactionPlan",
    (Action.LOG_COMPACTION, False): "hoodieCompactionPlan",
    (Action.CLEAN, True): "hoodieCleanMetadata",
    (Action.CLEAN, False): "hoodieCleanerPlan",
    (Action.ROLLBACK, True): "hoodieRollbackMetadata",
}


def encode_archive_log(actions: Sequence[ArchivedAction]) -> bytes:
    """The bytes of a log file with these actions."""
    header = {HeaderKey.SCHEMA: json.dumps(_DEFINITION)}
    return b"".join(encode_block(BlockType.AVRO_DATA, header, _content(action)) for action in actions)


def _content(action: ArchivedAction) -> bytes:
    requested = next((file.data for file in action.files if file.instant.state is State.REQUESTED), b"")
    body = io.BytesIO()
    body.write(struct.pack(">ii", _CONTENT_VERSION, len(action.files)))
    for file in action.files:
        record = _record(file, requested)
        body.write(struct.pack(">i", len(record)))
        body.write(record)
    return body.getvalue()


def _record(file: ArchivedFile, requested: bytes) -> bytes:
    """The entry of a state. Raises CorruptTimelineError for a completed file that states something else than its action.

    A pending file that does, or that lacks its plan, becomes an entry without content: the action has completed, and no
    reader asks what it had planned.
    """
    entry: dict[str, Any] = {
        "commitTime": file.instant.requested_time,
        "actionType": str(file.instant.action),
        "actionState": str(file.instant.state).upper(),
        "stateTransitionTime": instant_time(file.modified_ms),
    }
    try:
        return _encoded(entry | _stated(file, requested))
    except Exception as error:  # fastavro raises any exception for values that don't fit a schema
        if not file.instant.is_completed:
            return _encoded(entry)
        if isinstance(error, EventideError):
            raise
        raise corrupt(file.instant.file_name, f"does not state what a {file.instant.action} did ({error})") from error


def _stated(file: ArchivedFile, requested: bytes) -> dict[str, Any]:
    """The field of the entry with what the file states: none for an empty file, unless it is of a write."""
    name = _FIELD_OF.get((file.instant.action, file.instant.is_completed))
    # The inflight file of a plan is empty: the requested file has its content.
    is_plan = file.instant.action in (*COMPLETED_ACTION, Action.CLEAN)
    data = requested if is_plan and not file.instant.is_completed else file.data
    if name is None or not (data or name in _OF_WRITES):
        return {}
    return {name: _given(_values(data, file.instant.file_name))}


def _encoded(entry: Mapping[str, Any]) -> bytes:
    record = io.BytesIO()
    fastavro.schemaless_writer(record, _SCHEMA, entry)
    return record.getvalue()


def _values(data: bytes, path: str) -> Mapping[str, Any]:
    if not data:
        return _NOTHING
    return (read_container(data, path) if data.startswith(MAGIC) else read_json(data, path)).values


def _given(value: Any) -> Any:
    """The value without nulls, in whose place the writer puts the default of a field."""
    if isinstance(value, dict):
        return {key: _given(part) for key, part in value.items() if part is not None}
    return [_given(item) for item in value] if isinstance(value, list) else value

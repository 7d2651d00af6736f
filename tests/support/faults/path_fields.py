"""Every field of the timeline's documents that names a path on which something acts.

Each field states how to put a string there, what is decoded from it, and which paths an engine that trusts it would
touch.
"""

import io
import json
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro

from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    ForeignPlan,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)
from eventide_core.table.timeline.contents.rollback_metadata import (
    RestorePlan,
    RollbackPlan,
    RollbackRequest,
    RollbackTarget,
)
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.instant import Action

CODEC = HudiMetadataCodec()
INSTANT = "20991121000000000"
EARLY = "20980101000000000"
PARTITION = "part=a"
FILE_ID = "00000000-0000-4000-8000-000000009999-0"
BASE, NEW_BASE = (str(BaseFileName(FILE_ID, "0-0-0", instant)) for instant in (EARLY, INSTANT))
MERGED, LEFT = (str(LogFileName(FILE_ID, EARLY, version, "0-0-0")) for version in (1, 2))
LINKED, CARRIED = (str(LogFileName(FILE_ID, INSTANT, 0, f"0000{number}-0-1")) for number in (1, 0))
CLEAN, ROLLBACK, SAVEPOINT, RESTORE, COMPACTION = (
    ".clean.requested",
    ".rollback.requested",
    ".savepoint",
    ".restore.requested",
    ".compaction.requested",
)

Change = Callable[[Any, str], None]


@dataclass(frozen=True, slots=True)
class PathField:
    """A field. `proper` is its value in a correct document; `change` puts another string there."""

    document: str
    name: str
    proper: str
    change: Change

    def __str__(self) -> str:
        return f"{self.document.strip('.')} {self.name}"

    def bytes_with(self, text: str) -> bytes:
        """The document with that string. Raises UnicodeEncodeError if the document cannot contain it."""
        schema, good = _good(self.document)
        record = deepcopy(good)
        self.change(record, text)
        out = io.BytesIO()
        fastavro.writer(out, schema, [record])
        return out.getvalue()

    def touched_by(self, data: bytes) -> frozenset[str]:
        """The paths that an engine that trusts the document would use. Raises the errors of decoding."""
        return frozenset(_TOUCHED[self.document](data, f".hoodie/timeline/{INSTANT}{self.document}"))


@cache
def _good(document: str) -> tuple[Any, Any]:
    reader: Any = fastavro.reader(io.BytesIO(good_bytes(document)))
    return fastavro.parse_schema(reader.writer_schema), next(reader)


def good_bytes(document: str) -> bytes:
    """A document that could be one of the table's own."""
    target = RollbackTarget(EARLY, Action.DELTA_COMMIT)
    if document == CLEAN:
        plan = CleanPlan(INSTANT, CleaningPolicy.COMMITS, None, "", {PARTITION: (BASE,)})
        return CODEC.encode_clean_plan(plan, "file:///lake")
    if document == ROLLBACK:
        deleted = RollbackRequest(PARTITION, FILE_ID, EARLY, (BASE,))
        rolled_back = RollbackRequest(PARTITION, FILE_ID, EARLY, log_blocks={MERGED: 7})
        return CODEC.encode_rollback_plan(RollbackPlan(INSTANT, target, (rolled_back, deleted)), "file:///lake")
    if document == SAVEPOINT:
        return CODEC.encode_savepoint(SavepointMetadata("somebody", 1, "", {PARTITION: (BASE,)}))
    if document == RESTORE:
        return CODEC.encode_restore_plan(RestorePlan(INSTANT, EARLY, (target,)))
    return CODEC.encode_plan(_plan())


def _plan() -> CompactionPlan:
    operation = PlannedOperation(
        partition=PARTITION,
        file_id=FILE_ID,
        base_instant=EARLY,
        base_path=f"{PARTITION}/{BASE}",
        base_size=1,
        compacted=(PlannedLog(f"{PARTITION}/{MERGED}", 1, None),),
        left_overs=(LeftOver(PlannedLog(f"{PARTITION}/{LEFT}", 1, None), LINKED),),
        new_base_name=NEW_BASE,
        carried_name=CARRIED,
        fallback=None,
        reason="",
    )
    schema = AvroSchema.of('"string"')
    return CompactionPlan(INSTANT, (operation,), schema, LinkMode.COPY, "", 1, event_time_field="ms")


def _touched_by_clean(data: bytes, path: str) -> Iterable[str]:
    return CODEC.decode_clean_plan(data, path, INSTANT).deleted_paths


def _touched_by_rollback(data: bytes, path: str) -> Iterable[str]:
    plan = CODEC.decode_rollback_plan(data, path, INSTANT)
    yield from plan.deleted_paths
    yield from _markers_and_heartbeats(plan.target)
    for request in plan.requests:
        yield from map(request.path_of, request.log_blocks)
        if request.log_blocks or request.rolls_back_blocks:
            yield request.path_of(str(LogFileName(request.file_id, request.base_instant, 9, "1-0-1")))


def _touched_by_savepoint(data: bytes, path: str) -> Iterable[str]:
    return CODEC.decode_savepoint(data, path).paths


def _touched_by_restore(data: bytes, path: str) -> Iterable[str]:
    for target in CODEC.decode_restore_plan(data, path, INSTANT).targets:
        yield from _markers_and_heartbeats(target)


def _markers_and_heartbeats(target: RollbackTarget) -> Iterable[str]:
    return f".hoodie/.temp/{target.instant}", f".hoodie/.heartbeat/{target.instant}"


def _touched_by_compaction(data: bytes, path: str) -> Iterable[str]:
    plan = CODEC.decode_plan(data, path, INSTANT)
    if isinstance(plan, ForeignPlan):
        yield from plan.paths
        return
    for op in plan.operations:
        yield from (log.path for log in (*op.compacted, *(left.log_file for left in op.left_overs)))
        yield from map(op.path_of, (op.new_base_name, *op.new_log_names))
        yield from (op.base_path,) if op.base_path else ()


_TOUCHED: dict[str, Callable[[bytes, str], Iterable[str]]] = {
    CLEAN: _touched_by_clean,
    ROLLBACK: _touched_by_rollback,
    SAVEPOINT: _touched_by_savepoint,
    RESTORE: _touched_by_restore,
    COMPACTION: _touched_by_compaction,
}


def _set(*way: str | int) -> Change:
    """Puts the string at the position that keys and numbers give."""

    def change(record: Any, text: str) -> None:
        for step in way[:-1]:
            record = record[step]
        record[way[-1]] = text

    return change


def _renamed(*way: str | int) -> Change:
    """Makes the string the only key of a mapping."""

    def change(record: Any, text: str) -> None:
        for step in way[:-1]:
            record = record[step]
        record[way[-1]] = dict.fromkeys((text,), *record[way[-1]].values())

    return change


def _in_details(*way: str | int) -> Change:
    """The same within the JSON that eventide keeps beside Hudi's fields."""
    return _in_extra("eventide.operations", _set("eventide.operations", 0, *way))


def _in_extra(key: str, change: Change) -> Change:
    """The change of the JSON that has that key."""

    def changed(record: Any, text: str) -> None:
        extra = {key: json.loads(record["extraMetadata"][key])}
        change(extra, text)
        record["extraMetadata"][key] = json.dumps(extra[key])

    return changed


def _foreign(change: Change) -> Change:
    def changed(record: Any, text: str) -> None:
        record["extraMetadata"].clear()
        change(record, text)

    return changed


_OPERATION = ("operations", 0)
_LINK = (*_OPERATION, "symlinkOperations", 0)
_DELETED = "eventide.deleted"
_OF_OPERATIONS = (
    ("partitionPath", PARTITION, _set(*_OPERATION, "partitionPath")),
    ("deltaFilePaths", MERGED, _set(*_OPERATION, "deltaFilePaths", 0)),
    ("dataFilePath", BASE, _set(*_OPERATION, "dataFilePath")),
)

FIELDS = (
    PathField(CLEAN, "partition", PARTITION, _in_extra(_DELETED, _renamed(_DELETED))),
    PathField(CLEAN, "file", BASE, _in_extra(_DELETED, _set(_DELETED, PARTITION, 0))),
    PathField(CLEAN, "partition of Hudi", PARTITION, _foreign(_renamed("filePathsToBeDeletedPerPartition"))),
    PathField(
        CLEAN, "file of Hudi", BASE, _foreign(_set("filePathsToBeDeletedPerPartition", PARTITION, 0, "filePath"))
    ),
    PathField(ROLLBACK, "commitTime", EARLY, _set("instantToRollback", "commitTime")),
    PathField(ROLLBACK, "partitionPath", PARTITION, _set("RollbackRequests", 1, "partitionPath")),
    PathField(ROLLBACK, "filesToBeDeleted", BASE, _set("RollbackRequests", 1, "filesToBeDeleted", 0)),
    PathField(ROLLBACK, "fileId", FILE_ID, _set("RollbackRequests", 0, "fileId")),
    PathField(ROLLBACK, "latestBaseInstant", EARLY, _set("RollbackRequests", 0, "latestBaseInstant")),
    PathField(ROLLBACK, "logBlocksToBeDeleted", MERGED, _renamed("RollbackRequests", 0, "logBlocksToBeDeleted")),
    PathField(SAVEPOINT, "partition", PARTITION, _renamed("partitionMetadata")),
    PathField(SAVEPOINT, "file", BASE, _set("partitionMetadata", PARTITION, "savepointDataFile", 0)),
    PathField(RESTORE, "commitTime", EARLY, _set("instantsToRollback", 0, "commitTime")),
    *(PathField(COMPACTION, name, proper, change) for name, proper, change in _OF_OPERATIONS),
    *(PathField(COMPACTION, f"{name} of Hudi", proper, _foreign(change)) for name, proper, change in _OF_OPERATIONS),
    PathField(COMPACTION, "fileId", FILE_ID, _set(*_OPERATION, "fileId")),
    PathField(COMPACTION, "symlink", LINKED, _set(*_LINK, "symlink")),
    PathField(COMPACTION, "target", LEFT, _set(*_LINK, "target")),
    PathField(COMPACTION, "linked", LINKED, _in_details("remaining", 0, "linked")),
    PathField(COMPACTION, "left-over", LEFT, _in_details("remaining", 0, "name")),
    PathField(COMPACTION, "merged log", MERGED, _in_details("compacted", 0, "name")),
    PathField(COMPACTION, "new base", NEW_BASE, _in_details("new_base")),
    PathField(COMPACTION, "carried", CARRIED, _in_details("carried")),
)

"""The plans and metadata of rollbacks, savepoints and restores <-> Hudi's records of them, Avro object containers.

    version 6      paths are URIs (`file:/lake/trips/part=a/x.parquet`)
    8 and later    paths without a scheme (`/lake/trips/part=a/x.parquet`)

Hudi accepts either form when it executes a plan. A decoder uses only the file name of a path, and accepts it only if it is
the name of a base or log file; the partition is in a separate field.
"""

from collections.abc import Mapping
from typing import Any

from eventide_adapters.format.timeline.container import ContainerSchema, read_container, write_container
from eventide_adapters.format.timeline.document import Document, without_plan
from eventide_adapters.format.timeline.stored_names import checked_partition, data_file_names, name_in, own_name
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import LogFileName, is_data_file
from eventide_core.table.timeline.contents.rollback_metadata import (
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RollbackTarget,
    RolledBackPartition,
)
from eventide_core.table.timeline.contents.savepoint_metadata import SavepointMetadata
from eventide_core.table.timeline.instant import Action, is_instant_time

_PLAN = ContainerSchema.named("rollback_plan")
_METADATA = ContainerSchema.named("rollback_metadata")
_SAVEPOINT = ContainerSchema.named("savepoint_metadata")
_RESTORE_PLAN = ContainerSchema.named("restore_plan")
_RESTORE = ContainerSchema.named("restore_metadata")


def encode_rollback_plan(plan: RollbackPlan, root: str) -> bytes:
    """The bytes of `<instant>.rollback.requested`; `root` is the table's URI."""
    record = {
        "instantToRollback": target_record(plan.target),
        "RollbackRequests": [
            {
                "partitionPath": request.partition,
                "fileId": request.file_id,
                "latestBaseInstant": request.base_instant,
                "filesToBeDeleted": [absolute_path(root, request.path_of(name)) for name in request.deleted],
                "logBlocksToBeDeleted": dict(request.log_blocks),
            }
            for request in plan.requests
        ],
    }
    return write_container(_PLAN, record)


def decode_rollback_plan(data: bytes, path: str, instant: str) -> RollbackPlan:
    """The plan of the rollback requested at `instant`. Raises CorruptTimelineError, UnsafePathError."""
    if not data:
        raise without_plan(path, instant)
    document = read_container(data, path)
    return RollbackPlan(
        instant,
        decode_target(document.document("instantToRollback")),
        tuple(_decode_request(request, path) for request in document.documents("RollbackRequests")),
    )


def encode_rollback(metadata: RollbackMetadata, root: str) -> bytes:
    """The bytes of a completed rollback."""
    return write_container(_METADATA, rollback_record(metadata, root))


def rollback_record(metadata: RollbackMetadata, root: str) -> dict[str, Any]:
    """A HoodieRollbackMetadata; a completed restore contains one for each instant."""
    return {
        "startRollbackTime": metadata.instant,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(len(part.deleted) for part in metadata.partitions.values()),
        "commitsRollback": [target.instant for target in metadata.targets],
        "partitionMetadata": {
            partition: _partition_record(partition, part, root) for partition, part in metadata.partitions.items()
        },
        "instantsRollback": [target_record(target) for target in metadata.targets],
    }


def decode_rollback(data: bytes, path: str) -> RollbackMetadata:
    """The metadata of a completed rollback. Raises CorruptTimelineError."""
    document = read_container(data, path)
    partitions = document.document("partitionMetadata")
    return RollbackMetadata(
        document.required_text("startRollbackTime"),
        tuple(decode_target(target) for target in document.documents("instantsRollback")),
        {partition: _decode_partition(partitions.document(partition)) for partition in partitions.values},
    )


def absolute_path(root: str, path: str) -> str:
    """A table's path in the form of Hudi's plans and metadata: a local path without its scheme."""
    whole = f"{root.rstrip('/')}/{path}"
    return whole.removeprefix("file://")


def target_record(target: RollbackTarget) -> dict[str, str]:
    """A HoodieInstantInfo."""
    return {"commitTime": target.instant, "action": str(target.action)}


def decode_target(document: Document) -> RollbackTarget:
    action = document.member("action", Action, "an action of a timeline")
    instant = document.required_text("commitTime")
    if not is_instant_time(instant):
        raise document.wrong("commitTime", "the time of an instant")
    return RollbackTarget(instant, action)


def _decode_request(request: Document, path: str) -> RollbackRequest:
    blocks = request.document("logBlocksToBeDeleted")
    file_id, base_instant = request.text("fileId") or "", request.text("latestBaseInstant") or ""
    if blocks.values:
        # The log file that rolls back the blocks gets its name from these two.
        own_name(str(LogFileName(file_id, base_instant, 1)), LogFileName.parse, file_id, path, base_instant)
    # A write that died had not recorded yet which log files it appends to. If Hudi looks for them without markers, its plan
    # joins the table's path and an empty one. The command block goes into the slice all the same.
    named_logs = [key for key in blocks.values if not _is_no_file(key)]
    return RollbackRequest(
        partition=checked_partition(request.text("partitionPath") or "", path),
        file_id=file_id,
        base_instant=base_instant,
        deleted=data_file_names(request.texts("filesToBeDeleted"), path),
        log_blocks={name: blocks.count(key) for key in named_logs for name in data_file_names((key,), path)},
        rolls_back_blocks=bool(blocks.values) and not named_logs,
    )


def _is_no_file(path: str) -> bool:
    """Whether it is a directory's whole path, such as the table's own, which nobody opens."""
    return ("/" in path or not path) and not is_data_file(name_in(path)) and not name_in(path).startswith(".")


def _partition_record(partition: str, part: RolledBackPartition, root: str) -> dict[str, Any]:
    directory = f"{partition}/" if partition else ""
    return {
        "partitionPath": partition,
        "successDeleteFiles": [absolute_path(root, directory + name) for name in part.deleted],
        "failedDeleteFiles": [],
        "rollbackLogFiles": {absolute_path(root, directory + name): size for name, size in part.rollback_logs.items()},
        "logFilesFromFailedCommit": dict(part.failed_logs),
    }


def _decode_partition(document: Document) -> RolledBackPartition:
    return RolledBackPartition(
        deleted=tuple(map(name_in, document.texts("successDeleteFiles"))),
        rollback_logs=_sizes(document.document("rollbackLogFiles")),
        failed_logs=_sizes(document.document("logFilesFromFailedCommit")),
    )


def _sizes(document: Document) -> Mapping[str, int]:
    return {name_in(path): document.count(path) for path in document.values}


def encode_savepoint(metadata: SavepointMetadata) -> bytes:
    """The bytes of a completed savepoint."""
    record = {
        "savepointedBy": metadata.saved_by,
        "savepointedAt": metadata.saved_at_ms,
        "comments": metadata.comments,
        "partitionMetadata": {
            partition: {"partitionPath": partition, "savepointDataFile": list(names)}
            for partition, names in metadata.files.items()
        },
    }
    return write_container(_SAVEPOINT, record)


def decode_savepoint(data: bytes, path: str) -> SavepointMetadata:
    """What a savepoint keeps. Raises CorruptTimelineError, UnsafePathError."""
    if not data:
        raise CorruptTimelineError(
            f"timeline file {path} is empty, so the savepoint keeps nothing; delete it "
            f"({Cure.delete_savepoint(path.rpartition('/')[2].partition('.')[0].partition('_')[0])}), and make it again"
        )
    document = read_container(data, path)
    partitions = document.document("partitionMetadata")
    return SavepointMetadata(
        document.text("savepointedBy") or "",
        document.count("savepointedAt"),
        document.text("comments") or "",
        {
            checked_partition(partition, path): data_file_names(
                partitions.document(partition).texts("savepointDataFile"), path
            )
            for partition in partitions.values
        },
    )


def encode_restore_plan(plan: RestorePlan) -> bytes:
    """The bytes of `<instant>.restore.requested`."""
    record = {
        "instantsToRollback": [target_record(target) for target in plan.targets],
        "savepointToRestoreTimestamp": plan.savepoint,
    }
    return write_container(_RESTORE_PLAN, record)


def decode_restore_plan(data: bytes, path: str, instant: str) -> RestorePlan:
    """The plan of the restore requested at `instant`. Raises CorruptTimelineError."""
    if not data:
        raise without_plan(path, instant)
    document = read_container(data, path)
    targets = tuple(decode_target(target) for target in document.documents("instantsToRollback"))
    return RestorePlan(instant, document.text("savepointToRestoreTimestamp"), targets)


def encode_restore(metadata: RestoreMetadata, root: str) -> bytes:
    """The bytes of a completed restore; `root` is the table's URI."""
    record = {
        "startRestoreTime": metadata.instant,
        "timeTakenInMillis": 0,
        "instantsToRollback": [target.instant for done in metadata.rollbacks for target in done.targets],
        "hoodieRestoreMetadata": {
            target.instant: [rollback_record(done, root)] for done in metadata.rollbacks for target in done.targets
        },
        "restoreInstantInfo": [target_record(target) for done in metadata.rollbacks for target in done.targets],
    }
    return write_container(_RESTORE, record)

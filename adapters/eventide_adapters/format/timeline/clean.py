"""A clean's plan and metadata <-> Hudi's HoodieCleanerPlan and HoodieCleanMetadata, Avro object containers.

Hudi runs every pending clean as it is planned: it would delete what a savepoint keeps by now. So a plan of eventide names
its files where Hudi doesn't look, in its extra metadata. For Hudi it has one that never exists: without any, its cleaner
fails. Nor is its limit Hudi's: Hudi's archival passes what replaced file groups before the limit of the last clean, and
readers would show their rows again while their files are there.

Hudi's plans contain absolute paths, the metadata bare names. As in `rollback`, a decoder uses only the file name of a path,
and accepts it only if it is the name of a base or log file.
"""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from eventide_adapters.format.timeline.container import ContainerSchema, read_container, write_container
from eventide_adapters.format.timeline.document import Document, corrupt
from eventide_adapters.format.timeline.rollback import absolute_path
from eventide_adapters.format.timeline.stored_names import checked_partition, data_file_names
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import BaseFileName, path_in
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.instant import Action, Instant, State

_PLAN = ContainerSchema.named("cleaner_plan")
_METADATA = ContainerSchema.named("clean_metadata")
_SAVEPOINTS_KEY = "savepointed_timestamps"
_DELETED_KEY = "eventide.deleted"
_RETAINED_KEY = "eventide.earliest.to.retain"
_NO_FILE_GROUP = f"{UUID(int=0)}-0"
_VERSION = 2  # the version of Hudi's plans and metadata: a plan has its paths in `filePathsToBeDeletedPerPartition`


def encode_clean_plan(plan: CleanPlan, root: str) -> bytes:
    """The bytes of `<instant>.clean.requested`; `root` is the table's URI."""
    nothing = str(BaseFileName(_NO_FILE_GROUP, "0-0-0", plan.instant))
    earliest, until = plan.earliest_to_retain, plan.cleaned_until
    own = {_DELETED_KEY: json.dumps(plan.deleted, default=dict)}
    if earliest is not None:
        own[_RETAINED_KEY] = earliest.requested_time
    record: dict[str, Any] = {
        "earliestInstantToRetain": None
        if until is None
        else {
            "timestamp": until.requested_time,
            "action": str(until.action),
            "state": str(until.state).upper(),
        },
        "lastCompletedCommitTimestamp": plan.last_completed,
        "policy": str(plan.policy),
        "filesToBeDeletedPerPartition": {},
        "version": _VERSION,
        "filePathsToBeDeletedPerPartition": {
            partition: [{"filePath": absolute_path(root, path_in(partition, nothing)), "isBootstrapBaseFile": False}]
            for partition in list(plan.deleted)[:1]
        },
        "partitionsToBeDeleted": [],
        "extraMetadata": _extra(plan.savepoints) | own,
    }
    return write_container(_PLAN, record)


def decode_clean_plan(data: bytes, path: str, instant: str) -> CleanPlan:
    """The plan of the clean requested at `instant`. Raises CorruptTimelineError, UnsafePathError."""
    if not data:
        raise CorruptTimelineError(
            f"timeline file {path} is empty, though it should hold a plan; {Cure.clean()} removes it when its process "
            "counts as dead, and finds the same files again"
        )
    document = read_container(data, path)
    limit = document.document("earliestInstantToRetain")
    until = _instant(limit) if limit.values else None
    own = _own(document)
    retained = document.document("extraMetadata").text(_RETAINED_KEY)
    files = document.document("filePathsToBeDeletedPerPartition")
    named = {part: tuple(file.required_text("filePath") for file in files.documents(part)) for part in files.values}
    return CleanPlan(
        instant,
        document.member("policy", CleaningPolicy, "a cleaning policy"),
        (_completed(retained) if retained else None) if own else until,
        document.text("lastCompletedCommitTimestamp") or "",
        own or _checked(named, path),
        _savepoints(document),
        until,
    )


def encode_clean(plan: CleanPlan) -> bytes:
    """The bytes of a completed clean."""
    record = {
        "startCleanTime": plan.instant,
        "timeTakenInMillis": 0,
        "totalFilesDeleted": sum(len(names) for names in plan.deleted.values()),
        "earliestCommitToRetain": "" if plan.earliest_to_retain is None else plan.earliest_to_retain.requested_time,
        "lastCompletedCommitTimestamp": plan.last_completed,
        "partitionMetadata": {
            partition: _partition(plan, partition, names) for partition, names in plan.deleted.items()
        },
        "version": _VERSION,
        "bootstrapPartitionMetadata": {},
        "extraMetadata": _extra(plan.savepoints),
    }
    return write_container(_METADATA, record)


def decode_clean(data: bytes, path: str) -> CleanPlan:
    """The metadata of a completed clean. Raises CorruptTimelineError."""
    document = read_container(data, path)
    partitions = document.document("partitionMetadata")
    by_partition = {partition: partitions.document(partition) for partition in partitions.values}
    policies = {
        of_partition.member("policy", CleaningPolicy, "a cleaning policy") for of_partition in by_partition.values()
    }
    deleted = {partition: of_partition.texts("deletePathPatterns") for partition, of_partition in by_partition.items()}
    earliest = document.text("earliestCommitToRetain")
    return CleanPlan(
        document.required_text("startCleanTime"),
        next(iter(policies), CleaningPolicy.COMMITS),
        _completed(earliest) if earliest else None,
        document.text("lastCompletedCommitTimestamp") or "",
        deleted,
        _savepoints(document),
        # Hudi 0.14 doesn't copy the extra metadata.
        is_left=any(_NO_FILE_GROUP in name for names in deleted.values() for name in names),
    )


def _extra(savepoints: tuple[str, ...]) -> dict[str, str]:
    return {_SAVEPOINTS_KEY: ",".join(savepoints)} if savepoints else {}


def _savepoints(document: Document) -> tuple[str, ...]:
    text = document.document("extraMetadata").text(_SAVEPOINTS_KEY)
    return tuple(text.split(",")) if text else ()


def _own(document: Document) -> dict[str, tuple[str, ...]]:
    """The files of a plan of eventide, names by partition."""
    text = document.document("extraMetadata").text(_DELETED_KEY) or "{}"
    try:
        own = Document.of(json.loads(text), document.path, _DELETED_KEY)
    except (ValueError, RecursionError) as error:
        raise corrupt(document.path, f"has {_DELETED_KEY} that is not JSON ({error})") from error
    return _checked({partition: own.texts(partition) for partition in own.values}, document.path)


def _checked(named: Mapping[str, tuple[str, ...]], path: str) -> dict[str, tuple[str, ...]]:
    return {checked_partition(partition, path): data_file_names(names, path) for partition, names in named.items()}


def _partition(plan: CleanPlan, partition: str, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "partitionPath": partition,
        "policy": str(plan.policy),
        "deletePathPatterns": list(names),
        "successDeleteFiles": list(names),
        "failedDeleteFiles": [],
        "isPartitionDeleted": False,
    }


def _completed(time: str) -> Instant:
    """Of a limit, readers use only the time."""
    return Instant(time, Action.COMMIT, State.COMPLETED)


def _instant(document: Document) -> Instant:
    """Hudi writes the action and state at that time; readers use only the time."""
    action = document.required_text("action")
    known = Action(action) if action in [str(known_action) for known_action in Action] else Action.COMMIT
    return Instant(document.required_text("timestamp"), known, State.COMPLETED)

"""A savepoint's metadata, and a restore's plan and metadata <-> Hudi's records of them, Avro object containers."""

from eventide_adapters.format.timeline.container import ContainerSchema, read_container, write_container
from eventide_adapters.format.timeline.document import without_plan
from eventide_adapters.format.timeline.rollback import decode_target, rollback_record, target_record
from eventide_adapters.format.timeline.stored_names import checked_partition, data_file_names
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError
from eventide_core.table.timeline.rollback_metadata import RestoreMetadata, RestorePlan
from eventide_core.table.timeline.savepoint_metadata import SavepointMetadata

_SAVEPOINT = ContainerSchema.named("savepoint_metadata")
_PLAN = ContainerSchema.named("restore_plan")
_RESTORE = ContainerSchema.named("restore_metadata")
_VERSION = 1
_PLAN_VERSION = 2  # Hudi's plan version: the plan names its savepoint


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
        "version": _VERSION,
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
        "version": _PLAN_VERSION,
        "savepointToRestoreTimestamp": plan.savepoint,
    }
    return write_container(_PLAN, record)


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
        "version": _VERSION,
        "restoreInstantInfo": [target_record(target) for done in metadata.rollbacks for target in done.targets],
    }
    return write_container(_RESTORE, record)

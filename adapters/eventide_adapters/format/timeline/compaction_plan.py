"""A compaction plan <-> Hudi's HoodieCompactionPlan, an Avro object container in every table version.

Hudi's own fields contain what an engine that does not support left-overs can execute safely:

    deltaFilePaths      copy, hardlink, symlink: all log files of the slice; prefix: the merged ones. No mode includes log
                        files that completed after the plan's instant: they belong to the new slice
    symlinkOperations   the left-overs {symlink: new name, target: old name}; absent with prefix. Hudi's schema
                        has no such field (it is RFC-74's): a reader of Hudi drops it
    extraMetadata       `eventide.*`: everything else, with one JSON list under `eventide.operations`

Decoding trusts no name (see `stored_names`). Values that are in two places must be equal.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eventide_adapters.format.timeline.container import (
    TIMELINE_FILE_BYTES_MAX,
    ContainerSchema,
    read_container,
    schema_definition,
    write_container,
)
from eventide_adapters.format.timeline.document import Document, corrupt
from eventide_adapters.format.timeline.stored_names import file_group, merged_paths, own_name
from eventide_core.errors import RefusedError, UnsupportedTableError
from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.compaction_extra_metadata import CUT_MODE_KEY, LINK_MODE_KEY
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    CutMode,
    FallbackReason,
    ForeignOperation,
    ForeignPlan,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)

FORMAT = "1"
_SCHEMA = ContainerSchema.named("compaction_plan")
PLAN_BYTES_MAX = TIMELINE_FILE_BYTES_MAX // 4  # in version 6, the commit of a plan is up to twice as large
_FIELDS = schema_definition("compaction_plan")["fields"]
_PLAN_FIELDS = frozenset(field["name"] for field in _FIELDS)
_OPERATION_FIELDS = frozenset(field["name"] for field in _FIELDS[0]["type"][1]["items"]["fields"])
_PLAN_VERSION = 2  # Hudi's plan version: paths are bare file names
_MEGABYTE = 1024 * 1024
_NO_BASE_WRITE_MB = 120  # Hudi assumes that a new base has `hoodie.parquet.max.file.size`
_FORMAT_KEY = "eventide.format"
_CUT_KEY = "eventide.cut_ms"
_LINK_REASON_KEY = "eventide.link.reason"
_SCHEMA_KEY = "eventide.schema"
_OPERATIONS_KEY = "eventide.operations"
_FIELD_KEY = "eventide.event.time.field"
_CUT_MS = re.compile(r"-?[0-9]{1,18}")


def encode_plan(plan: CompactionPlan) -> bytes:
    """The bytes of `<instant>.compaction.requested`.

    Raises RefusedError for a plan whose commit might be too large to read.
    """
    record = {
        "operations": [encode_operation(plan, operation) for operation in plan.operations],
        "extraMetadata": {
            _FORMAT_KEY: FORMAT,
            **({} if plan.cut_ms is None else {_CUT_KEY: str(plan.cut_ms)}),
            CUT_MODE_KEY: str(plan.cut),
            LINK_MODE_KEY: str(plan.link_mode),
            _LINK_REASON_KEY: plan.link_reason,
            **({} if plan.event_time_field is None else {_FIELD_KEY: plan.event_time_field}),
            _SCHEMA_KEY: plan.schema.text,
            _OPERATIONS_KEY: json.dumps([_encode_details(operation) for operation in plan.operations]),
        },
        "version": _PLAN_VERSION,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": list(plan.partitions_with_logs),
    }
    data = write_container(_SCHEMA, record)
    if len(data) > PLAN_BYTES_MAX:
        raise RefusedError(
            f"a plan of {len(plan.operations)} file slices would take {len(data)} bytes, but "
            f"{PLAN_BYTES_MAX} are allowed; bound it by a strategy, such as "
            "EventTimeBasedCompactionStrategy,BoundedIOCompactionStrategy"
        )
    return data


def decode_plan(data: bytes, path: str, instant: str) -> CompactionPlan | ForeignPlan:
    """The plan scheduled at `instant`; a ForeignPlan if it lacks `eventide.format`.

    Raises CorruptTimelineError for torn or contradictory bytes, UnsafePathError for a name that is not a file of
    its file group, UnsupportedTableError for a plan of a later version of eventide or Hudi.
    """
    if not data:
        raise corrupt(path, "is empty, though it should hold a plan")
    document = read_container(data, path)
    extra = document.document("extraMetadata")
    operations = tuple(document.documents("operations"))
    written = extra.text(_FORMAT_KEY)
    if written is None:
        _refuse_unknown(document, operations)
        return ForeignPlan(instant, tuple(map(_decode_foreign, operations)))
    if written != FORMAT:
        raise UnsupportedTableError(
            f"timeline file {path}: a plan of eventide format {written[:20]!r}, not {FORMAT}; use a newer eventide"
        )
    details = _details(extra)
    if len(details) != len(operations):
        raise corrupt(path, f"has {len(operations)} operations and details of {len(details)}")
    link_mode = extra.member(LINK_MODE_KEY, LinkMode)
    return CompactionPlan(
        instant=instant,
        cut_ms=_cut_ms(extra),
        cut=extra.member(CUT_MODE_KEY, CutMode),
        link_mode=link_mode,
        link_reason=extra.required_text(_LINK_REASON_KEY),
        event_time_field=extra.text(_FIELD_KEY),
        operations=tuple(
            _decode_operation(operation, detail, link_mode, instant)
            for operation, detail in zip(operations, details, strict=True)
        ),
        schema=AvroSchema.of(extra.required_text(_SCHEMA_KEY)),
        partitions_with_logs=tuple(document.texts("missingSchedulePartitions")),
    )


def _refuse_unknown(plan: Document, operations: Iterable[Document]) -> None:
    """Raises UnsupportedTableError for a plan of a later Hudi, whose operations may do more than to merge a slice."""
    stated = [(_PLAN_FIELDS, plan), *((_OPERATION_FIELDS, operation) for operation in operations)]
    newer = [f"version={plan.integer('version')}"] if (plan.integer("version") or 0) > _PLAN_VERSION else []
    unknown = [
        f"{field}={str(value)[:80]!r}"
        for known, document in stated
        for field, value in document.values.items()
        if field not in known and value is not None
    ]
    for found in (*newer, *unknown):
        raise UnsupportedTableError(
            f"timeline file {plan.path}: the plan states {found}, which Hudi up to 1.2 does not know; run it, or roll it "
            "back, with the engine that scheduled it"
        )


def _decode_foreign(operation: Document) -> ForeignOperation:
    partition, file_id = file_group(operation)
    base, logs = merged_paths(operation)
    return ForeignOperation(partition, file_id, operation.required_text("baseInstantTime"), base, logs)


def encode_operation(plan: CompactionPlan, operation: PlannedOperation) -> dict[str, Any]:
    has_links = plan.link_mode is not LinkMode.PREFIX
    linked = _linked(operation)
    assert _fits(operation, plan.link_mode), f"{operation.left_overs} in a plan with link mode {plan.link_mode}"
    logs = operation.compacted + tuple(left.log_file for left in linked)
    for log in logs:
        assert log.path == operation.path_of(log.name), f"{log.path} is outside {operation.partition!r}"
    base_name = None if operation.base_path is None else operation.base_path.rpartition("/")[2]
    return {
        "baseInstantTime": operation.base_instant,
        "deltaFilePaths": [log.name for log in logs],
        "dataFilePath": base_name,
        "fileId": operation.file_id,
        "partitionPath": operation.partition,
        "metrics": _metrics(operation, logs),
        "symlinkOperations": _symlinks(operation) if has_links else None,
    }


def _linked(operation: PlannedOperation) -> tuple[LeftOver, ...]:
    return tuple(left for left in operation.left_overs if left.new_name is not None)


def _fits(operation: PlannedOperation, link_mode: LinkMode) -> bool:
    """Whether the left-overs have the new names that the link mode requires.

    With prefix, no left-over has a new name. Otherwise, only left-overs above the new base lack one, and they come
    last.
    """
    linked = _linked(operation)
    if link_mode is LinkMode.PREFIX:
        return not linked
    return operation.left_overs[: len(linked)] == linked and all(
        left.is_above for left in operation.left_overs[len(linked) :]
    )


def _symlinks(operation: PlannedOperation) -> list[dict[str, str | None]]:
    return [{"symlink": left.new_name, "target": left.log_file.name} for left in _linked(operation)]


def _metrics(operation: PlannedOperation, logs: tuple[PlannedLog, ...]) -> Mapping[str, float]:
    # Hudi's executor fails if one of the five is missing.
    log_bytes = sum(log.size for log in logs)
    read = (operation.base_size + log_bytes) // _MEGABYTE
    write = _NO_BASE_WRITE_MB if operation.base_path is None else operation.base_size // _MEGABYTE
    return {
        "TOTAL_LOG_FILES": float(len(logs)),
        "TOTAL_IO_MB": float(read + write),
        "TOTAL_IO_READ_MB": float(read),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_WRITE_MB": float(write),
    }


def _encode_details(operation: PlannedOperation) -> dict[str, Any]:
    return {
        "base_size": operation.base_size,
        "compacted": [_encode_log(log) for log in operation.compacted],
        "remaining": [_encode_left_over(left) for left in operation.left_overs],
        "new_base": operation.new_base_name,
        "carried": operation.carried_name,
        "fallback": operation.fallback,
        "reason": operation.reason,
        **({"captures_changes": True} if operation.captures_changes else {}),
        **({"no_deletes": True} if operation.rests_on_no_deletes else {}),
    }


def _encode_left_over(left: LeftOver) -> dict[str, Any]:
    early = {} if left.threshold_ms is None else {"merged_before_ms": left.threshold_ms}
    deletes = {} if left.delete_count is None else {"deletes": left.delete_count}
    above = {"above": True} if left.is_above else {}
    return _encode_log(left.log_file) | {"linked": left.new_name} | early | deletes | above


def _encode_log(log: PlannedLog) -> dict[str, Any]:
    named = {"name": log.name, "size": log.size}
    times = log.event_times
    if times is None:
        return named
    unreadable = {"unreadable_records": times.unreadable_records} if times.unreadable_records else {}
    stated = {"min_ms": times.min_ms, "max_ms": times.max_ms, "unknown_records": times.unknown_records}
    return named | stated | unreadable


def _details(extra: Document) -> tuple[Document, ...]:
    try:
        details = json.loads(extra.required_text(_OPERATIONS_KEY))
    except (ValueError, RecursionError) as error:
        raise corrupt(extra.path, f"has eventide.operations that are not JSON ({error})") from error
    return tuple(Document({"operations": details}, extra.path).documents("operations"))


def _decode_operation(operation: Document, detail: Document, link_mode: LinkMode, instant: str) -> PlannedOperation:
    partition, file_id = file_group(operation)

    def path_of(name: str) -> str:
        return path_in(partition, name)

    def log_name(name: str) -> str:
        return own_name(name, LogFileName.parse, file_id, operation.path)

    def new_name(name: str, parse: Callable[[str], BaseFileName | LogFileName | None]) -> str:
        return own_name(name, parse, file_id, operation.path, instant)

    def log(document: Document) -> PlannedLog:
        times = None
        if document.integer("unknown_records") is not None:
            has_unreadable = document.integer("unreadable_records") is not None
            times = EventTimeRange(
                document.integer("min_ms"),
                document.integer("max_ms"),
                document.count("unknown_records"),
                document.count("unreadable_records") if has_unreadable else 0,
            )
        return PlannedLog(path_of(log_name(document.required_text("name"))), document.count("size"), times)

    def left_over(document: Document) -> LeftOver:
        linked = document.text("linked")
        name = None if linked is None else new_name(linked, LogFileName.parse)
        deletes = None if document.integer("deletes") is None else document.count("deletes")
        early_ms, is_above = document.integer("merged_before_ms"), document.boolean("above")
        return LeftOver(log(document), name, early_ms, deletes, is_above)

    base_name, carried = operation.text("dataFilePath"), detail.text("carried")
    if base_name is not None:
        own_name(base_name, BaseFileName.parse, file_id, operation.path)
    decoded = PlannedOperation(
        partition=partition,
        file_id=file_id,
        base_instant=operation.required_text("baseInstantTime"),
        base_path=None if base_name is None else path_of(base_name),
        base_size=detail.count("base_size"),
        compacted=tuple(map(log, detail.documents("compacted"))),
        left_overs=tuple(map(left_over, detail.documents("remaining"))),
        new_base_name=new_name(detail.required_text("new_base"), BaseFileName.parse),
        carried_name=None if carried is None else new_name(carried, LogFileName.parse),
        fallback=None if detail.text("fallback") is None else detail.member("fallback", FallbackReason),
        reason=detail.required_text("reason"),
        captures_changes=bool(detail.boolean("captures_changes")),
        rests_on_no_deletes=bool(detail.boolean("no_deletes")),
    )
    check_agreement(operation, decoded, link_mode)
    return decoded


def check_agreement(operation: Document, decoded: PlannedOperation, link_mode: LinkMode) -> None:
    has_links = link_mode is not LinkMode.PREFIX
    listed = [log.name for log in (*decoded.compacted, *(left.log_file for left in _linked(decoded)))]
    links = _symlinks(decoded) if has_links else []
    if not _fits(decoded, link_mode):
        raise corrupt(operation.path, f"has left-overs of {decoded.file_id} that do not fit link mode {link_mode}")
    if operation.items("deltaFilePaths") != listed or operation.items("symlinkOperations") != links:
        raise corrupt(operation.path, f"has contradictory data on the log files of {decoded.file_id}")


def _cut_ms(extra: Document) -> int | None:
    text = extra.text(_CUT_KEY)
    if text is not None and not _CUT_MS.fullmatch(text):
        raise extra.wrong(_CUT_KEY, "a number of milliseconds")
    return None if text is None else int(text)

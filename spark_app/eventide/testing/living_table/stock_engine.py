"""A model of a stock engine: it plans whole slices, and runs plans by `deltaFilePaths` alone.

It reads and writes plan files itself, without anything that is specific to eventide: no outcome, no cut, one write stat
per base file. As in Hudi:

- If it finds a plan inflight, it first rolls the attempt back: it puts a rollback on the timeline, deletes the files that
  markers name, and deletes the inflight file. Then it starts again.
- It completes a plan that has an inflight file, and checks nothing else.

Before it completes a plan, it removes all files that markers name and that it didn't write itself. Real Hudi 0.15
leaves the marked files of an attempt that it didn't find inflight. So the model is the more dangerous of the two: it
can delete files of eventide that Hudi would leave.
"""

import io
import json
from collections.abc import Mapping
from contextlib import nullcontext
from importlib import resources
from typing import Any

import fastavro

from eventide.bootstrap import Application
from eventide.testing.histories import NoLock
from eventide.testing.inspection.checks import avro_records
from eventide_core.config import ParquetCodec
from eventide_core.ports import AddedFile, FileChanges, MergeTask, Storage
from eventide_core.table.files.file_group_write import marker_directory
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.settings.metadata_table import RowChange
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.contents.plans import LinkMode, PlannedLog, PlannedOperation
from eventide_core.table.timeline.contents.rollback_metadata import (
    RollbackMetadata,
    RollbackPlan,
    RollbackRequest,
    RollbackTarget,
)
from eventide_core.table.timeline.instant import Action, Instant, State, instant_time, next_instant_time

_PLAN_SCHEMA = json.loads(
    (resources.files("eventide_adapters.format") / "schemas" / "compaction_plan.avsc").read_bytes()
)
_METRICS = ("TOTAL_LOG_FILES", "TOTAL_IO_MB", "TOTAL_IO_READ_MB", "TOTAL_LOG_FILES_SIZE", "TOTAL_IO_WRITE_MB")


class EngineFailedError(Exception):
    """The other engine failed; the message is the one that Hudi would show."""


def schedule_as_stock(application: Application) -> str:
    """Plans every slice that has log files. Returns the plan's instant."""
    state = application.state()
    instant = _unused_instant(application, state)
    record = {
        "operations": [_planned(file_slice) for file_slice in state.view.latest_slices() if file_slice.log_files],
        "extraMetadata": None,
        "version": 2,
        "strategy": None,
        "preserveHoodieMetadata": False,
        "missingSchedulePartitions": None,
    }
    data = io.BytesIO()
    fastavro.writer(data, _PLAN_SCHEMA, [record], sync_marker=bytes(16))
    requested = Instant(instant, Action.COMPACTION, State.REQUESTED)
    application.storage.put_if_absent(f"{state.config.timeline_path}/{requested.file_name}", data.getvalue())
    return instant


def _planned(file_slice: FileSlice) -> dict[str, Any]:
    return {
        "baseInstantTime": file_slice.base_instant,
        "deltaFilePaths": [str(log.name) for log in reversed(file_slice.log_files)],
        "dataFilePath": None if file_slice.base_file is None else str(file_slice.base_file.name),
        "fileId": file_slice.file_id,
        "partitionPath": file_slice.partition,
        "metrics": dict.fromkeys(_METRICS, 1.0),
        "bootstrapFilePath": None,
        "symlinkOperations": None,
    }


def run_plan_as_stock(application: Application, instant: str, *, takes_lock: bool = False) -> None:
    """Executes and completes the plan at `instant`.

    `takes_lock`: plans its rollback and commits under the table lock, as Hudi 1.1 does. Raises EngineFailedError if it
    finds no plan to run, or if it must not complete the plan.
    """
    storage, state = application.storage, application.state()
    timeline = state.config.timeline_path
    inflight = f"{timeline}/{Instant(instant, Action.COMPACTION, State.INFLIGHT).file_name}"
    seen = state.timeline.find(instant)
    if seen is not None and seen.state is State.INFLIGHT:
        _roll_back(application, state, instant, takes_lock=takes_lock)
        storage.delete(inflight)
    pending = application.files.timeline(state.config).find(instant)
    if pending is None or pending.is_completed:
        raise EngineFailedError(f"No Compaction request available at {instant}")
    if not storage.put_if_absent(inflight, b""):
        raise EngineFailedError(f"{inflight} already exists")
    stats = _merge(application, state, instant)
    with application.runner.lock.acquire() if takes_lock else nullcontext():
        own = {stat.path for of_partition in stats.values() for stat in of_partition}
        for path in sorted(marked_paths(storage, instant) - own):
            storage.delete(path)
        is_timed = state.config.layout.records_completion_times
        completion = _unused_instant(application, application.state()) if is_timed else None
        name = Instant(instant, Action.COMMIT, State.COMPLETED, completion).file_name
        metadata = CommitMetadata(stats, {"schema": state.schema.text}, "COMPACT", is_compacted=True)
        update = _metadata_update(application, state, instant, stats)
        update.write(NoLock(), completion or instant)
        data = application.files.codec.encode_commit(metadata, state.config.version)
        if storage.stat(inflight) is None:
            raise EngineFailedError(f"{inflight} does not exist")
        if not storage.put_if_absent(f"{timeline}/{name}", data):
            raise EngineFailedError(f"{name} already exists")
    remove_markers(storage, instant)


def _roll_back(application: Application, state: Any, instant: str, *, takes_lock: bool) -> None:
    """Hudi's rollback of an inflight compaction: the plan stays and can be run again."""
    storage, codec, timeline = application.storage, application.files.codec, state.config.timeline_path
    with application.runner.lock.acquire() if takes_lock else nullcontext():
        rollback = _unused_instant(application, application.state())
        requests = tuple(
            RollbackRequest(directory, name.split("_")[0], instant, (name,))
            for directory, _, name in (path.rpartition("/") for path in sorted(marked_paths(storage, instant)))
        )
        plan = RollbackPlan(rollback, RollbackTarget(instant, Action.COMPACTION), requests)
        requested = Instant(rollback, Action.ROLLBACK, State.REQUESTED).file_name
        storage.put_if_absent(f"{timeline}/{requested}", codec.encode_rollback_plan(plan, storage.root))
    storage.put_if_absent(f"{timeline}/{Instant(rollback, Action.ROLLBACK, State.INFLIGHT).file_name}", b"")
    for path in plan.deleted_paths:
        storage.delete(path)
    completion = state.config.layout.recorded_completion(next_instant_time(rollback))
    completed = Instant(rollback, Action.ROLLBACK, State.COMPLETED, completion).file_name
    done = RollbackMetadata(rollback, (plan.target,), {})
    storage.put_if_absent(f"{timeline}/{completed}", codec.encode_rollback(done, storage.root))
    remove_markers(storage, instant)


def _metadata_update(
    application: Application, state: Any, instant: str, stats: Mapping[str, tuple[WriteStat, ...]]
) -> Any:
    """The metadata table's update, which replaces the update of an earlier attempt."""
    application.metadata.revert(state.config, NoLock(), instant)
    added = tuple(
        AddedFile(stat.partition, stat.path.rpartition("/")[2], stat.file_size_bytes)
        for of_partition in stats.values()
        for stat in of_partition
    )
    return application.metadata.prepare(state.config, NoLock(), instant, FileChanges(RowChange.NONE, added))


def _merge(application: Application, state: Any, instant: str) -> dict[str, tuple[WriteStat, ...]]:
    storage = application.storage
    merge = application.runner.compact_slice
    plan: dict[str, Any] = avro_records(storage.read(f"{state.config.timeline_path}/{instant}.compaction.requested"))[0]
    stats: dict[str, tuple[WriteStat, ...]] = {}
    operations: list[dict[str, Any]] = plan["operations"] or []
    for number, operation in enumerate(operations):
        partition, file_id = operation["partitionPath"], operation["fileId"]
        logs = sorted((f"{partition}/{name}" for name in operation["deltaFilePaths"]), key=_reader_order)
        planned = PlannedOperation(
            partition=partition,
            file_id=file_id,
            base_instant=operation["baseInstantTime"],
            base_path=f"{partition}/{operation['dataFilePath']}" if operation["dataFilePath"] else None,
            base_size=0,
            compacted=tuple(PlannedLog(log, len(storage.read(log)), None) for log in logs),
            new_base_name=f"{file_id}_{number}-77-77_{instant}.parquet",
            reason="",
        )
        shape, blocks = state.shape(None), state.blocks()
        base = planned.new_base_path
        result = merge(MergeTask(instant, planned, LinkMode.COPY, shape, blocks, ParquetCodec.AS_BEFORE))
        stat = WriteStat(
            file_id,
            base,
            partition,
            prev_commit=operation["baseInstantTime"],
            num_writes=result.num_writes,
            file_size_bytes=result.base_size,
            prev_base_file=operation["dataFilePath"],
        )
        stats[partition] = (*stats.get(partition, ()), stat)
    return stats


def marked_paths(storage: Storage, instant: str) -> set[str]:
    """The files that the markers of an attempt name."""
    directory = marker_directory(instant)
    paths = {
        entry.path
        for part in _directories(storage, directory)
        for entry in storage.list(part)
        if not entry.is_directory
    }
    return {path.removeprefix(f"{directory}/").rpartition(".marker.")[0] for path in paths}


def remove_markers(storage: Storage, instant: str) -> None:
    for directory in reversed(_directories(storage, marker_directory(instant))):
        for entry in storage.list(directory):
            storage.delete(entry.path)
        storage.delete(directory)


def _directories(storage: Storage, directory: str) -> list[str]:
    """A directory and all directories below it."""
    below = [entry.path for entry in storage.list(directory) if entry.is_directory]
    return [directory, *(path for part in below for path in _directories(storage, part))]


def _reader_order(path: str) -> tuple[str, int, str, str]:
    name = LogFileName.parse(path.rpartition("/")[2])
    assert name is not None
    return name.reader_order


def _unused_instant(application: Application, state: Any) -> str:
    last = max(time for i in state.timeline.instants for time in (i.requested_time, i.completion_time) if time)
    return max(instant_time(application.clock.now_ms()), next_instant_time(last))

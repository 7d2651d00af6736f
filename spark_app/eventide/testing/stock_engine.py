"""An engine that runs a pending plan as Hudi does: by `deltaFilePaths` alone, knowing nothing of left-overs.

It reads the plan file itself and writes no word of eventide's: no outcome, no cut, a write stat for each base file.
"""

from __future__ import annotations

from typing import Any

from eventide.bootstrap import Application
from eventide.testing.checks import avro_records
from eventide_adapters.format.merge.slice_merger import ArrowSliceMerger
from eventide_core.config import ParquetCodec
from eventide_core.ports import MergeTask
from eventide_core.table.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.instant import Action, Instant, State, instant_time, next_instant_time
from eventide_core.table.plans import LinkMode


def run_plan_as_stock(application: Application, instant: str) -> None:
    """Executes and completes the plan at `instant`, which nobody has begun."""
    storage, state = application.storage, application.state()
    timeline = state.config.timeline_path
    merge = ArrowSliceMerger(storage)
    plan: dict[str, Any] = avro_records(storage.read(f"{timeline}/{instant}.compaction.requested"))[0]
    storage.put_if_absent(f"{timeline}/{Instant(instant, Action.COMPACTION, State.INFLIGHT).file_name}", b"")
    stats: dict[str, tuple[WriteStat, ...]] = {}
    operations: list[dict[str, Any]] = plan["operations"] or []
    for number, operation in enumerate(operations):
        partition, file_id = operation["partitionPath"], operation["fileId"]
        base = f"{partition}/{file_id}_{number}-77-77_{instant}.parquet"
        logs = [f"{partition}/{name}" for name in operation["deltaFilePaths"]]
        result = merge(
            MergeTask(
                partition=partition,
                file_id=file_id,
                instant=instant,
                base_path=f"{partition}/{operation['dataFilePath']}" if operation["dataFilePath"] else None,
                merged=tuple((log, len(storage.read(log))) for log in logs),
                left_overs=(),
                early={},
                link_mode=LinkMode.COPY,
                carried_path=None,
                new_base_path=base,
                marker_path=f".hoodie/.temp/{instant}/{base}.marker.CREATE",
                shape=state.shape(None),
                blocks=state.blocks(),
                codec=ParquetCodec.AS_BEFORE,
            )
        )
        storage.delete(f".hoodie/.temp/{instant}/{base}.marker.CREATE")
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
    last = max(time for i in state.timeline.instants for time in (i.requested_time, i.completion_time) if time)
    now = max(instant_time(application.clock.now_ms()), next_instant_time(last))
    completion = now if state.config.slices_by_completion_time else None
    name = Instant(instant, Action.COMMIT, State.COMPLETED, completion).file_name
    metadata = CommitMetadata(stats, {"schema": state.schema}, "COMPACT", is_compacted=True)
    storage.put_if_absent(f"{timeline}/{name}", application.files.codec.encode_commit(metadata, state.config.version))

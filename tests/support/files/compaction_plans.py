"""A compaction plan of eventide to change, as values and as bytes."""

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro

from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)

CODEC = HudiMetadataCodec()
C = "20261121120000000"
REQUESTED = f".hoodie/{C}.compaction.requested"


def planned_log(file_id: str, number: int) -> PlannedLog:
    name = LogFileName(file_id, "20261121000000000", number, "1-2-3")
    return PlannedLog(f"part=a/{name}", 1000 * number, EventTimeRange(number, number + 10))


def sample_plan(link_mode: LinkMode = LinkMode.COPY) -> CompactionPlan:
    """A plan of one slice with a base of 3 MB: logs 1 and 2 are merged, 3 is left over."""
    linked = None if link_mode is LinkMode.PREFIX else str(LogFileName("f-1", C, 0, "00001-0-1"))
    operation = PlannedOperation(
        partition="part=a",
        file_id="f-1",
        base_instant="20261121000000000",
        base_path="part=a/f-1_0-1-0_20261121000000000.parquet",
        base_size=3 * 1024 * 1024,
        compacted=(planned_log("f-1", 1), planned_log("f-1", 2)),
        left_overs=(LeftOver(planned_log("f-1", 3), linked),),
        new_base_name=f"f-1_7-7-7_{C}.parquet",
        carried_name=None,
        fallback=None,
        reason="two logs hold records before T",
    )
    schema = AvroSchema.of("{}")
    return CompactionPlan(
        C, (operation,), schema, link_mode, "asked for", 1000, event_time_field="ts", partitions_with_logs=("part=a",)
    )


def plan_record(data: bytes) -> tuple[Any, Any]:
    reader = fastavro.reader(io.BytesIO(data))
    return reader.writer_schema, next(iter(reader))


def changed_plan(change: Callable[[Any, list[Any]], None]) -> bytes:
    """The plan above, with `change` made to its record and to the details of its operations."""
    schema, record = plan_record(CODEC.encode_plan(sample_plan()))
    details = json.loads(record["extraMetadata"]["eventide.operations"])
    change(record, details)
    if "eventide.operations" in record["extraMetadata"]:
        record["extraMetadata"]["eventide.operations"] = json.dumps(details)
    stream = io.BytesIO()
    fastavro.writer(stream, schema, [record])
    return stream.getvalue()

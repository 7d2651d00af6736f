"""What the columnar adapters need to know about a table's records."""

from dataclasses import dataclass

from eventide_core.table.custom_merger import CustomMerger
from eventide_core.table.record_order import MergeRule


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """A log record whose `field`, as a text, is exactly `value` deletes its key. In a base file it means nothing."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """A record takes from older records the columns in which it is null or, with a marker, equal to the marker."""

    unavailable: str | None


@dataclass(frozen=True, slots=True)
class RecordShape:
    """`schema` is the table's Avro schema as JSON, without Hudi's meta fields; the fields are names of its own.

    Several ordering fields are compared one after another. `key_fields` make up a record's key where the table has no
    meta fields; none where the meta field has it. `merger` is there under merge rule CUSTOM.
    """

    schema: str
    merge_rule: MergeRule
    ordering_fields: tuple[str, ...]
    event_time_field: str | None
    delete_marker: DeleteMarker | None = None
    key_fields: tuple[str, ...] = ()
    partial_update: PartialUpdate | None = None
    merger: CustomMerger | None = None


def refusal_of_partial_updates(shape: RecordShape, path: str) -> str | None:
    """The reason to refuse a block of partial updates in a table of this shape; None if there is none."""
    cure = "compact it with Hudi itself, and set hoodie.spark.sql.merge.into.partial.updates=false"
    if shape.partial_update is not None:
        return (
            f"log file {path}: partial updates of MERGE INTO in a table with hoodie.table.partial.update.mode, which Hudi "
            f"forgets from there on; {cure}"
        )
    if shape.merger is not None:
        name = shape.merger.name
        return f"log file {path}: partial updates of MERGE INTO, and the merger {name} merges whole records; {cure}"
    return None

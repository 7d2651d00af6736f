"""The properties of a table's records that the columnar adapters need."""

from dataclasses import dataclass, field

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.column_names import ColumnNames, FileColumns


@dataclass(frozen=True, slots=True)
class DeleteMarker:
    """A log record whose `field`, as a string, is exactly `value` deletes its key. It has no effect in a base file."""

    field: str
    value: str


@dataclass(frozen=True, slots=True)
class PartialUpdate:
    """A record takes from older records the columns that it lacks (hoodie.table.partial.update.mode).

    It lacks those that are null or, with `unavailable`, those whose text is this marker; None if there is no marker.
    """

    unavailable: str | None


@dataclass(frozen=True, slots=True)
class RecordShape:
    """`schema` is the table's Avro schema, without Hudi's meta fields. The fields are names from it.

    `merge_rule` is the one by which records are merged here. Several `ordering_fields` are compared one after another.
    `delete_marker` is None if no value of a record deletes it. `key_fields` make up a record's key if the table has no meta
    fields; empty if the meta field has the key. `partial_update` is None if each record has all its columns. Without
    `orders_deletes`, no delete has an ordering value, whatever its log block contains. `merger` is set under merge rule
    CUSTOM. `event_time_texts` is how a time without a zone is read. `column_names` is None if columns have one name
    in all files. Without `marks_local_times`, a new Parquet file has plain numbers for timestamps without a zone, as
    files of Hudi before 1.1 do; a file that goes on from a base file has its form.
    """

    schema: AvroSchema
    merge_rule: MergeRule
    ordering_fields: tuple[str, ...]
    event_time_field: str | None
    delete_marker: DeleteMarker | None = None
    key_fields: tuple[str, ...] = ()
    partial_update: PartialUpdate | None = None
    orders_deletes: bool = True
    merger: CustomMerger | None = None
    event_time_texts: EventTimeTexts = ISO_WITH_ZONE
    column_names: ColumnNames | None = field(default=None, hash=False)
    marks_local_times: bool = True

    def columns_in_block(self, instant: str, place: str) -> FileColumns | None:
        """The columns of a log block; None if they have the names of the schema."""
        return None if self.column_names is None else self.column_names.in_block(instant, place)

    @property
    def event_time_source(self) -> str | None:
        """What names the event times of this shape in figures about files: see EventTimeTexts.source."""
        field = self.event_time_field
        return None if field is None else self.event_time_texts.source(field, self.schema)

    def require_event_time_field(self, root: str) -> str:
        """Raises UnsupportedTableError, with the table's `root`, if no event-time field is known."""
        if self.event_time_field is None:
            raise UnsupportedTableError(
                f"{root}: no event-time field is known; set hoodie.payload.event.time.field to the column that has it"
            )
        return self.event_time_field


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

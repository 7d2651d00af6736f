"""What the columnar adapters need to know of a table's records."""

from dataclasses import dataclass

from eventide_core.table.record_order import MergeRule


@dataclass(frozen=True, slots=True)
class RecordShape:
    """`schema` is the table's Avro schema as JSON, without Hudi's meta fields; the fields are names of its own."""

    schema: str
    merge_rule: MergeRule
    ordering_field: str | None
    event_time_field: str | None

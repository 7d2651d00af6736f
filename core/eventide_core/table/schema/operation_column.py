"""Changelog tables, whose records carry their operation in the column `_hoodie_operation` (Flink's changelog mode).

A deleted row is stored as a record whose operation is D or -U. Hudi 0.15 shows a record with -U as a row, Hudi 1.x as a
delete. A compaction that ignores the column, such as one of Hudi on Spark by default, shows deleted rows again.
"""

from typing import Final

from eventide_core.errors import UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema

OPERATION: Final = "_hoodie_operation"


def refuse_operations(schema: AvroSchema, place: str) -> None:
    """Raises UnsupportedTableError if records of this schema, a block's, carry operations."""
    if schema.derived(_has_operations):
        raise UnsupportedTableError(
            f"{place}: its records have the column {OPERATION} (hoodie.allow.operation.metadata.field=true, as in Flink's "
            "changelog mode), whose operations the versions of Hudi merge differently; work on this table with the engine "
            "that writes it, with that option set for its compactions, too, or write it again without the option"
        )


def _has_operations(schema: AvroSchema) -> bool:
    return OPERATION in schema.text and OPERATION in schema.field_names

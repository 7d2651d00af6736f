"""Selects the columns of a table that a Spark query requests by its schema."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from eventide.spark.list_columns import with_lists
from eventide_core.errors import ConfigError


def chosen_columns(table: pa.Schema, asked: StructType) -> tuple[str, ...]:
    """The requested columns. Raises ConfigError if the table lacks one or has it in another type.

    Spark passes the whole schema to a Python source, whichever columns the query selects. If the user passes a schema with
    only some of the columns (`.schema("id string, fare double")`), only those are read.
    """
    found = {field.name: field.dataType for field in from_arrow_schema(with_lists(table))}
    for field in asked:
        if field.name not in found:
            raise ConfigError(f"column {field.name!r} is not one of the table's: {', '.join(found)}")
        if field.dataType != found[field.name]:
            kinds = f"{found[field.name].simpleString()}, not {field.dataType.simpleString()}"
            raise ConfigError(
                f"column {field.name!r} of the table is {kinds}: cast the column after the read; restart a "
                "stream that began before the column changed"
            )
    return tuple(asked.names)

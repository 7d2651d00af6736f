"""Selects the columns of a table that a Spark query requests by its schema."""

import pyarrow as pa
from pyspark.sql.types import StructType

from eventide.spark.types import spark_schema_of
from eventide_core.errors import ConfigError


def chosen_columns(table: pa.Schema, asked: StructType) -> tuple[str, ...]:
    """The requested columns. Raises ConfigError if the table lacks one or has it in another type.

    Spark passes the whole schema to a Python source, whichever columns the query selects. If the user passes a schema with
    only some of the columns (`.schema("id string, fare double")`), only those are read.
    """
    types = {field.name: field.dataType for field in spark_schema_of(table)}
    for field in asked:
        if field.name not in types:
            raise ConfigError(f"column {field.name!r} is not one of the table's: {', '.join(types)}")
        # The names of types: they leave out what may be null, which a schema in SQL cannot state.
        asked_type, own_type = field.dataType.simpleString(), types[field.name].simpleString()
        if asked_type != own_type:
            kinds = f"{own_type}, not {asked_type}"
            raise ConfigError(
                f"column {field.name!r} of the table is {kinds}: cast the column after the read; restart a "
                "stream that began before the column changed"
            )
    return tuple(asked.names)

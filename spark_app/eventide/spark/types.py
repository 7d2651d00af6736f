"""Converts between the types of Spark and of Arrow, with whichever version of PySpark is installed."""

from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.spark.list_columns import with_lists

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema_of(schema: "StructType") -> pa.Schema:
    """The Arrow schema of a Spark schema. Timestamps are in microseconds, in UTC.

    Newer versions of PySpark (4.3) require the zone of timestamps as an argument; older ones always use UTC.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    # PySpark's type hints describe only one version of it.
    convert: Any = to_arrow_schema
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    made: pa.Schema = convert(schema, **zone)
    return made


def spark_schema_of(schema: pa.Schema) -> "StructType":
    """The Spark schema of an Arrow schema. A timestamp without a zone is `timestamp_ntz`, whatever the session prefers."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(with_lists(schema), prefer_timestamp_ntz=True)

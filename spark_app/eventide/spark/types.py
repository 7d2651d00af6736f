"""Spark's types as Arrow's, by whichever PySpark is installed."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def arrow_schema_of(schema: StructType) -> pa.Schema:
    """The Arrow schema of Spark's; a timestamp is in microseconds, in UTC.

    Newer versions of PySpark (4.3) have the caller name the zone of timestamps; in older ones it is always UTC.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    # PySpark's types describe one version of it alone.
    convert: Any = to_arrow_schema
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    made: pa.Schema = convert(schema, **zone)
    return made

"""Selects the slices that Spark reads with its own Parquet reader, without Python: unselected columns stay on disk.

These are the slices whose rows are exactly the base file's, if Spark reaches the files by the table's own URI, and if
both readers interpret the column types alike. Timestamps without a zone and times of day don't qualify: how Spark reads them
depends on the program that wrote them, and on its settings. Nor do vectors, which are bytes in the file.
"""

import re
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from eventide_core.table.files.slice_read import SliceRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

# Spark reads these without any setting. For an object store, it needs settings of its own, which the table does not have.
_SCHEMES: Final = ("file://", "hdfs://")
_PATTERN: Final = re.compile(r"[*?\[\]{}\\]")  # Spark treats a path with one of these as a pattern
# Reads times unchanged from the file; otherwise Spark 3 rejects times of past centuries.
_AS_STORED: Final = {"datetimeRebaseMode": "CORRECTED", "int96RebaseMode": "CORRECTED", "mergeSchema": "false"}


def divided(
    slices: Sequence[SliceRead], root: str, schema: pa.Schema
) -> tuple[tuple[SliceRead, ...], tuple[SliceRead, ...]]:
    """The slices whose columns of `schema` Spark can read by itself, and the others. `root` is the table's URI."""
    if not root.startswith(_SCHEMES) or not all(_is_alike(field.type) for field in schema):
        return (), tuple(slices)
    is_spark = [slice_read.is_plain and not _PATTERN.search(f"{root}/{slice_read.base_path}") for slice_read in slices]
    return tuple(compress(slices, is_spark)), tuple(compress(slices, (not is_one for is_one in is_spark)))


def parquet_frame(spark: "SparkSession", slices: Sequence[SliceRead], root: str, schema: "StructType") -> "DataFrame":
    """The rows of the slices, with the columns of `schema`."""
    paths = [f"{root}/{slice_read.base_path}" for slice_read in slices]
    return spark.read.options(**_AS_STORED).schema(schema).parquet(*paths)


def _is_alike(kind: Any) -> bool:
    types = pa.types
    if types.is_fixed_size_list(kind):  # a vector: Spark would read its bytes
        return False
    if types.is_nested(kind):
        return all(_is_alike(kind.field(place).type) for place in range(kind.num_fields))
    if types.is_timestamp(kind):
        return kind.tz is not None
    plain = (types.is_boolean, types.is_integer, types.is_floating, types.is_decimal, types.is_string, types.is_binary)
    return types.is_date32(kind) or any(is_kind(kind) for is_kind in plain)

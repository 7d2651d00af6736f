"""Converts between the types of Spark and of Arrow, with whichever version of PySpark is installed.

Columns for Spark's reader of Arrow data have lists for vectors, and microseconds for all times.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField

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


def with_names(frame: Any, renamed: Callable[[Sequence[str]], Sequence[str]]) -> Any:
    """The DataFrame with other names of columns and nested fields; `renamed` has the names of one record."""
    from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

    def kind_of(kind: DataType) -> DataType:
        match kind:
            case StructType():
                pairs = zip(renamed(kind.names), kind.fields, strict=True)
                return StructType([StructField(name, kind_of(f.dataType), f.nullable) for name, f in pairs])
            case ArrayType():
                return ArrayType(kind_of(kind.elementType), kind.containsNull)
            case MapType():
                return MapType(kind.keyType, kind_of(kind.valueType), kind.valueContainsNull)
            case _:
                return kind

    kinds = kind_of(frame.schema)
    assert isinstance(kinds, StructType)
    named = frame.toDF(*kinds.names)
    pairs = zip(frame.schema.fields, kinds.fields, strict=True)
    return named.select(
        [
            named[f.name] if own.dataType == f.dataType else named[f.name].cast(f.dataType).alias(f.name)
            for own, f in pairs
        ]
    )


def with_lists(schema: pa.Schema) -> pa.Schema:
    """The schema with lists instead of fixed-size lists, and with timestamps in microseconds."""
    return pa.schema([_spark_field(field) for field in schema])


def batches_with_lists(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with the types of `with_lists`."""
    for batch in batches:
        wanted = with_lists(batch.schema)
        yield batch if wanted == batch.schema else batch.cast(wanted)


def _spark_type(kind: Any) -> Any:
    types = pa.types
    if types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field)
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if not types.is_nested(kind):
        return kind
    if types.is_map(kind):
        of_fields: Any = pa.map_  # its stubs have types alone, which may all be null
        return of_fields(kind.key_field, _spark_field(kind.item_field))
    fields = [_spark_field(kind.field(place)) for place in range(kind.num_fields)]
    return pa.struct(fields) if types.is_struct(kind) else pa.list_(fields[0])


def _spark_field(field: ArrowField) -> ArrowField:
    return field.with_type(_spark_type(field.type))

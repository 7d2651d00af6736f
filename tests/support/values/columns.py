"""A schema by the names and types of its columns."""

import pyarrow as pa


def schema_of(**columns: pa.DataType) -> pa.Schema:
    return pa.schema(columns)

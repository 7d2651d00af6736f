"""Vectors for Spark, whose reader of Arrow data has lists, but no fixed-size lists."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa


def with_lists(schema: pa.Schema) -> pa.Schema:
    """The schema with lists instead of fixed-size lists."""
    return pa.schema([field.with_type(_list_type(field.type)) for field in schema])


def batches_with_lists(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches with lists instead of fixed-size lists."""
    for batch in batches:
        has_vectors = any(pa.types.is_fixed_size_list(field.type) for field in batch.schema)
        yield batch.cast(with_lists(batch.schema)) if has_vectors else batch


def _list_type(kind: Any) -> Any:
    return pa.list_(kind.value_field) if pa.types.is_fixed_size_list(kind) else kind

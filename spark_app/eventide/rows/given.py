"""What a write takes as records, for type checkers."""

from typing import Any, Protocol, TypeAlias


class ArrowRows(Protocol):
    """Rows of Arrow, pandas or Polars: anything with Arrow's C stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any: ...


class SparkRows(Protocol):
    """A DataFrame of Spark, classic or Connect."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802  # Spark's name


Records: TypeAlias = ArrowRows | SparkRows

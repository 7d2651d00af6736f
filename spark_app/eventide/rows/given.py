"""What users pass, for type checkers: records, an engine, a cut. Without PySpark, no type of its own would be known."""

from typing import Any, Literal, Protocol, TypeAlias

from eventide_core.ports import Engine
from eventide_core.table.timeline.contents.plans import CutMode


class ArrowRows(Protocol):
    """Rows of Arrow, pandas or Polars: anything with Arrow's C stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None, /) -> Any: ...


class SparkRows(Protocol):
    """A DataFrame of Spark, classic or Connect."""

    @property
    def sparkSession(self) -> Any: ...  # noqa: N802  # Spark's name


class Session(Protocol):
    """A SparkSession, classic or Connect."""

    def createDataFrame(self, data: Any, /) -> Any: ...  # noqa: N802  # Spark's name


Records: TypeAlias = ArrowRows | SparkRows
TaskEngine: TypeAlias = Session | Engine
CutName: TypeAlias = Literal["file", "exact"] | CutMode

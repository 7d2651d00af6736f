"""What each part of a table's face works on."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

from eventide.bootstrap import Application, assemble
from eventide.options.streams import SOURCES
from eventide_core.errors import ConfigError
from eventide_core.ports import Engine

# A method imports what only it needs.
if TYPE_CHECKING:
    from eventide.rows.given import TaskEngine
    from eventide.table.derived import SourceState
    from eventide_core.service.state.table import TableState
    from eventide_core.service.write.append import Append


class OpenTable:
    """An open table, the base of the parts of `eventide.Table`."""

    __slots__ = ()

    uri: str
    options: Mapping[str, str]
    _application: Application

    def state(self) -> "TableState":
        """The current settings, timeline and file slices."""
        return self._application.state()

    def _on(self, engine: "TaskEngine | None") -> Application:
        """The use cases on another engine, if one is given."""
        if engine is None:
            return self._application
        return assemble(self.uri, self.options, engine=task_engine(engine), storage=self._application.storage)

    def _noting(self, append: "Append", sources: "Mapping[Self, SourceState] | None") -> "Append":
        """The write, whose commit notes what its records were made of. Raises what `noting` raises."""
        if sources is None and SOURCES not in self._application.options.values:
            return append
        from eventide.table.derived import noting

        if sources is None:
            return noting(self._application, append, None)
        given: object = sources
        if not isinstance(given, Mapping):
            raise ConfigError(f"sources={given!r}: pass a dictionary of tables, each with how much of it was read")
        for table in given:
            if not isinstance(table, OpenTable):
                raise ConfigError(f"sources: {table!r} is no table: pass what `Table.open` returns")
        return noting(self._application, append, [(table._application, read) for table, read in sources.items()])


def task_engine(engine: "TaskEngine") -> Engine:
    if isinstance(engine, Engine):
        return engine
    if not hasattr(engine, "createDataFrame"):
        raise ConfigError(f"{engine!r} is no engine: pass a SparkSession, or omit it for threads of this process")
    # Imported here: reading and planning work where pyspark is not installed.
    from eventide.spark.engine import SparkEngine

    session: Any = engine
    return SparkEngine(session)

"""What each part of a table's face works on."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from eventide.bootstrap import Application, assemble
from eventide.options.streams import SOURCES
from eventide_core.config import SOURCE_SETTINGS
from eventide_core.errors import ConfigError
from eventide_core.ports import Engine

# A method imports what only it needs.
if TYPE_CHECKING:
    from eventide.rows.given import TaskEngine
    from eventide.table.derived import SourceState
    from eventide_core.service.common.state.table import TableState
    from eventide_core.service.write.append import Append
    from eventide_core.table.records.event_time import Moment

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T", bound="OpenTable")


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

    def _noting(self, append: "Append", sources: "Mapping[Self | str, SourceState | Moment] | None") -> "Append":
        """The write, whose commit notes what its records were made of. Raises what `noting` raises."""
        options = self._application.options
        if sources is None and SOURCES not in options.values and not options.below(SOURCE_SETTINGS):
            return append
        from eventide.table.derived import noting

        if sources is None:
            return noting(self._application, append, None)
        given: object = sources
        if not isinstance(given, Mapping):
            raise ConfigError(
                f"sources={given!r}: pass a dictionary: of names of sources, each with its T, or of tables, each with how "
                "much of it was read"
            )
        stated: dict[str, Moment] = {}
        tables: list[tuple[Application, Any]] = []
        for source, read in given.items():
            if isinstance(source, str):
                if not isinstance(read, int | str | datetime):
                    raise ConfigError(
                        f"sources: {source!r} names a source, which takes its T, not a {type(read).__name__}: for a table, "
                        "pass what `Table.open` returns"
                    )
                stated[source] = read
            elif isinstance(source, OpenTable):
                tables.append((source._application, read))
            else:
                raise ConfigError(
                    f"sources: {source!r} is neither the name of a source nor a table: pass what `Table.open` returns"
                )
        return noting(self._application, append, tables or None, stated)


def traced(verb: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """The verb as a span of the trace, which has its name."""

    @wraps(verb)
    def run(table: T, /, *args: P.args, **more: P.kwargs) -> R:
        with table._application.traced(verb.__name__):
            return verb(table, *args, **more)

    return run


def task_engine(engine: "TaskEngine") -> Engine:
    if isinstance(engine, Engine):
        return engine
    if not hasattr(engine, "createDataFrame"):
        raise ConfigError(f"{engine!r} isn't an engine: pass a SparkSession, or omit it for threads of this process")
    # Imported here: reading and planning work where pyspark is not installed.
    from eventide.spark.engine import SparkEngine

    session: Any = engine
    return SparkEngine(session)

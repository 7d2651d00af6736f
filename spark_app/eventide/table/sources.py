"""The sources of a table: what vouches that everything before T has come."""

from collections.abc import Iterator
from dataclasses import dataclass
from os.path import abspath

from eventide.bootstrap import Application
from eventide_core.errors import ConfigError
from eventide_core.service.common.state.table import read_from
from eventide_core.table.settings.declared_sources import TABLE
from eventide_core.table.timeline.source_progress import SourceProgress


@dataclass(frozen=True, slots=True)
class TableSources:
    """The declared and the stated sources of a table. Iterating gives how far each has come.

    `table.freshness()` is no later than any of them.
    """

    _application: Application

    def __iter__(self) -> Iterator[SourceProgress]:
        return iter(self.progress())

    def progress(self) -> tuple[SourceProgress, ...]:
        """How far each source has come, now. Raises ConfigError for a source that cannot be asked here."""
        return read_from(self._application.state, self._application.arrival.progress)

    def declare(self, name: str, kind: str = "stated", /, **settings: str) -> None:
        """Makes the freshness of the table need this source from now on. A declaration of the same name is replaced.

        `kind` is "stated": commits state how far it has come (`upsert(rows, sources={name: T})`); "table", for which the
        setting `table` is its URI; "kafka"; or the kind of a package. The table keeps the settings: `idle="2h"` is how
        long its silence counts as progress. Raises ConfigError, before anything is written, for what can't be right or is a
        secret.
        """
        if kind == TABLE:
            from eventide.table.derived import source_of

            if TABLE not in settings:
                raise ConfigError(f"source {name}: {TABLE} is missing: the URI of the table that this one is made of")
            settings[TABLE] = source_of(self._application, settings[TABLE]).storage.root
        where = settings["at"] if kind == "counts" and "at" in settings else ""
        if where and "://" not in where:
            settings["at"] = abspath(where)  # later commands run elsewhere
        self._application.declared_sources.declare(name, kind, settings)

    def forget(self, name: str) -> None:
        """Makes the freshness of the table do without this source.

        A later commit that states it declares it again. Raises ConfigError if there is none of that name.
        """
        self._application.declared_sources.forget(name)

"""Declares the sources of a table in its settings, and forgets them, under the table lock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from eventide_core.errors import ConfigError
from eventide_core.ports import ArrivalSource, Lease, TableLock
from eventide_core.service.common.facts.arrival import idle_seconds, said_of
from eventide_core.service.common.metadata_table.drop import check_or_unname
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.common.transaction.settings_file import ChangeOfSettings, change_settings
from eventide_core.table.settings.declared_sources import (
    STATED,
    TABLE,
    DeclaredSource,
    declaration,
    declared_sources,
    forgetting,
)
from eventide_core.table.settings.properties import parse_properties


@dataclass(frozen=True, slots=True)
class SourceDeclarations:
    """`open_source` opens a source of a kind that is neither stated by commits nor a table."""

    files: TableFiles
    lock: TableLock
    open_source: Callable[[DeclaredSource], ArrivalSource]

    def declare(self, name: str, kind: str, settings: Mapping[str, str]) -> None:
        """From now on the gate needs this source. A declaration of the same name is replaced.

        Raises ConfigError, before anything is written, for a name, a kind or settings that can't be right.
        """
        values = declaration(name, kind, settings)
        source = declared_sources(values)[name]
        idle_seconds(source)  # refuses what isn't a duration
        if kind not in (STATED, TABLE):
            self.open_source(source)

        def declared(text: str) -> dict[str, str | None]:
            properties = parse_properties(text)
            known = declared_sources(properties).get(name, DeclaredSource(name))
            # What was forgotten stays so: the source has to speak again.
            return {**forgetting(name, properties, known.forgotten_at), **values}

        with self.lock.acquire() as lease:
            self._change(declared, lease)

    def forget(self, name: str) -> None:
        """The gate doesn't need the source any more, until a later commit states it, or it is declared again.

        Raises ConfigError if the table has no such source.
        """
        with self.lock.acquire() as lease:
            state = TableState.load(self.files, requires_files=False)
            said = [one for one in said_of(self.files, state).statements if one.name == name]
            declared = declared_sources(state.config.properties).get(name)
            if not said and (declared is None or not declared.is_declared):
                raise ConfigError(f"source {name[:80]!r}: the table has none of that name; `sources` lists them")
            last = max((one.stated_at for one in said), default="")
            self._change(lambda text: forgetting(name, parse_properties(text), last), lease)

    def _change(self, change: ChangeOfSettings, lease: Lease) -> None:
        change_settings(self.files.storage, change, lease)
        check_or_unname(self.files.storage, lease)

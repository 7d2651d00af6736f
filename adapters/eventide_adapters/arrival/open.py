"""Opens a source that a table declares, by its kind."""

from typing import Final, cast

from eventide_adapters.entry_points import Adapters
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import ArrivalSource
from eventide_core.table.settings.declared_sources import STATED, TABLE, DeclaredSource

SOURCES: Final = Adapters(
    "eventide.arrival",
    {"counts": "eventide.table.counted:open_counts", "kafka": "eventide_adapters.arrival.kafka:open_kafka"},
)
"""The kinds of sources that are asked. A factory gets the name of a source and its settings; a built-in one, all options."""


def open_source(source: DeclaredSource, options: Options) -> ArrivalSource:
    """The source. Raises ConfigError if no adapter has its kind, or if its settings can't be right."""
    adapter = SOURCES.find(source.kind)
    if adapter is None:
        known = ", ".join((STATED, TABLE, *SOURCES.names()))
        raise ConfigError(
            f"source {source.name}: the kind {source.kind[:80]!r} is unknown here; known are {known}; install the package "
            'that has it, which declares it in its entry points "eventide.arrival"'
        )
    more = (options,) if adapter.package is None else ()
    return cast(ArrivalSource, adapter.load()(source.name, source.settings, *more))

"""Opens a source that a table declares, by its kind."""

from collections.abc import Mapping
from typing import Final, cast

from eventide_adapters.entry_points import Adapters
from eventide_core.errors import ConfigError
from eventide_core.ports import ArrivalSource
from eventide_core.table.settings.declared_sources import STATED, TABLE, DeclaredSource

SOURCES: Final = Adapters(
    "eventide.arrival",
    {"counts": "eventide.table.counted:open_counts", "kafka": "eventide_adapters.arrival.kafka:open_kafka"},
)
"""The kinds of sources that are asked. A factory gets the name of a source and its settings."""


def open_source(source: DeclaredSource) -> ArrivalSource:
    """The source. Raises ConfigError if no adapter has its kind, or if its settings can't be right."""
    adapter = SOURCES.find(source.kind)
    if adapter is None:
        known = ", ".join((STATED, TABLE, *SOURCES.names()))
        raise ConfigError(
            f"source {source.name}: the kind {source.kind[:80]!r} is unknown here; known are {known}; install the package "
            'that has it, which declares it in its entry points "eventide.arrival"'
        )
    settings: Mapping[str, str] = source.settings
    return cast(ArrivalSource, adapter.load()(source.name, settings))

"""The port for the metrics of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eventide_core.table.catalog.metric import Metric


class MetricsSink(Protocol):
    """Receives a table's metrics of one moment."""

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:
        """Publishes all of them or none. Raises StorageError."""
        ...


@dataclass(frozen=True, slots=True)
class Unreported:
    """Stands for a sink if metrics are on but can't be reported: `why`, with the cure."""

    why: str

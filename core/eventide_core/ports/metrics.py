"""Where the metrics of a table go."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from eventide_core.table.metric import Metric


class MetricsSink(Protocol):
    """Takes what was measured of a table at one moment."""

    def write(self, table: str, at_ms: int, metrics: Sequence[Metric]) -> None:
        """Brings all of them, or none, to whoever looks. Raises StorageError."""
        ...


@dataclass(frozen=True, slots=True)
class Unreported:
    """Stands for a sink where metrics are on and go nowhere: `why`, and what to do."""

    why: str

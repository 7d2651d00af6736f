"""A measured value of a table, for monitoring."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured value: times in seconds since the epoch, durations in seconds, sizes in bytes, otherwise a count.

    `name` ends with the unit of `value`, as Prometheus recommends. `about` describes it in one line, which is the same for
    every value of that name. `reason` distinguishes values of one name.
    """

    name: str
    about: str
    value: float
    reason: str | None = None

    def sample_name(self, prefix: str) -> str:
        """`<prefix>_<name>`, with characters that Prometheus and OpenTelemetry both accept."""
        return re.sub(r"[^a-zA-Z0-9_]", "_", f"{prefix}_{self.name}")

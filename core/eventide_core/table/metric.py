"""A measured value of a table, for monitoring."""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured value: times in seconds since the epoch, spans in seconds, sizes in bytes, else a count.

    `name` ends in its unit, as Prometheus has it; `about` says what it is, in one line, the same wherever the name is.
    `reason` distinguishes values of one name.
    """

    name: str
    about: str
    value: float
    reason: str | None = None

    def sample_name(self, prefix: str) -> str:
        """`<prefix>_<name>`, of characters that Prometheus and OpenTelemetry both take."""
        return re.sub(r"[^a-zA-Z0-9_]", "_", f"{prefix}_{self.name}")

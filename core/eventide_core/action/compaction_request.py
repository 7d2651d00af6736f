"""What a user asks of a compaction."""

from dataclasses import dataclass

from eventide_core.action.compaction_strategy import threshold_of_latency
from eventide_core.config import DATA_LATENCY, THRESHOLD, LinkChoice
from eventide_core.errors import ConfigError


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """T itself, or T as the time now less the latency of the data. One of the two is given."""

    threshold_ms: int | None
    data_latency_seconds: int | None
    link_choice: LinkChoice

    def threshold_at(self, now_ms: int) -> int:
        if self.threshold_ms is not None:
            return self.threshold_ms
        if self.data_latency_seconds is not None:
            return threshold_of_latency(now_ms, self.data_latency_seconds)
        raise ConfigError(
            f"no threshold: give T (--before, {THRESHOLD}) or the data's latency (--data-latency, {DATA_LATENCY})"
        )

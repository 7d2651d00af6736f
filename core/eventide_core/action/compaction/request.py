"""A user's request for a compaction."""

from dataclasses import dataclass
from typing import Final

from eventide_core.action.compaction.strategy import EVENT_TIME_STRATEGY, threshold_of_latency
from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.config import DATA_LATENCY, STRATEGY, THRESHOLD, LinkChoice
from eventide_core.cure import Cure
from eventide_core.errors import ConfigError, InvalidThresholdError, format_moment
from eventide_core.table.timeline.contents.plans import CutMode

_AHEAD_MS_MAX: Final = 24 * 3_600_000
"""Local times that are mistaken for UTC are up to fourteen hours ahead of the clock."""


@dataclass(frozen=True, slots=True)
class CompactionRequest:
    """T itself, or T as the time now less the latency of the data; neither for a strategy that knows no event time.

    `threshold_ms` is T in epoch milliseconds, and wins over `data_latency_seconds`. Both are None if the user named no T.

    `is_for_t`: the user has requested T by name, not by an option. Then triggers are ignored, and the strategy has to know
    event time. `cut` is what is taken, whole log files or the records before T. `alignment` floors T to
    the start of a day, an hour or the like. `link_choice` is how left-overs are to stay visible.
    """

    threshold_ms: int | None
    data_latency_seconds: int | None
    link_choice: LinkChoice
    is_for_t: bool = True
    cut: CutMode = CutMode.FILE
    alignment: Alignment | None = None

    @property
    def follows_clock(self) -> bool:
        """Whether T is the clock's word, not the user's."""
        return self.threshold_ms is None and self.data_latency_seconds is not None

    def threshold_at(self, now_ms: int, vouched_ms: int | None = None) -> int:
        """The requested T, aligned. One that follows the clock is no later than `vouched_ms`, what the sources vouch for."""
        threshold_ms = self._given_at(now_ms)
        if self.follows_clock and vouched_ms is not None:
            threshold_ms = min(threshold_ms, vouched_ms)
        return threshold_ms if self.alignment is None else self.alignment.floor(threshold_ms)

    def check_reach(self, threshold_ms: int, now_ms: int, cut_ms: int | None, latest_ms: int | None) -> None:
        """Raises InvalidThresholdError if T is later than the clock and a smaller T would compact the same records.

        After it is published, a T in the year 5000 would refuse every T before it. `latest_ms` is the latest event time
        in a log file.
        """
        reach_ms = max(
            now_ms + _AHEAD_MS_MAX,
            0 if cut_ms is None else cut_ms,
            0 if latest_ms is None else latest_ms + 1,
        )
        if threshold_ms > reach_ms:
            raise InvalidThresholdError(
                f"T {format_moment(threshold_ms)} is later than the clock and every record in the log files, "
                f"and its cut would block every earlier T; use at most {format_moment(reach_ms)}, which "
                "compacts the same records"
            )

    def _given_at(self, now_ms: int) -> int:
        if self.threshold_ms is not None:
            return self.threshold_ms
        if self.data_latency_seconds is not None:
            return threshold_of_latency(now_ms, self.data_latency_seconds)
        raise ConfigError(
            f"no threshold: pass T ({Cure.argument('before', 'T')}), or set the option {THRESHOLD} or {DATA_LATENCY}"
        )

    def check_strategy(self, name: str) -> None:
        """Raises ConfigError if T is requested, and the strategy of that name knows none."""
        if self.is_for_t:
            raise ConfigError(
                f"option {STRATEGY}: {name} ignores event times, so it cannot compact everything before T: name "
                f"{EVENT_TIME_STRATEGY} before it to bound an event-time compaction, or omit T"
            )

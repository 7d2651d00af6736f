"""What a user asks of a compaction, by words that go before options."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from zoneinfo import ZoneInfo

from eventide_core import config as keys
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.threshold_alignment import Alignment
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.table.event_time import Moment, parse_threshold
from eventide_core.table.plans import CutMode


@dataclass(frozen=True, slots=True)
class Overrides:
    """What was said of this compaction; what was not, None, the options say."""

    before: Moment | None = None
    data_latency_seconds: int | None = None
    cut: str | None = None
    link_mode: str | None = None
    align: str | None = None
    time_zone: str | None = None

    @property
    def is_for_t(self) -> bool:
        return self.before is not None or self.data_latency_seconds is not None


def compaction_request(values: Mapping[str, str], words: Overrides) -> CompactionRequest:
    """The request that these options and words make. Raises ConfigError, InvalidThresholdError."""
    said: dict[str, object] = {
        keys.THRESHOLD: words.before,
        keys.DATA_LATENCY: words.data_latency_seconds,
        keys.CUT: words.cut,
        keys.LINK_MODE: words.link_mode,
        keys.ALIGN: words.align,
        keys.ALIGN_ZONE: words.time_zone,
    }
    # Of T and the data's latency, which exclude each other, a word takes the place of either option.
    hidden: dict[str, str] = {keys.THRESHOLD: "", keys.DATA_LATENCY: ""} if words.is_for_t else {}
    given = {key: str(value) for key, value in said.items() if value is not None}
    options = Options({**values, **hidden, **given})
    threshold = options.get(keys.THRESHOLD)
    if threshold is not None and options.get(keys.DATA_LATENCY) is not None:
        raise ConfigError("set either T or the data latency, not both")
    return CompactionRequest(
        threshold_ms=None if threshold is None else parse_threshold(threshold),
        data_latency_seconds=options.get(keys.DATA_LATENCY),
        link_choice=options.get(keys.LINK_MODE),
        is_for_t=words.is_for_t,
        cut=CutMode(options.get(keys.CUT)),
        alignment=_alignment(options),
    )


def _alignment(options: Options) -> Alignment | None:
    zone = options.get(keys.ALIGN_ZONE)
    seconds = options.get(keys.ALIGN)
    if seconds is None:
        if zone is not None:
            raise ConfigError(
                f"option {keys.ALIGN_ZONE}={zone!r} is the time zone of {keys.ALIGN}: set that, too, such as 1d"
            )
        return None
    if zone is None:
        return Alignment(seconds, UTC)
    try:
        return Alignment(seconds, ZoneInfo(zone))
    except (OSError, ValueError):  # no such zone, or no name of one
        raise ConfigError(
            f"option {keys.ALIGN_ZONE}={zone!r} is not a known time zone: use a name such as Europe/Berlin; "
            "if the machine has no time zones, run `pip install tzdata`"
        ) from None

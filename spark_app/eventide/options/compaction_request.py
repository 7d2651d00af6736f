"""A user's request for a compaction: arguments take precedence over options."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Final

from eventide_core import config as keys
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.action.freshness.watermark_tags import TagSchedule
from eventide_core.config import EMPTY_VARIABLE, Options, zone_of
from eventide_core.errors import ConfigError
from eventide_core.table.records.event_time import Moment, parse_threshold
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.contents.savepoint_metadata import comments_with_tag

_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class Overrides:
    """The arguments of this compaction. For an argument that is None, the options decide.

    `before` is T, and `data_latency_seconds` how far T is behind the clock; at most one of them is set. The others are texts
    as the options have them: `cut` is file or exact, `link_mode` a link mode or auto, `align` a length such as 1d, to whose
    start in `time_zone` T is floored.
    """

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
    """The request of these options and arguments. Raises ConfigError, InvalidThresholdError."""
    stated: dict[str, object] = {
        keys.DATA_LATENCY: words.data_latency_seconds,
        keys.CUT: words.cut,
        keys.LINK_MODE: words.link_mode,
        keys.ALIGN: words.align,
        keys.ALIGN_ZONE: words.time_zone,
    }
    # T and the data latency exclude each other, so an argument for one of them overrides both options.
    hidden: dict[str, str] = {keys.THRESHOLD: "", keys.DATA_LATENCY: ""} if words.is_for_t else {}
    given = {key: str(value) for key, value in stated.items() if value is not None}
    texts = {keys.THRESHOLD: words.before, **given} if isinstance(words.before, str) else given
    empty = next((key for key, text in texts.items() if not text.strip()), None)
    if empty is not None:
        raise ConfigError(f"option {empty} is given without a value: omit it, or pass one {EMPTY_VARIABLE}")
    options = Options({**values, **hidden, **given})
    threshold = options.get(keys.THRESHOLD) if words.before is None else words.before
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
    return Alignment(seconds, UTC if zone is None else zone_of(zone, f"option {keys.ALIGN_ZONE}="))


def tag_schedule(options: Options) -> TagSchedule | None:
    """The schedule of tags by watermark that the options request; None if they request none. Raises ConfigError."""
    every = options.get(keys.TAG_EVERY)
    if every is None:
        return None
    pattern = options.get(keys.TAG_NAME) or ("%Y-%m-%d" if every == _DAY else "%Y-%m-%dT%H:%M%z")
    try:
        alignment = Alignment(every, zone_of(options.get(keys.TAG_ZONE), f"option {keys.TAG_ZONE}="))
    except ConfigError as error:
        # The error of an alignment names the option of compactions.
        raise ConfigError(str(error).replace(str(keys.ALIGN) + ":", f"{keys.TAG_EVERY}:")) from None
    schedule = TagSchedule(alignment, pattern, options.get(keys.TAG_RETAINED))
    comments_with_tag(schedule.name_of(0), "")  # reports an invalid name before a tag is due
    return schedule

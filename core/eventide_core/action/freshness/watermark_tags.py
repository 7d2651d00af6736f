"""Which tags the watermark asks for: one at the last boundary that it has passed, and none of those that are too old.

1. The boundary is the greatest watermark of the readable views, floored to a day or an hour of a zone.
2. It is tagged unless a tag of this or of a later boundary exists: a late record that lowers the watermark makes no second
   tag. Where a compaction passes several boundaries, its view is one, and the last of them names it.
3. Of the tags by watermark, the latest ones are retained. Tags that a person made are not among them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from eventide_core.action.compaction.threshold_alignment import Alignment
from eventide_core.config.tags import TAG_NAME
from eventide_core.errors import ConfigError

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400
_REMARK: Final = "eventide.tag.watermark="


@dataclass(frozen=True, slots=True)
class TagSchedule:
    """When the view is tagged, how a tag is named, and how many are retained.

    `alignment` has the boundaries at which a tag is due. `pattern` is a strftime pattern for the boundary as local time of
    its zone. `retained` counts tags by watermark only; None: all.
    """

    alignment: Alignment
    pattern: str
    retained: int | None

    def __post_init__(self) -> None:
        """Raises ConfigError for a pattern that gives two boundaries of three days one name."""
        boundaries = range(0, 3 * _DAY, self.alignment.seconds)
        names = {self.name_of(self.alignment.floor(second * 1000)) for second in boundaries}
        if len(names) < len(boundaries):
            raise ConfigError(
                f"option {TAG_NAME}={self.pattern!r} names several tags alike, such as "
                f"{self.name_of(0)!r}: name the day and, for shorter times, the hour and minute"
            )

    def name_of(self, boundary_ms: int) -> str:
        return (_EPOCH + timedelta(milliseconds=boundary_ms)).astimezone(self.alignment.zone).strftime(self.pattern)


@dataclass(frozen=True, slots=True)
class TagChanges:
    """`boundary_ms` is tagged as `name`; both are None if no tag is due. `expired` are names, oldest first."""

    boundary_ms: int | None
    name: str | None
    expired: tuple[str, ...]


def remark_of(boundary_ms: int) -> str:
    """The line in the comments of such a tag's savepoint."""
    return f"{_REMARK}{boundary_ms}"


def boundary_in(remarks: str) -> int | None:
    """The boundary of a tag by watermark; None for any other tag."""
    text = remarks.strip().removeprefix(_REMARK)
    return int(text) if remarks.strip().startswith(_REMARK) and text.lstrip("-").isdecimal() else None


def plan_tags(schedule: TagSchedule, watermark_ms: int | None, tagged: Mapping[str, int]) -> TagChanges:
    """What to tag and what to delete. `tagged` are the boundaries of the tags by watermark, by name."""
    boundary = None if watermark_ms is None else schedule.alignment.floor(watermark_ms)
    if boundary is not None and any(boundary <= other for other in tagged.values()):
        boundary = None
    name = None if boundary is None else schedule.name_of(boundary)
    return TagChanges(boundary, name, _expired(schedule, tagged, is_one_more=boundary is not None))


def _expired(schedule: TagSchedule, tagged: Mapping[str, int], *, is_one_more: bool) -> tuple[str, ...]:
    if schedule.retained is None:
        return ()
    ordered = sorted(tagged, key=lambda name: tagged[name])
    return tuple(ordered[: max(0, len(ordered) + is_one_more - schedule.retained)])

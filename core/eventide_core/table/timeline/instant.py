"""Hudi's instants, and the grammar of timeline file names.

Names of timeline files, `t` the requested time, `c` the completion time:

    version 6:   t.<action>.requested   t.<action>.inflight (commit: t.inflight)   t.<action>
    8 and later: the same for pending states, and t_c.<action> when completed

A compaction is `compaction` while pending and `commit` when completed; a log compaction becomes a `deltacommit`; a
clustering (8 and later) becomes a `replacecommit`. The metadata table of a version 6 table puts three digits after a
time for actions of its own: `t001` is its compaction after `t`.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache

from eventide_core.errors import CorruptTimelineError


class State(StrEnum):
    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"


class Action(StrEnum):
    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    COMPACTION = "compaction"
    LOG_COMPACTION = "logcompaction"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"


COMPLETED_ACTION = {
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
WRITE_ACTIONS = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})
"""Completed actions that hold commit metadata with write stats."""

_ACTIONS = frozenset(str(action) for action in Action)  # `in` takes a plain value from Python 3.12 on only

_REQUESTED_TIME = re.compile(r"\d{14}|\d{17}|\d{20}", re.ASCII)
_NAME = re.compile(
    rf"(?P<requested>{_REQUESTED_TIME.pattern})"
    r"(?:_(?P<completion>\d{14}|\d{17}))?"
    r"(?:\.(?P<action>[a-z]+))?(?:\.(?P<state>requested|inflight))?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """One action on the timeline, in one state. Times are Hudi's `yyyyMMddHHmmssSSS`, compared as strings.

    `requested_time` identifies it among all but savepoints, which have their commits'. `action` is as in the file name: a
    compaction is `compaction` while pending and `commit` once completed. `state` is the file's; on a Timeline, the
    latest one. `completion_time` is None while pending, and always in table version 6, which does not record it.
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None

    @property
    def is_completed(self) -> bool:
        return self.state is State.COMPLETED

    @property
    def is_undoing(self) -> bool:
        """Whether it is a rollback or a restore."""
        return self.action in (Action.ROLLBACK, Action.RESTORE)

    @property
    def is_pending_plan(self) -> bool:
        """Whether it is a compaction, log compaction or clustering that has not completed.

        In version 6 a clustering is a pending replacecommit, and so is an insert overwrite; both exclude a plan.
        """
        return not self.is_completed and (self.action in COMPLETED_ACTION or self.action is Action.REPLACE_COMMIT)

    @classmethod
    @lru_cache(maxsize=1 << 14)  # a timeline is listed many times in its life, and its names never change their meaning
    def parse(cls, name: str) -> "Instant | None":
        """The instant that a timeline file's name stands for; None for any other file."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        requested, completion, action, state = match.group("requested", "completion", "action", "state")
        if action == "inflight" and state is None:  # version 6 and later alike: a commit's inflight has no action
            action, state = "commit", "inflight"
        if action not in _ACTIONS or (completion is not None and state is not None):
            return None
        return cls(requested, Action(action), State(state) if state else State.COMPLETED, completion)

    @property
    def file_name(self) -> str:
        """The name of the timeline file of this state."""
        if self.state is State.COMPLETED:
            times = f"{self.requested_time}_{self.completion_time}" if self.completion_time else self.requested_time
            return f"{times}.{self.action}"
        if self.action is Action.COMMIT and self.state is State.INFLIGHT:
            return f"{self.requested_time}.inflight"
        return f"{self.requested_time}.{self.action}.{self.state}"


@lru_cache(maxsize=4096)  # a table has few instants, and many blocks of each
def is_instant_time(text: str) -> bool:
    """Whether the text is a requested time in the form of timeline file names."""
    return _REQUESTED_TIME.fullmatch(text) is not None


def instant_time(epoch_ms: int) -> str:
    """Epoch milliseconds as an instant time, `yyyyMMddHHmmssSSS` in UTC."""
    moment = datetime.fromtimestamp(epoch_ms // 1000, UTC)
    return f"{moment:%Y%m%d%H%M%S}{epoch_ms % 1000:03d}"


def instant_epoch_ms(time: str) -> int:
    """An instant time of 14 or 17 digits, taken as UTC, as epoch milliseconds.

    Raises CorruptTimelineError if the digits are not a date.
    """
    try:
        moment = datetime.fromisoformat(f"{time[:8]}T{time[8:14]}+00:00")
    except ValueError as error:
        raise _no_time(time) from error
    return int(moment.timestamp()) * 1000 + int(time[14:] or 0)


def next_instant_time(time: str) -> str:
    """The instant time one millisecond later. Raises CorruptTimelineError if there is none."""
    try:
        return instant_time(instant_epoch_ms(time) + 1)
    except (ValueError, OverflowError) as error:
        raise _no_time(time) from error


def _no_time(time: str) -> CorruptTimelineError:
    return CorruptTimelineError(
        f"the timeline has an instant {time[:20]!r}, which is not a time, or the last possible one; "
        "remove it if nobody wrote it, or undo it with the engine that did"
    )

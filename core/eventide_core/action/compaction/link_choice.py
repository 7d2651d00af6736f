"""How the left-overs of a plan stay visible, and the compaction's instant.

1. Back-dated below the left-overs if the whole plan allows it (`prefix`; docs/invariants.md, step 1): no file is
   needed.
2. Otherwise, a new instant and a file for each left-over: a symbolic link if the storage supports them, if every reader
   and service of the table is declared to resolve links, and if a copy would be transferred over the network (HDFS);
3. otherwise a copy.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eventide_core.action.compaction.quiet_moment import BackdatingFacts, open_at, why_not_back_to
from eventide_core.action.compaction.slice_selection import Selection
from eventide_core.config import LinkChoice
from eventide_core.errors import RefusedError
from eventide_core.table.timeline.contents.plans import LinkMode
from eventide_core.table.timeline.instant import next_instant_time
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class LinkChoiceFacts:
    """The facts that decide the link mode.

    `choice` is what the user wants: a mode, or AUTO. `is_exclusive`: the table's owner declares that every reader and
    service of it resolves links. `has_symlinks` and `has_server_copies` are capabilities of the storage; both are False if
    they were not tested, because they would not matter. `moment` is the quiet moment that the plan is made for
    (quiet_moment.py), and the compaction's instant unless it is back-dated; `back` has the limits for that.
    """

    choice: LinkChoice
    is_exclusive: bool
    has_symlinks: bool
    has_server_copies: bool
    layout: Layout
    moment: str
    back: BackdatingFacts


@dataclass(frozen=True, slots=True)
class LinkDecision:
    """What `choose_link` answers.

    Where nothing is left over, `mode` has no effect. `instant` is the compaction's: the quiet moment, or with PREFIX one
    that is back-dated below the left-overs. `reason` states for people why it is this mode, and goes into the plan.
    """

    mode: LinkMode
    instant: str
    reason: str


def choose_link(selections: Sequence[Selection], facts: LinkChoiceFacts) -> LinkDecision:
    """How left-overs stay visible, and the compaction's instant.

    Raises RefusedError if the mode that was requested would not be safe.
    """
    if facts.choice is LinkChoice.SYMLINK:
        _require_symlinks(facts)
    if facts.choice in (LinkChoice.SYMLINK, LinkChoice.HARDLINK, LinkChoice.COPY):
        return LinkDecision(LinkMode(facts.choice), facts.moment, "asked for")
    if not any(selection.in_old_slice for selection in selections):
        return LinkDecision(LinkMode.COPY, facts.moment, "nothing is left over, so no link is needed")
    instant, why_not = _backdated_instant(selections, facts)
    if instant is not None:
        return LinkDecision(
            LinkMode.PREFIX,
            instant,
            (f"every merged log file completed before {instant}, and every left-over after it: no file is needed"),
        )
    if facts.choice is LinkChoice.PREFIX:
        raise RefusedError(f"link mode prefix is not possible here: {why_not}; use copy or auto")
    if facts.is_exclusive and facts.has_symlinks and not facts.has_server_copies:
        why = f"prefix is not possible: {why_not}; every reader resolves links, and copies would cross the network"
        return LinkDecision(LinkMode.SYMLINK, facts.moment, why)
    return LinkDecision(LinkMode.COPY, facts.moment, f"prefix is not possible: {why_not}")


def _require_symlinks(facts: LinkChoiceFacts) -> None:
    if not facts.is_exclusive:
        raise RefusedError(
            "link mode symlink: stock readers see no rows through symbolic links, and stock cleaners delete "
            "their targets; set eventide.table.exclusive=true if every reader and service of the table "
            "resolves links, or use copy or auto"
        )
    if not facts.has_symlinks:
        raise RefusedError(
            "link mode symlink: the storage doesn't support symbolic links, or has them turned off; use copy or auto"
        )


def _backdated_instant(selections: Sequence[Selection], facts: LinkChoiceFacts) -> tuple[str | None, str]:
    """An instant between the merged log files and the left-overs, or why there is none (docs/invariants.md, step 1)."""
    timeline = facts.back.timeline
    if not facts.layout.names_logs_by_write:
        return None, "table version 6 assigns log files to slices by name, not by completion time"
    if any(selection.carried_tombstones for selection in selections):
        return None, "the compaction carries tombstones, which need a file"
    if any(selection.early for selection in selections):
        return None, (
            "the compaction takes records from log files that stay, and a reader of an earlier instant would see them"
        )
    if not all(selection.is_alike_in_time for selection in selections):
        return (
            None,
            (
                "as of an instant between the left-overs, a reader of the new base file would see another "
                "version of a key"
            ),
        )
    merged = {fact.log_file.name.instant for s in selections for fact in s.compacted}
    left = {fact.log_file.name.instant for s in selections for fact in s.left_overs}
    after = max(_completion(timeline, requested) for requested in merged)
    before = min(min(_completion(timeline, requested), requested) for requested in left)
    instant = next_instant_time(after)
    while instant in facts.back.used_times:
        instant = next_instant_time(instant)
    if instant > before:
        return None, f"a merged log file completed at {after}, but a left-over was requested at {before}"
    across = open_at(timeline, instant)
    if across:
        return None, f"the write requested at {across[0].requested_time} was open at {instant}"
    why_not = why_not_back_to(instant, facts.back)
    return (None, why_not) if why_not else (instant, "")


def _completion(timeline: Timeline, requested: str) -> str:
    completion = timeline.completion_time(requested)
    assert completion is not None  # the view holds log files of completed instants only
    return completion

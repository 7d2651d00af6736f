"""Decides which files to clean: Hudi's policies over the file slices, except files that are still needed.

1. The earliest write to retain. By commits: the nth last completed write, but none after the first pending one. By hours:
   the first completed write that is not older. By file versions there is none.
2. A file group that a replacecommit replaced before that write is removed as a whole (by file versions: any replaced group).
3. Of every other file group the latest slice stays. By commits and by hours: the slices from the earliest write on, and
   the one below them, which was current when the retained time began. By file versions: the latest n.
4. Whatever is needed stays, with its whole slice: by a savepoint, by a pending plan, or by a consumer of windows that still
   reads it.
5. What a link leads to stays, through any chain of links, unless the link is removed, too: a left-over's link is the
   left-over.
6. Left-overs of a compaction that another engine has rolled back are removed: nothing needs them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Instant
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class CleanTerms:
    """The `policy` and what it retains; the other policies' fields are not read.

    `commits` are the last completed writes whose slices stay, `file_versions` the latest slices of a file group.
    `retained_since` is the instant time from which on writes stay if they are kept by hours.
    """

    policy: CleaningPolicy
    commits: int
    file_versions: int
    retained_since: str


@dataclass(frozen=True, slots=True)
class CleanFacts:
    """What decides about a file; all paths are relative to the table's root.

    `slices` are all of a file group, by base instant. `replaced_at` has the instant of the completed replacecommit that
    replaced a file group. `needed`: paths that savepoints, pending compactions and consumers of windows need. `links`: each
    link's path and where it leads, one hop. `strays` are paths of left-overs of compactions that were rolled back.
    """

    timeline: Timeline
    slices: Mapping[FileGroup, Sequence[FileSlice]]
    replaced_at: Mapping[FileGroup, str]
    needed: Collection[str]
    links: Mapping[str, str]
    strays: Collection[str]


@dataclass(frozen=True, slots=True)
class CleanDecision:
    """The paths that a clean removes, and those that it keeps only because a link leads to them.

    These are `deleted` and `kept_targets`, both sorted, and relative to the table's root. `earliest_to_retain` is the first
    write whose slices stay; None if the policy does not go by time, or keeps all.
    """

    earliest_to_retain: Instant | None
    deleted: tuple[str, ...]
    kept_targets: tuple[str, ...]


def decide_clean(facts: CleanFacts, terms: CleanTerms) -> CleanDecision:
    """What to clean now."""
    earliest = earliest_to_retain(facts.timeline, terms)
    to_delete = set(facts.strays)
    for group, slices in facts.slices.items():
        for file_slice in _old_slices(facts, terms, group, slices, earliest):
            paths = paths_of(file_slice)
            if not any(path in facts.needed for path in paths):
                to_delete.update(paths)
    kept = linked_targets(to_delete, facts.links)
    return CleanDecision(earliest, tuple(sorted(to_delete - kept)), tuple(sorted(kept)))


def earliest_to_retain(timeline: Timeline, terms: CleanTerms) -> Instant | None:
    """The first write whose slices stay; None if nothing may go by time."""
    completed = timeline.writes
    match terms.policy:
        case CleaningPolicy.FILE_VERSIONS:
            return None
        case CleaningPolicy.HOURS:
            return next((i for i in completed if i.requested_time >= terms.retained_since), None)
        case CleaningPolicy.COMMITS:
            if len(completed) <= terms.commits:
                return None
            writes = [i for i in timeline.instants if i.action in WRITE_ACTIONS]
            nth = writes[len(completed) - terms.commits] if terms.commits else writes[-1]
            pending = next((i for i in writes if not i.is_completed), None)
            if pending is None or nth.requested_time <= pending.requested_time:
                return nth
            return next((i for i in reversed(writes) if i.requested_time < pending.requested_time), None)


def linked_targets(to_delete: Collection[str], links: Mapping[str, str]) -> set[str]:
    """The files among `to_delete` to which a remaining link leads, directly or through other links."""
    kept: set[str] = set()
    waiting = [link for link in links if link not in to_delete]
    while waiting:
        target = links.get(waiting.pop())
        if target is not None and target not in kept:
            if target in to_delete:
                kept.add(target)
            waiting.append(target)
    return kept


def paths_of(file_slice: FileSlice) -> tuple[str, ...]:
    """The files of a slice."""
    base = () if file_slice.base_file is None else (file_slice.base_file.path,)
    return (*base, *(log.path for log in (*file_slice.log_files, *file_slice.change_log_files)))


def _old_slices(
    facts: CleanFacts,
    terms: CleanTerms,
    group: FileGroup,
    slices: Sequence[FileSlice],
    earliest: Instant | None,
) -> Iterable[FileSlice]:
    """The slices that the policy no longer retains."""
    replaced = facts.replaced_at.get(group)
    if terms.policy is CleaningPolicy.FILE_VERSIONS:
        return slices if replaced is not None else _below_latest(facts, slices, terms.file_versions)
    if earliest is None:
        return ()
    if replaced is not None and replaced < earliest.requested_time:
        return slices
    # The last one from before the earliest write may be the latest slice, or the one below: it stays, too.
    return [file_slice for file_slice in slices if file_slice.base_instant < earliest.requested_time][:-1]


def _below_latest(facts: CleanFacts, slices: Sequence[FileSlice], count: int) -> list[FileSlice]:
    """The slices below the latest n. As in Hudi, a slice that is needed anyway doesn't count."""
    old: list[FileSlice] = []
    for file_slice in reversed(slices):
        if count == 0:
            old.append(file_slice)
        elif not any(path in facts.needed for path in paths_of(file_slice)):
            count -= 1
    return old

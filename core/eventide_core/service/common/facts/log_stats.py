"""What the write stats of a table's commits state about its log files, so that these don't have to be opened.

1. A stat describes what its commit wrote. It does not describe a file with anything else: one that has grown since
   (version 6 appends), one to which this commit appended, or one that several commits name. Nor does it describe the result
   of a log compaction, whose blocks stand for others.
2. eventide's commits state the field of their ranges, and that no record or delete is outside these ranges.
3. Hudi's commits state neither. They are trusted if the user gives both options of the writers that track the field, and
   if no record can lack an event time: Hudi omits nulls from a stat, but not from the file. It also omits every number that
   has not 10 or 13 characters, such as 0 (WriteStatus.markSuccess). No stat shows that, so the options state it, too.
   They are not trusted if there are deletes, because a stat contains only the range of some kinds of them. Nor are they
   trusted if the write filled several log files of one file group: HoodieAppendHandle counts a record for the log file
   that is open when it buffers the record, and may write it to the next one.
   Nor are they trusted if the stats of one commit all state the same range, or its extra metadata names
   `hoodie.write.track.event.time.propagate.from.upstream`: such a writer gives each stat the range of the commits that it
   derives from, which is not evidence about the file.
4. No stat states the kinds of blocks in a log file. For eventide's log files, they are known. For others, headers are
   read before a plan is made. A left-over has the kinds of its original log file.
   The settings of a write decide whether Hudi's data blocks contain partial updates (HoodieAppendHandle adds IS_PARTIAL
   to each block by shouldWritePartialUpdates alone), and one write has one of them. From version 8 on, a log file
   named after its write contains only that write. So the headers of one such log file stand for all of the write.
5. A left-over's file has the same content as its original log file. Its own stat, from the compaction that made it,
   contains what was known of that log file then, which may have taken a scan. Otherwise, the stat of the original log
   file applies, through any number of compactions.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.timeline.contents.commit_metadata import (
    EVENT_TIMES_KEY,
    LOG_COMPACT,
    WRITER_KEY,
    CommitMetadata,
    WriteStat,
)
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata

_NOTHING: Final = frozenset[str]()  # shared: an empty set takes as much memory as one with an instant


def from_stats(
    state: TableState, logs: Iterable[LogFile], event_time_source: str | None, *, are_stats_proof: bool
) -> dict[str, LogFacts]:
    """The facts of the log files that a write stat describes, by path.

    `are_stats_proof`: Hudi's stats are trusted, see above.
    """
    # The log file that each left-over's file is a link or copy of.
    origins = {path: of for publication in state.publications.values() for path, of in publication.origins.items()}
    wanted = {log.path: log for log in logs}
    # A log file that isn't a left-over has its own path alone.
    chains = {path: tuple(_same_content(path, origins)) for path in wanted if path in origins} if origins else {}
    # The stat of each log file: () if there is none so far, None if one is of no use or there are several.
    stats: dict[str, tuple[_CommitRanges, WriteStat] | tuple[()] | None] = dict.fromkeys(wanted, ())
    stats.update(dict.fromkeys(itertools.chain.from_iterable(chains.values()), ()))
    for time, commit in state.commits.items():
        if commit.operation_type == LOG_COMPACT:
            continue
        ranges = _CommitRanges.of(state, time, event_time_source, are_stats_proof=are_stats_proof)
        for stat in commit.stats:
            path = stat.path
            known = stats.get(path)
            if known is not None:
                stats[path] = None if ranges is None or known else (ranges, stat)
    by_path: dict[str, LogFacts] = {}
    # Slice by slice, so that the facts of one lie together in memory.
    for (path, log), own in zip(wanted.items(), stats.values(), strict=False):
        if not own or path in chains:
            continue
        ranges, stat = own
        facts = ranges.facts(stat, log, ranges.check(log))
        if facts is not None:
            by_path[path] = facts
    for path, same in chains.items():
        chain = [pair for other in same if (pair := stats.get(other))]
        is_ours = any(ranges.is_writer for ranges, _ in chain)
        check = HeaderCheck.NONE if is_ours else HeaderCheck.OF_FILE
        known_facts = (facts for by, stat in chain if (facts := by.facts(stat, wanted[path], check)) is not None)
        facts = next(known_facts, None)
        if facts is not None:
            by_path[path] = facts
    return by_path


@dataclass(frozen=True, slots=True)
class _CommitRanges:
    """A commit whose stats state event times: `is_whole`, of every record and delete.

    `is_writer`: eventide wrote the log files. `has_own_files`: a log file named after it contains nothing else.
    `deletes` are the left-overs' deletes, by path. `rolled_over` are the file groups of which the commit's writer, if
    that is Hudi, filled several log files.
    """

    instants: frozenset[str]
    is_whole: bool
    is_writer: bool
    has_own_files: bool
    deletes: Mapping[str, int]
    rolled_over: frozenset[tuple[str, str]]

    @classmethod
    def of(
        cls, state: TableState, time: str, event_time_source: str | None, *, are_stats_proof: bool
    ) -> "_CommitRanges | None":
        """The range of a stat; None if the stat has none, or describes another field."""
        commit = state.commits[time]
        named = commit.extra_metadata.get(EVENT_TIMES_KEY)
        if (
            event_time_source is None
            or named not in (event_time_source, None)
            or (named is None and not are_stats_proof)
        ):
            return None
        if named is None and _is_of_upstream(commit):
            return None
        published = CompactionExtraMetadata.of(time, commit)
        deletes: Mapping[str, int] = {} if published is None else published.deletes
        is_writer, has_own_files = WRITER_KEY in commit.extra_metadata, state.config.layout.names_logs_by_write
        rolled_over = _rolled_over(commit.stats) if named is None else frozenset[tuple[str, str]]()
        return cls(frozenset({time}), named is not None, is_writer, has_own_files, deletes, rolled_over)

    def check(self, log: LogFile) -> HeaderCheck:
        """What has to be checked of a log file that it alone wrote."""
        if self.is_writer:
            return HeaderCheck.NONE
        return HeaderCheck.OF_WRITE if self.has_own_files and log.name.instant in self.instants else HeaderCheck.OF_FILE

    def facts(self, stat: WriteStat, log: LogFile, check: HeaderCheck) -> LogFacts | None:
        if not stat.total_write_bytes == stat.file_size_bytes == log.size:
            return None
        if (event_times := stat.event_time_range) is None:
            return None
        deletes = stat.num_deletes
        if not self.is_whole and (deletes or stat.num_writes == 0):
            return None
        if self.rolled_over and (stat.partition, stat.file_id) in self.rolled_over:
            return None
        if not deletes and self.deletes:
            deletes = self.deletes.get(stat.path, 0)
        return LogFacts(
            log,
            event_times,
            self.instants,
            deletes,
            rolled_back=_NOTHING,
            check=check,
            has_merged_block=False,
            uncompacted=event_times,
        )


def _is_of_upstream(commit: CommitMetadata) -> bool:
    """Whether the ranges of Hudi's stats are, or may be, the ranges of commits that a derived table was made from."""
    if any(key.endswith("event.time.propagate.from.upstream") for key in commit.extra_metadata):
        return True
    ranges = [times for stat in commit.stats if (times := stat.event_time_range) is not None]
    return len(ranges) > 1 and all(times == ranges[0] for times in ranges)


def _rolled_over(stats: Iterable[WriteStat]) -> frozenset[tuple[str, str]]:
    counts = Counter((stat.partition, stat.file_id) for stat in stats if stat.log_version is not None)
    return frozenset([group for group, count in counts.items() if count > 1])


def _same_content(path: str, origins: Mapping[str, str]) -> Iterator[str]:
    """A log file, and the log files with the same content, up to the one that a writer made."""
    yield path
    for _ in origins:  # no chain is longer, and a damaged one may be a cycle
        if path not in origins:
            return
        path = origins[path]
        yield path

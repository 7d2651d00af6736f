"""What the write stats of a table's commits state about its log files, so that no one has to open them.

1. A stat describes a file as it was when its commit completed: not of one that has grown since (version 6 appends), nor
   of one that several commits name, nor of what a log compaction merged, whose blocks stand for others.
2. eventide's commits say of which field their ranges are, and that no record or delete lies outside them.
3. Hudi's say neither. They are believed where the user names the field that writers track, and where no record can lack an
   event time: Hudi leaves nulls out of a stat, but not out of the file. Where there are deletes, they are not: a stat holds
   the range of some kinds alone.
4. Which kinds of blocks a log file holds no stat says; in eventide's own they are known, of others the headers are read
   before a plan is made. A left-over is known by the log file that it is of.
5. A left-over's file holds the same as the log file that it is of. Its own stat, of the compaction that made it, tells
   what was known of that log file then, which may have taken a scan; otherwise, the stat of the log file tells, through
   any number of compactions.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from eventide_core.action.slice_selection import LogFacts
from eventide_core.service.state.table import TableState
from eventide_core.table.commit_metadata import EVENT_TIMES_KEY, LOG_COMPACT, WRITER_KEY, CommitMetadata, WriteStat
from eventide_core.table.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.file_slice import LogFile

_NOTHING: Final = frozenset[str]()  # shared: an empty set takes as much memory as one with an instant


def from_stats(
    state: TableState, logs: Iterable[LogFile], event_time_field: str | None, *, are_stats_proof: bool
) -> dict[str, LogFacts]:
    """The facts of those log files that a write stat describes, by path. `are_stats_proof`: Hudi's stats are, see above."""
    origins = _origins(state)
    places = {log.path: (log, tuple(_same_content(log.path, origins))) for log in logs}
    wanted = {path for _, paths in places.values() for path in paths}
    said: dict[str, tuple[_Teller, WriteStat] | None] = {}
    for time, commit in state.commits.items():
        if commit.operation_type == LOG_COMPACT:
            continue
        teller = _Teller.of(time, commit, event_time_field, are_stats_proof=are_stats_proof)
        for stat in commit.stats:
            if stat.path in wanted:
                said[stat.path] = None if teller is None or stat.path in said else (teller, stat)
    found: dict[str, LogFacts] = {}
    for log, paths in places.values():
        tellers = (pair for path in paths if (pair := said.get(path)) is not None)
        chain = tuple(tellers)
        facts = next((facts for teller, stat in chain if (facts := teller.facts(stat, log)) is not None), None)
        if facts is not None:
            found[log.path] = replace(facts, needs_check=not any(teller.is_writer for teller, _ in chain))
    return found


@dataclass(frozen=True, slots=True)
class _Teller:
    """A commit whose stats state event times: `is_whole`, of every record and delete.

    `is_writer`: eventide wrote the log files. `deletes` are those of left-overs' files, by path.
    """

    instants: frozenset[str]
    is_whole: bool
    is_writer: bool
    deletes: Mapping[str, int]

    @classmethod
    def of(
        cls, time: str, commit: CommitMetadata, event_time_field: str | None, *, are_stats_proof: bool
    ) -> "_Teller | None":
        """The range of a stat; None if the stat has none, or describes another field."""
        named = commit.extra_metadata.get(EVENT_TIMES_KEY)
        if event_time_field is None or named not in (event_time_field, None) or (named is None and not are_stats_proof):
            return None
        published = CompactionExtraMetadata.of(time, commit)
        deletes: Mapping[str, int] = {} if published is None else published.deletes
        return cls(frozenset({time}), named is not None, WRITER_KEY in commit.extra_metadata, deletes)

    def facts(self, stat: WriteStat, log: LogFile) -> LogFacts | None:
        event_times = stat.event_time_range
        if event_times is None or stat.file_size_bytes != log.size:
            return None
        if not self.is_whole and (stat.num_deletes or stat.num_writes == 0):
            return None
        return LogFacts(
            log,
            event_times,
            self.instants,
            stat.num_deletes or self.deletes.get(stat.path, 0),
            rolled_back=_NOTHING,
            needs_check=True,
            has_merged_block=False,
            uncompacted=event_times,
        )


def _origins(state: TableState) -> dict[str, str]:
    """Of each left-over's file the log file that it is a link to or a copy of, one hop; by path."""
    return {path: of for said in state.publications.values() for path, of in said.origins.items()}


def _same_content(path: str, origins: Mapping[str, str]) -> Iterator[str]:
    """A log file, and the log files that it holds the same as, up to the one that a writer made."""
    yield path
    for _ in origins:  # no chain is longer, and a damaged one may be a cycle
        if path not in origins:
            return
        path = origins[path]
        yield path

"""What is known of each log file's content: from write stats where they tell, else by asking the content once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from eventide_core.action.slice_selection import LogFacts
from eventide_core.ports import Engine, LogContent, LogSummary
from eventide_core.service.needed_files import LEFT_OVER_VERSION
from eventide_core.service.table import TableState
from eventide_core.table.commit_metadata import LOG_COMPACT, WRITER_KEY, WriteStat
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import path_in
from eventide_core.table.file_slice import LogFile
from eventide_core.table.publication import Publication
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter

T = TypeVar("T")

_PORTIONS_MAX: Final = 1000  # tasks in which logs are asked: enough for many threads or executors, few to schedule


@dataclass(slots=True)
class LogFactsReader:
    """Answers for the logs of one table; a log file never changes under its name, so each is asked at most once.

    What of it is in a base already is asked of the timeline each time: a commit may have merged it since.

    A write stat tells the range only where the writer tracked it, where the file was written by that commit alone, where
    no record can lack an event time (Hudi's writers leave nulls out of the stat, but not out of the file), and where the
    field is known to be the one that the writer tracked: a stat does not name it. Of a left-over's file the stat of the log
    that it is of tells. Which kinds of blocks a log holds a stat never says; of a log that eventide wrote they are known, of
    any other one its headers are read before a plan is made.
    """

    content: LogContent
    engine: Engine
    _known: dict[tuple[str, int, str | None], LogFacts] = field(
        default_factory=dict[tuple[str, int, str | None], LogFacts]
    )
    _checked: set[tuple[tuple[str, int], ...]] = field(default_factory=set[tuple[tuple[str, int], ...]])

    def read(
        self, state: TableState, shape: RecordShape, logs: Iterable[LogFile], *, are_stats_proof: bool
    ) -> dict[str, LogFacts]:
        """The facts of each log, by path. `are_stats_proof`: what a write stat says holds for every record."""
        wanted = tuple(logs)
        self._forget_gone(state)
        unknown = [log for log in wanted if (log.path, log.size, shape.event_time_field) not in self._known]
        if unknown and are_stats_proof:
            told = _told_by_stats(state, unknown)
            self._known.update({(path, told[path].log.size, shape.event_time_field): told[path] for path in told})
            unknown = [log for log in unknown if log.path not in told]
        for log, summary in zip(unknown, self._summarize(unknown, shape), strict=True):
            self._known[log.path, log.size, shape.event_time_field] = LogFacts(
                log,
                summary.event_times,
                summary.instants,
                summary.delete_count,
                summary.taken_back,
                summary.has_torn_block,
                summary.has_merged_block,
                waiting=summary.event_times,
            )
        known = [self._known[log.path, log.size, shape.event_time_field] for log in wanted]
        in_base = _in_base(state, known)
        return {fact.log.path: _still_waiting(fact, in_base) for fact in known}

    def _forget_gone(self, state: TableState) -> None:
        """Lets the facts of logs go that are no longer there: a service asks for as long as it lives."""
        if len(self._known) > 2 * len(state.listing):
            there = {file.path for file in state.listing}
            self._known = {key: fact for key, fact in self._known.items() if key[0] in there}

    def check(self, slices: Iterable[tuple[LogFile, ...]], blocks: BlockFilter) -> None:
        """Raises what a merge would raise for the blocks of these slices' logs; those of the question before are known.

        All logs of a slice go together, for a rollback block in one takes back blocks of another.
        """
        named = ((tuple((log.path, log.size) for log in logs), logs) for logs in slices)
        asked = dict(named)
        unchecked = tuple(logs for names, logs in asked.items() if names not in self._checked)
        self.engine.map(_CheckBlocks(self.content, blocks), _portions(unchecked))
        self._checked = set(asked)

    def _summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogSummary]:
        portions = self.engine.map(_Summarize(self.content, shape), _portions(logs))
        return [summary for portion in portions for summary in portion]


@dataclass(frozen=True, slots=True)
class _CheckBlocks:
    """A picklable call of LogContent.check_blocks."""

    content: LogContent
    blocks: BlockFilter

    def __call__(self, slices: Sequence[tuple[LogFile, ...]]) -> None:
        for logs in slices:
            self.content.check_blocks(logs, self.blocks)


@dataclass(frozen=True, slots=True)
class _Summarize:
    """A picklable call of LogContent.summarize."""

    content: LogContent
    shape: RecordShape

    def __call__(self, logs: Sequence[LogFile]) -> list[LogSummary]:
        return [self.content.summarize(log, self.shape) for log in logs]


def _portions(items: Sequence[T]) -> list[Sequence[T]]:
    """The items in their order, some in each portion: many small questions are not worth a task each."""
    size = -(-len(items) // _PORTIONS_MAX)
    return [items[start : start + size] for start in range(0, len(items), size)] if items else []


def _told_by_stats(state: TableState, logs: Iterable[LogFile]) -> dict[str, LogFacts]:
    """The facts of those logs that one commit alone wrote, and whose range its write stat tells, by path.

    Not by those of log compactions: their logs hold blocks that stand for others, which only the logs themselves say.
    """
    origins = _origins(state)
    wanted: dict[str, list[LogFile]] = {}
    for log in logs:
        wanted.setdefault(_origin_of(log.path, origins), []).append(log)
    found: dict[str, LogFacts | None] = {}
    for time, metadata in state.commits.items():
        if metadata.operation_type == LOG_COMPACT:
            continue
        instants, needs_check = frozenset({time}), WRITER_KEY not in metadata.extra_metadata
        for stat in metadata.stats:
            for log in wanted.get(stat.path, ()):
                is_first = log.path not in found
                found[log.path] = _told_by(stat, log, instants, needs_check) if is_first else None
    return {path: told for path, told in found.items() if told is not None}


def _origins(state: TableState) -> dict[str, str]:
    """Of each left-over's file the log that it is a link to or a copy of, one hop; by path."""
    links = (said.links for said in state.publications.values())
    return {path: path_in(path.rpartition("/")[0], name) for made in links for path, name in made.items()}


def _origin_of(path: str, origins: Mapping[str, str]) -> str:
    """The log that a writer made, which a left-over's file holds the same as, through any number of compactions."""
    for _ in origins:  # no chain is longer, and what is damaged may be a ring
        if path not in origins:
            break
        path = origins[path]
    return path


def _told_by(stat: WriteStat, log: LogFile, instants: frozenset[str], needs_check: bool) -> LogFacts | None:
    event_times = stat.event_time_range
    # A delete is no record of the stat's range; and a left-over's stat, which we wrote, names the compaction.
    if event_times is None or stat.num_deletes or stat.num_writes == 0 or stat.file_size_bytes != log.size:
        return None
    return LogFacts(
        log,
        event_times,
        instants,
        0,
        taken_back=frozenset(),
        needs_check=needs_check,
        has_merged_block=False,
        waiting=event_times,
    )


def _in_base(state: TableState, facts: Sequence[LogFacts]) -> dict[str, int | None]:
    """The logs that are in their base in part or in whole, by path; see Publication.waiting.

    The compaction that gave a log its name tells. The archive is asked for one that has left the active timeline only where
    a left-over of it has something before the cut: no other was merged early. What a pending compaction has made, which on
    version 6 is in the slice already, waits with the log that it is of.
    """
    pending = {fact.log.path: None for fact in facts if _is_left_over_of_pending(state, fact.log)}
    active = state.publications
    told = [active[time] for time in {fact.log.name.instant for fact in facts} & active.keys()]
    doubtful = [fact for fact in facts if _is_left_over_of_archived(state, fact.log)]
    cut_ms = state.cut_ms if doubtful else None
    if cut_ms is not None:
        archived = {fact.log.name.instant for fact in doubtful if fact.event_times.starts_before(cut_ms)}
        for time in sorted(archived):
            commit = state.archive.commit(time)
            said = None if commit is None else Publication.of(time, commit)
            told += [] if said is None else [said]
    return {path: since for said in told for path, since in said.waiting.items()} | pending


def _is_left_over_of_pending(state: TableState, log: LogFile) -> bool:
    found = state.timeline.find(log.name.instant)
    is_left_over = not state.config.slices_by_completion_time and log.name.version == LEFT_OVER_VERSION
    return is_left_over and found is not None and not found.is_completed


def _is_left_over_of_archived(state: TableState, log: LogFile) -> bool:
    """Whether an archived compaction of eventide gave the log its name, as far as names tell."""
    time = log.name.instant
    if time not in state.compactions or not state.timeline.is_archived(time):
        return False
    return state.config.slices_by_completion_time or log.name.version == LEFT_OVER_VERSION


def _still_waiting(fact: LogFacts, in_base: Mapping[str, int | None]) -> LogFacts:
    if fact.log.path not in in_base:
        return fact
    since = in_base[fact.log.path]
    return replace(fact, waiting=EventTimeRange(None, None) if since is None else fact.event_times.since(since))

"""What is known of each log file's content: from write stats where they tell, else by asking the content once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eventide_core.action.slice_selection import LogFacts
from eventide_core.ports import Engine, LogContent, LogSummary
from eventide_core.service.needed_files import LEFT_OVER_VERSION
from eventide_core.service.table import TableState
from eventide_core.table.commit_metadata import LOG_COMPACT, WriteStat
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_name import path_in
from eventide_core.table.file_slice import LogFile
from eventide_core.table.publication import Publication
from eventide_core.table.record_shape import RecordShape
from eventide_core.table.slice_read import BlockFilter


@dataclass(slots=True)
class LogFactsReader:
    """Answers for the logs of one table; a log file never changes under its name, so each is asked at most once.

    What of it is in a base already is asked of the timeline each time: a commit may have merged it since.

    A write stat tells the range only where the writer tracked it, where the file was written by that commit alone, where
    no record can lack an event time (Hudi's writers leave nulls out of the stat, but not out of the file), and where the
    field is known to be the one that the writer tracked: a stat does not name it. Of a left-over's file the stat of the log
    that it is of tells.
    """

    content: LogContent
    engine: Engine
    _known: dict[tuple[str, int, str | None], LogFacts] = field(
        default_factory=dict[tuple[str, int, str | None], LogFacts]
    )
    _checked: set[tuple[LogFile, ...]] = field(default_factory=set[tuple[LogFile, ...]])

    def read(
        self, state: TableState, shape: RecordShape, logs: Iterable[LogFile], *, are_stats_proof: bool
    ) -> dict[str, LogFacts]:
        """The facts of each log, by path. `are_stats_proof`: what a write stat says holds for every record."""
        wanted = tuple(logs)
        missing = [log for log in wanted if (log.path, log.size, shape.event_time_field) not in self._known]
        stats = _single_stats(state) if are_stats_proof and missing else {}
        origins = _origins(state) if stats else {}
        unknown: list[LogFile] = []
        for log in missing:
            told = _told_by(stats.get(_origin_of(log.path, origins)), log)
            if told is not None:
                self._known[log.path, log.size, shape.event_time_field] = told
            else:
                unknown.append(log)
        for log, summary in zip(unknown, self._summarize(unknown, shape), strict=True):
            self._known[log.path, log.size, shape.event_time_field] = LogFacts(
                log,
                summary.event_times,
                summary.instants,
                summary.delete_count,
                summary.has_rollback_block,
                summary.has_torn_block,
                summary.has_merged_block,
                waiting=summary.event_times,
            )
        known = [self._known[log.path, log.size, shape.event_time_field] for log in wanted]
        in_base = _in_base(state, known)
        return {fact.log.path: _still_waiting(fact, in_base) for fact in known}

    def check(self, slices: Iterable[tuple[LogFile, ...]], blocks: BlockFilter) -> None:
        """Raises what a merge would raise for the blocks of these slices' logs, each asked at most once.

        All logs of a slice go together, for a rollback block in one takes back blocks of another.
        """
        unchecked = [logs for logs in slices if logs not in self._checked]
        self.engine.map(_CheckBlocks(self.content, blocks), unchecked)
        self._checked.update(unchecked)

    def _summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogSummary]:
        return self.engine.map(_Summarize(self.content, shape), logs)


@dataclass(frozen=True, slots=True)
class _CheckBlocks:
    """A picklable call of LogContent.check_blocks."""

    content: LogContent
    blocks: BlockFilter

    def __call__(self, logs: tuple[LogFile, ...]) -> None:
        self.content.check_blocks(logs, self.blocks)


@dataclass(frozen=True, slots=True)
class _Summarize:
    """A picklable call of LogContent.summarize."""

    content: LogContent
    shape: RecordShape

    def __call__(self, log: LogFile) -> LogSummary:
        return self.content.summarize(log, self.shape)


def _single_stats(state: TableState) -> dict[str, tuple[str, WriteStat]]:
    """The write stats of files that one commit alone wrote, with that commit's requested time, by path.

    Not those of log compactions: their logs hold blocks that stand for others, which only the logs themselves say.
    """
    found: dict[str, tuple[str, WriteStat]] = {}
    several: set[str] = set()
    for time, metadata in state.commits.items():
        if metadata.operation_type == LOG_COMPACT:
            continue
        for stat in metadata.stats:
            if stat.path in found:
                several.add(stat.path)
            found[stat.path] = (time, stat)
    return {path: told for path, told in found.items() if path not in several}


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


def _told_by(told: tuple[str, WriteStat] | None, log: LogFile) -> LogFacts | None:
    if told is None:
        return None
    time, stat = told
    event_times = stat.event_time_range
    # A delete is no record of the stat's range; and a left-over's stat, which we wrote, names the compaction.
    if event_times is None or stat.num_deletes or stat.num_writes == 0 or stat.file_size_bytes != log.size:
        return None
    return LogFacts(
        log,
        event_times,
        frozenset({time}),
        0,
        has_rollback_block=False,
        needs_check=True,
        has_merged_block=False,
        waiting=event_times,
    )


def _in_base(state: TableState, facts: Sequence[LogFacts]) -> dict[str, int | None]:
    """The logs that are in their base in part or in whole, by path; see Publication.waiting.

    The compaction that gave a log its name tells. The archive is asked for one that has left the active timeline only where
    a left-over of it has something before the cut: no other was merged early.
    """
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
    return {path: since for said in told for path, since in said.waiting.items()}


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

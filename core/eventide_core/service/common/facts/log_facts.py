"""The facts of each log file: from the timeline if it has them, otherwise read once from the file."""

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from eventide_core.errors import CorruptLogBlockError, EventideError, UnsupportedTableError
from eventide_core.ports import Engine, LogContent
from eventide_core.service.common.facts.log_stats import from_stats
from eventide_core.service.common.facts.needed_files import is_left_over_of_pending
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_block import torn_without_name, without_blocks
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.files.read_ahead import WHOLE_FILE_BYTES
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape, refusal_of_partial_updates
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.instant import Action

T = TypeVar("T")

_PORTIONS: Final = 200  # tasks in which log files are asked: enough for many threads or executors, few to begin
_PORTION_MAX: Final = 500  # log files; their small blocks are in memory at once
_PORTION_BYTES_MAX: Final = 8 * 1024 * 1024  # in memory: at most WHOLE_FILE_BYTES of each log file


@dataclass(slots=True)
class LogFactsReader:
    """The facts of one table's log files. A log file never changes under its name, so each is read at most once.

    What the timeline states (service/common/facts/log_stats.py) is not read from the log file. Which part of it is in a base
    file is read from the timeline each time: a commit may have merged it since. `request_engine` runs the tasks
    that read little of each log file, `engine` those that decode many records.
    """

    content: LogContent
    engine: Engine
    request_engine: Engine
    _known: dict[str | None, dict[str, LogFacts]] = field(default_factory=dict[str | None, dict[str, LogFacts]])
    _checked: dict[tuple[tuple[str, int], ...], frozenset[str]] = field(
        default_factory=dict[tuple[tuple[str, int], ...], frozenset[str]]
    )

    def read(
        self, state: TableState, shape: RecordShape, logs: Iterable[LogFile], *, are_stats_proof: bool
    ) -> dict[str, LogFacts]:
        """The facts of each log file, by path. `are_stats_proof`: Hudi's write stats hold for every record."""
        return self._read(state, shape, logs, are_stats_proof=are_stats_proof, returns_errors=False)[0]

    def read_each(
        self, state: TableState, shape: RecordShape, logs: Iterable[LogFile], *, are_stats_proof: bool
    ) -> tuple[dict[str, LogFacts], dict[str, EventideError]]:
        """The facts of each log file that can be read, and the errors of the others, by path."""
        return self._read(state, shape, logs, are_stats_proof=are_stats_proof, returns_errors=True)

    def _read(
        self,
        state: TableState,
        shape: RecordShape,
        logs: Iterable[LogFile],
        *,
        are_stats_proof: bool,
        returns_errors: bool,
    ) -> tuple[dict[str, LogFacts], dict[str, EventideError]]:
        wanted = {log.path: log for log in logs}
        self._forget_gone(state)
        known = self._known.setdefault(shape.event_time_source, {})
        unknown = [
            log for path, log in wanted.items() if (fact := known.get(path)) is None or fact.log_file.size != log.size
        ]
        if unknown:
            by_stats = from_stats(state, unknown, shape.event_time_source, are_stats_proof=are_stats_proof)
            known |= by_stats
            unknown = [log for log in unknown if log.path not in by_stats]
        problems: dict[str, EventideError] = {}
        blocks = state.blocks_of_slices() if unknown else state.blocks()
        for log, answer in zip(unknown, self._summarize(unknown, shape), strict=True):
            found = answer if isinstance(answer, EventideError) else _if_whole(blocks, answer)
            if isinstance(found, LogFacts):
                known[log.path] = found
            elif returns_errors:
                problems[log.path] = found
            else:
                raise found
        facts = {path: known[path] for path in wanted if path not in problems}
        for path, since in _in_base(state, facts.values(), shape.event_time_source).items():
            if (fact := facts.get(path)) is not None:
                left = EventTimeRange(None, None) if since is None else fact.event_times.since(since)
                facts[path] = replace(fact, uncompacted=left)
        return facts, problems

    def _forget_gone(self, state: TableState) -> None:
        """Drops the facts of log files that no longer exist, because a service runs indefinitely."""
        if sum(map(len, self._known.values())) > 2 * len(state.listing):
            there = {file.path for file in state.listing}
            for name, known in self._known.items():
                self._known[name] = {path: fact for path, fact in known.items() if path in there}

    def check(self, slices: Iterable[tuple[LogFile, ...]], blocks: BlockFilter, shape: RecordShape) -> frozenset[str]:
        """The paths of the log files with partial updates. The log files of the question before are known.

        All log files of a slice go together, because a rollback block in one rolls back blocks of another. Raises
        what a merge would raise for the blocks of these slices' log files.
        """
        named = ((tuple((log.path, log.size) for log in logs), logs) for logs in slices)
        asked = dict(named)
        unchecked = {names: logs for names, logs in asked.items() if names not in self._checked}
        blocks = blocks.of_logs([path for names in unchecked for path, _ in names])
        of_slices = tuple(unchecked.values())
        check = partial(_check_blocks, self.content, blocks)
        portions = self.request_engine.map(check, _portions(of_slices, of_slices))
        checked = dict(zip(unchecked, itertools.chain.from_iterable(portions), strict=True))
        self._checked = {names: checked[names] if names in checked else self._checked[names] for names in asked}
        partly = frozenset[str]().union(*self._checked.values())
        refusal = refusal_of_partial_updates(shape, min(partly)) if partly else None
        if refusal is not None:
            raise UnsupportedTableError(refusal)
        return partly

    def _summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogFacts | EventideError]:
        are_small = sum([log.size for log in logs]) <= WHOLE_FILE_BYTES * len(logs)
        engine = self.request_engine if are_small else self.engine
        summarize = partial(self.content.summarize, shape=shape)
        portions = engine.map(summarize, _portions(logs, [(log,) for log in logs]))
        return [answer for portion in portions for answer in portion]


def _if_whole(blocks: BlockFilter, fact: LogFacts) -> LogFacts | EventideError:
    """The facts; an error if the log file has torn bytes that may be of a completed write, or lacks a write's blocks.

    On version 6, another log file may roll back what an archived write left.
    """
    path = fact.log_file.path
    if fact.nameless_from is not None and not blocks.is_abandoned(path, fact.nameless_from):
        return CorruptLogBlockError(torn_without_name(path, fact.nameless_from))
    written: Mapping[str, int] = {} if blocks.writers is None else blocks.writers.of_logs.get(path, {})
    is_final = blocks.writers is not None and blocks.writers.is_final
    torn = {i for i in fact.torn_instants if i in blocks.completed or (is_final and blocks.accepts(i))}
    lost = min(torn | (written.keys() - fact.instants), default=None)
    return fact if lost is None else CorruptLogBlockError(without_blocks(path, 0, lost, written.get(lost, 1)))


def _check_blocks(
    content: LogContent, blocks: BlockFilter, slices: Sequence[tuple[LogFile, ...]]
) -> list[frozenset[str]]:
    return [content.check_blocks(logs, blocks) for logs in slices]


def _portions(items: Sequence[T], logs_of_each: Iterable[Sequence[LogFile]]) -> list[Sequence[T]]:
    """The items in order, in portions: a task for each small question would cost too much."""
    most = min(-(-len(items) // _PORTIONS), _PORTION_MAX)
    portions: list[Sequence[T]] = []
    start = held_bytes = 0
    for end, logs in enumerate(logs_of_each, 1):
        held_bytes += sum([min(log.size, WHOLE_FILE_BYTES) for log in logs])
        if end - start == most or held_bytes >= _PORTION_BYTES_MAX or end == len(items):
            portions.append(items[start:end])
            start, held_bytes = end, 0
    return portions


def _in_base(state: TableState, facts: Collection[LogFacts], source: str | None) -> dict[str, int | None]:
    """The log files that are in their base in part or in whole, by path; see CompactionExtraMetadata.uncompacted.

    The compaction that gave a log file its name states it. One that has left the active timeline is looked up in the
    archive only if a left-over of it has something before the cut: no other was merged early. What a pending compaction has
    made, which on version 6 is in the slice already, waits with the log file that it is of. A compaction that read the event
    times in another zone than `source` merged other records early: of such a log file, everything may wait.
    """
    active = state.publications
    commits = [active[time] for time in {fact.log_file.name.instant for fact in facts} & active.keys()]
    if state.config.layout.names_logs_by_write:
        # The archived instants that log files are named after are known.
        compactions = frozenset([i.requested_time for i in state.timeline.archived if i.action is Action.COMMIT])
        doubtful = [fact for fact in facts if fact.log_file.name.instant in compactions] if compactions else []
        pending: dict[str, int | None] = {}
    else:
        left_overs = [fact for fact in facts if state.config.layout.may_be_left_over(fact.log_file.name)]
        doubtful = [fact for fact in left_overs if state.timeline.is_archived(fact.log_file.name.instant)]
        pending = {
            fact.log_file.path: None for fact in left_overs if is_left_over_of_pending(state, fact.log_file.name)
        }
    cut_ms = state.cut_ms if doubtful else None
    if cut_ms is not None:
        archived = {fact.log_file.name.instant for fact in doubtful if fact.event_times.starts_before(cut_ms)}
        for time in sorted(archived):
            commit = state.archive.commit(time)
            publication = None if commit is None else CompactionExtraMetadata.of(time, commit)
            commits += [] if publication is None else [publication]
    return {
        path: since
        for publication in commits
        for path, since in publication.uncompacted.items()
        if since is None or publication.event_times in (None, source)
    } | pending

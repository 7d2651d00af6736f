"""How fresh the read-optimized table is now, and will be when a compaction commits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from eventide_core.action.freshness.freshness import COMPLETE, NO_CUT, Freshness, freshness
from eventide_core.config import Options
from eventide_core.ports import LogContent, UnreadableEventTime
from eventide_core.service.common.facts.event_time_field import are_stats_proof, event_time_field_of, zone_notes
from eventide_core.service.common.facts.log_facts import LogFactsReader
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.timeline.contents.plans import CompactionPlan

_NONE: Final[Mapping[str, int]] = {}
_WORTH_TASKS: Final = 8  # fewer log files are read one after another


@dataclass(frozen=True, slots=True)
class FreshnessReader:
    facts: LogFactsReader
    options: Options

    def now(self, state: TableState) -> Freshness:
        """The freshness of the whole table."""
        if state.config.is_copy_on_write:
            return COMPLETE
        return replace(self._of(state, state.cut_ms, _live_logs(state)), notes=zone_notes(state, self.options))

    def published(self, state: TableState) -> Freshness:
        """The freshness of the whole table; NO_CUT, without reading a log file, if no cut is published."""
        return NO_CUT if state.cut_ms is None and not state.config.is_copy_on_write else self.now(state)

    def by_partition(self, state: TableState) -> Mapping[str, Freshness]:
        """The freshness of each partition that has records. Reads the log files together, as for the whole table."""
        if state.config.is_copy_on_write:
            return dict.fromkeys(sorted({file_slice.partition for file_slice in state.view.latest_slices()}), COMPLETE)
        cut_ms = state.cut_ms
        paths: dict[str, list[str]] = {file_slice.partition: [] for file_slice in state.view.latest_slices()}
        for file_slice in state.view.latest_slices():
            paths[file_slice.partition] += [log.path for log in file_slice.log_files]
        facts = self._facts(state, _live_logs(state))
        late = self._late_records(state, cut_ms, facts)
        return {
            partition: freshness(
                cut_ms,
                [facts[path].uncompacted for path in paths[partition] if path in facts],
                sum(late.get(path, 0) for path in paths[partition]),
            )
            for partition in sorted(paths)
        }

    def waiting(self, state: TableState) -> tuple[EventTimeRange, ...]:
        """The event times of the log records that are in no base file, by log file."""
        return tuple(fact.uncompacted for fact in self._facts(state, _live_logs(state)).values())

    def unreadable(self, state: TableState, limit: int = 5) -> tuple[UnreadableEventTime, ...]:
        """A few of the log records in no base file whose event time cannot be read. Reads log files that have some."""
        records: list[UnreadableEventTime] = []
        if state.config.is_copy_on_write:
            return ()
        facts = self._facts(state, _live_logs(state))
        for fact in facts.values():
            if fact.uncompacted.unreadable_records and len(records) < limit:
                left, blocks = limit - len(records), state.blocks()
                records += self.facts.content.records.unreadable_event_times(
                    fact.log_file, self._shape(state), left, blocks
                )
        return tuple(records)

    def after(self, state: TableState, plan: CompactionPlan) -> Freshness:
        """The freshness after the commit of the plan's compaction."""
        cut_ms = state.cut_ms if plan.cut_ms is None else plan.cut_ms
        if cut_ms is None:
            return NO_CUT
        retired = {log.path for op in plan.operations for log in op.compacted}
        early = {path: threshold_ms for op in plan.operations for path, threshold_ms in op.early.items()}
        logs = {log.path: log for log in (*_live_logs(state), *state.logs_on_top_of(plan)) if log.path not in retired}
        return self._of(state, cut_ms, logs.values(), early)

    def _of(
        self, state: TableState, cut_ms: int | None, logs: Iterable[LogFile], early: Mapping[str, int] = _NONE
    ) -> Freshness:
        """`early`: the time before which a log file's records will be merged, by path."""
        facts = {
            path: replace(fact, uncompacted=fact.uncompacted.since(early[path])) if path in early else fact
            for path, fact in self._facts(state, logs).items()
        }
        late = self._late_records(state, cut_ms, facts)
        return freshness(cut_ms, (fact.uncompacted for fact in facts.values()), sum(late.values()))

    def _facts(self, state: TableState, logs: Iterable[LogFile]) -> dict[str, LogFacts]:
        """The facts of those log files that count, by path."""
        wanted = tuple(logs)
        if not wanted:
            return {}
        shape = self._shape(state)
        proof = are_stats_proof(shape, self.options, state.config.properties)
        blocks = state.blocks()
        facts = self.facts.read(state, shape, wanted, are_stats_proof=proof)
        # On version 6 the log file of a write that was rolled back stays, beside the block that rolls it back; and that
        # alone distinguishes it from a committed one, once both are archived.
        rolled_back = {instant for fact in facts.values() for instant in fact.rolled_back}
        return {
            path: fact
            for path, fact in facts.items()
            if any(blocks.accepts(instant) for instant in fact.instants - rolled_back)
        }

    def _late_records(self, state: TableState, cut_ms: int | None, facts: Mapping[str, LogFacts]) -> dict[str, int]:
        """The number of records before the cut in each late log file, by path. Reads the log files to count them."""
        if cut_ms is None:
            return {}
        late = [f for f in facts.values() if f.uncompacted.min_ms is not None and f.uncompacted.min_ms < cut_ms]
        if not late:
            return {}
        count = partial(_count_waiting, self.facts.content, self._shape(state), cut_ms, state.blocks())
        counts = map(count, late) if len(late) < _WORTH_TASKS else self.facts.engine.map(count, late)
        return dict(zip((fact.log_file.path for fact in late), counts, strict=True))

    def _shape(self, state: TableState) -> RecordShape:
        return state.shape(event_time_field_of(state, self.options))


def _count_waiting(content: LogContent, shape: RecordShape, cut_ms: int, blocks: BlockFilter, fact: LogFacts) -> int:
    """How many records before the cut a log file holds that are in no base file yet."""
    since_ms = fact.uncompacted.min_ms
    count = content.records.count_before(fact.log_file, shape, cut_ms, blocks)
    if since_ms is None or since_ms == fact.event_times.min_ms:
        return count
    # An exact cut has merged what lies before.
    return count - content.records.count_before(fact.log_file, shape, since_ms, blocks)


def _live_logs(state: TableState) -> list[LogFile]:
    return [log for s in state.view.latest_slices() for log in s.log_files]

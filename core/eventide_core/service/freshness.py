"""How fresh the read-optimized table is now, and will be when a compaction commits."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.action.freshness import NO_CUT, Freshness, freshness
from eventide_core.config import Options
from eventide_core.ports import Engine, LogContent
from eventide_core.service.event_time_field import are_stats_proof, event_time_field_of
from eventide_core.service.log_facts import LogFactsReader
from eventide_core.service.table import TableState
from eventide_core.table.event_time import EventTimeRange
from eventide_core.table.file_slice import LogFile
from eventide_core.table.plans import CompactionPlan

_NONE: Final[Mapping[str, int]] = {}


@dataclass(frozen=True, slots=True)
class FreshnessReader:
    content: LogContent
    facts: LogFactsReader
    engine: Engine
    options: Options

    def now(self, state: TableState) -> Freshness:
        """The freshness of the whole table."""
        return self._of(state, state.cut_ms, _live_logs(state))

    def by_partition(self, state: TableState) -> Mapping[str, Freshness]:
        """The freshness of each partition that has records."""
        cut_ms = state.cut_ms
        logs: dict[str, list[LogFile]] = {}
        for found in state.view.latest_slices():
            logs.setdefault(found.partition, []).extend(found.log_files)
        return {partition: self._of(state, cut_ms, logs[partition]) for partition in sorted(logs)}

    def after(self, state: TableState, plan: CompactionPlan) -> Freshness:
        """The freshness that holds once the plan's compaction has committed over this state."""
        cut_ms = state.cut_ms if plan.cut_ms is None else plan.cut_ms
        if cut_ms is None:
            return NO_CUT
        retired = {log.path for op in plan.operations for log in op.compacted}
        early = {path: before_ms for op in plan.operations for path, before_ms in op.merged_before_ms.items()}
        return self._of(state, cut_ms, [log for log in _live_logs(state) if log.path not in retired], early)

    def _of(
        self, state: TableState, cut_ms: int | None, logs: Iterable[LogFile], early: Mapping[str, int] = _NONE
    ) -> Freshness:
        """`early`: up to where a log's records are about to be merged, by path."""
        wanted = tuple(logs)
        if not wanted:
            return freshness(cut_ms, (), 0)
        name = event_time_field_of(state, self.options)
        shape = state.shape(name)
        proof = are_stats_proof(shape.schema, name, self.options)
        blocks = state.blocks()
        told = self.facts.read(state, shape, wanted, are_stats_proof=proof)
        # On version 6 the log of a write that was rolled back stays, beside the block that takes it back; and that alone
        # tells it from a committed one, once both are archived.
        taken_back = {instant for fact in told.values() for instant in fact.taken_back}
        facts = {
            path: fact
            for path, fact in told.items()
            if any(blocks.accepts(instant) for instant in fact.instants - taken_back)
        }
        if cut_ms is None:
            return freshness(None, (fact.waiting for fact in facts.values()), 0)
        waiting = {p: fact.waiting.since(early[p]) if p in early else fact.waiting for p, fact in facts.items()}
        late = [fact.log for p, fact in facts.items() if _has_records_before(waiting[p], cut_ms)]
        late_records = sum(self.content.count_before(log, shape, cut_ms, blocks) for log in late)
        return freshness(cut_ms, waiting.values(), late_records)


def _live_logs(state: TableState) -> list[LogFile]:
    return [log for s in state.view.latest_slices() for log in s.log_files]


def _has_records_before(waiting: EventTimeRange, cut_ms: int) -> bool:
    return waiting.min_ms is not None and waiting.min_ms < cut_ms

"""The planner's facts of each slice: its log files' facts, and which of them are above the quiet moment."""

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eventide_core.action.compaction.slice_selection import ReaderRules, Selection, SliceFacts
from eventide_core.config import INDEX_TYPE, Options
from eventide_core.service.common.facts.event_time_field import are_stats_proof
from eventide_core.service.common.facts.log_facts import LogFactsReader
from eventide_core.service.common.facts.planning import is_base_file_index
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.scheduling.planned_slices import is_in_new_slice
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_shape import RecordShape


@dataclass(frozen=True, slots=True)
class SliceFactsReader:
    log_facts: LogFactsReader
    options: Options

    def read(self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice], moment: str) -> list[SliceFacts]:
        """The facts of each slice that has log files, for a compaction at `moment`, its quiet moment."""
        assert shape.event_time_field is not None
        facts = self.log_facts.read(
            state,
            shape,
            [log for s in slices for log in s.log_files],
            are_stats_proof=are_stats_proof(shape, self.options, state.config.properties),
        )
        later = _later(state, moment, facts.values())
        return [
            SliceFacts(s, logs, above=_above(state, moment, logs, later))
            for s in slices
            if (logs := tuple([facts[log.path] for log in s.log_files]))
        ]

    def checked(self, selections: Sequence[Selection], blocks: BlockFilter, shape: RecordShape) -> list[Selection]:
        """The selections, completed by a fact that no write stat contains: whether a log file has partial updates.

        Raises what a merge would raise for the blocks of the log files that are read.
        """
        doubtful = [
            s.facts for s in selections if any(fact.check is not HeaderCheck.NONE for fact in s.facts.log_facts)
        ]
        samples = list(_samples(doubtful))
        partial = self.log_facts.check((facts.file_slice.log_files for facts in samples), blocks, shape)
        if partial and len(samples) < len(doubtful):
            partial = self.log_facts.check((facts.file_slice.log_files for facts in doubtful), blocks, shape)
        return [_with_partial_updates(s, partial) for s in selections] if partial else list(selections)

    def reader_rules(self, state: TableState, shape: RecordShape, slices: Sequence[FileSlice]) -> ReaderRules:
        """The rules by which each engine that can read the table merges these slices."""
        field = shape.event_time_field
        finds_by_base_files = is_base_file_index(state.config, slices, self.options.text(INDEX_TYPE))
        return ReaderRules(
            state.config.merge_rule,
            state.config.reader_rules,
            finds_by_base_files,
            orders_by_event_time=field is not None
            and shape.ordering_fields == (field,)
            and shape.schema.is_time(field),
            takes_columns=shape.partial_update is not None,
            # A writer knows positions from its lookup of the keys in base files, and Hudi reads them from version 8 on.
            reads_positions=finds_by_base_files and state.config.layout.needs_hudi_1,
            merger=shape.merger,
        )


def _samples(doubtful: Iterable[SliceFacts]) -> Iterator[SliceFacts]:
    """The slices whose headers are read: each log file that stands for itself alone, and one of each write of the others."""
    known = set[str]()
    for facts in doubtful:
        of_file = any(fact.check is HeaderCheck.OF_FILE for fact in facts.log_facts)
        writes = {fact.log_file.name.instant for fact in facts.log_facts if fact.check is HeaderCheck.OF_WRITE}
        if of_file or not writes <= known:
            known |= writes
            yield facts


def _with_partial_updates(selection: Selection, paths: Container[str]) -> Selection:
    facts = selection.facts
    if not any(fact.log_file.path in paths for fact in facts.log_facts):
        return selection
    log_facts = tuple(
        replace(fact, has_partial_updates=True) if fact.log_file.path in paths else fact for fact in facts.log_facts
    )
    return replace(selection, facts=replace(facts, log_facts=log_facts))


def _later(state: TableState, moment: str, logs: Iterable[LogFacts]) -> frozenset[str]:
    """The instants of these log files that begin, or belong to, the new slice."""
    of_instant = {fact.log_file.name.instant: fact.log_file for fact in logs}
    return frozenset([time for time, log in of_instant.items() if is_in_new_slice(state, moment, log)])


def _above(state: TableState, moment: str, logs: Sequence[LogFacts], later: Container[str]) -> int:
    """How many of a slice's last log files were written after the quiet moment.

    On version 6 their blocks decide, not their names.
    """
    if state.config.layout.names_logs_by_write:
        return sum([fact.log_file.name.instant in later for fact in logs])
    first = next((n for n, fact in enumerate(logs) if max(fact.instants, default="") > moment), len(logs))
    return len(logs) - first

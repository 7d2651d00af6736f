"""Reads records for a verification: slice by slice on the engine, whole columns at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from eventide_core.action.query.planner import plan_slices
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.parts import RecordFacts
from eventide_core.errors import EventideError
from eventide_core.ports import ContentAudit, Engine, Progress
from eventide_core.service.common.state.table import TableState
from eventide_core.service.verification.problems import OrProblem, Problem
from eventide_core.table.files.file_name import path_in
from eventide_core.table.files.slice_audit import RowDifference
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.timeline.contents.plans import PlannedOperation

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RecordsReader:
    audit: ContentAudit
    engine: Engine

    def read(self, facts: TableFacts, state: TableState, shape: RecordShape | None, progress: Progress) -> TableFacts:
        """The facts with those from records, of slices whose files all exist and can be read."""
        shape = shape or state.shape(None)
        problems: dict[str, str] = {}
        unsupported: dict[str, str] = {}
        watermark_ms = None if facts.event_times.freshness is None else facts.event_times.freshness.watermark_ms
        slices = plan_slices(facts.whole_slices, state.blocks_of_slices())

        def run(
            what: str, function: Callable[[T], R], items: Sequence[T], name: Callable[[T], str]
        ) -> list[tuple[T, R]]:
            progress.start(what, len(items))
            attempt = OrProblem(function, skips_unsupported=True)
            answers = self.engine.map(attempt, items, on_done=progress.advance)
            read: list[tuple[T, R]] = []
            for item, answer in zip(items, answers, strict=True):
                if isinstance(answer, Problem):
                    (unsupported if answer.is_unsupported else problems)[name(item)] = answer.text
                else:
                    read.append((item, answer))
            return read

        audit = partial(self.audit.audit, shape=shape, watermark_ms=watermark_ms, keys=_keys(state))
        audits = run("reading slices", audit, slices, lambda read: path_in(read.partition, read.file_id))
        unreadable = {(a.partition, a.file_id) for _, a in audits if a.unreadable}
        readable = [s for s, _ in audits if (s.partition, s.file_id) not in unreadable]
        of_partition: dict[str, list[SliceRead]] = {}
        for one in readable:
            of_partition.setdefault(one.partition, []).append(one)
        several = [tuple(reads) for reads in of_partition.values() if len(reads) > 1]
        repeated_keys = partial(self.audit.repeated_keys, shape=shape)
        repeated = run("checking for keys in two places", repeated_keys, several, lambda read: read[0].partition)
        same_bytes = partial(_have_same_bytes, self.audit)
        compared = run("comparing copies", same_bytes, list(_copies(facts)), lambda pair: pair[0])
        recorded = [(path, stat.file_size_bytes) for path, (_, stat, _) in sorted(facts.recorded_checksums.items())]
        there = [(path, size) for path, size in recorded if path in facts.sizes and path not in facts.misplaced]
        summed = run("comparing checksums", partial(_checksum, self.audit), there, lambda pair: pair[0])
        pairs = [p for p in _compacted(facts, state) if (p.after.partition, p.after.file_id) not in unreadable]
        difference = partial(_difference, self.audit, shape)
        differences = run("comparing compacted slices", difference, pairs, lambda pair: pair.base_path)
        return replace(
            facts,
            records=RecordFacts(
                audits=tuple(audit for _, audit in audits),
                watermark_ms=watermark_ms,
                compared_copies=len(compared),
                copies={copy: source for (copy, source), is_same in compared if not is_same},
                repeated=tuple((reads[0].partition, key) for reads, keys in repeated for key in keys),
                differences={pair.base_path: difference for pair, difference in differences},
                checksums={path: checksum for (path, _), checksum in summed},
                problems=problems,
                unsupported=unsupported,
                compares_keys=_keys(state) is not None,
            ),
        )


@dataclass(frozen=True, slots=True)
class _Pair:
    """A slice before and after a compaction that made `base_path`."""

    base_path: str
    before: SliceRead
    after: SliceRead


def _have_same_bytes(audit: ContentAudit, pair: tuple[str, str]) -> bool:
    return audit.have_same_bytes(*pair)


def _checksum(audit: ContentAudit, file: tuple[str, int]) -> str | None:
    return audit.checksum(*file)


def _difference(audit: ContentAudit, shape: RecordShape, pair: _Pair) -> RowDifference | None:
    return audit.differences(pair.before, pair.after, shape)


def _keys(state: TableState) -> KeyFormat | None:
    """How record keys follow from the key fields; None where the settings don't state it, or the files hold no keys."""
    if state.config.virtual_key_fields:
        return None
    try:
        return KeyFormat.of(state.config, "", has_bare_keys=True)
    except EventideError:
        return None


def _copies(facts: TableFacts) -> Iterator[tuple[str, str]]:
    """The copies that are as large as the log files they are of, as long as these are there."""
    files = {file.path: file for file in facts.listing}
    for path, source in sorted(facts.left_overs.items()):
        copy, original = files.get(path), files.get(source)
        if copy is None or original is None or copy.link_target is not None or original.link_target is not None:
            continue
        if copy.size == original.size:
            yield path, source


def _compacted(facts: TableFacts, state: TableState) -> Iterator[_Pair]:
    """The slices that eventide compacted, as they were and as they became, if every file exists and is whole."""
    for plan in facts.compactions.values():
        for op in plan.operations:
            paths = [log.path for log in (*op.compacted, *(left.log_file for left in op.left_overs))]
            new = _new_logs(facts, op)
            bases = [path for path in (op.base_path, op.new_base_path) if path is not None]
            are_there = all(path in facts.sizes and path not in facts.bases.problems for path in bases)
            if are_there and all(path in facts.sizes and facts.is_readable(path) for path in (*paths, *new)):
                yield _pair(facts, state, op, paths, new)


def _new_logs(facts: TableFacts, op: PlannedOperation) -> list[str]:
    carried = [] if op.carried_path is None else [op.carried_path]
    left = [o.log_file.path if o.new_name is None else op.path_of(o.new_name) for o in op.left_overs]
    return [*(path for path in carried if path in facts.committed), *left]


def _pair(facts: TableFacts, state: TableState, op: PlannedOperation, old: list[str], new: list[str]) -> _Pair:
    def read(base: str | None, logs: list[str]) -> SliceRead:
        sized = tuple((path, facts.sizes[path]) for path in logs)
        return SliceRead(op.partition, op.file_id, base, sized, state.blocks())

    made = op.new_base_path
    return _Pair(made, read(op.base_path, old), read(made, new))

"""Judges the splits of slices by key histories where algebra is not sufficient (action/compaction/slice_split.py)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from eventide_core.action.compaction.slice_selection import (
    ReaderRules,
    Selection,
    apply_verdict,
    needed_histories,
    needs_unique_keys,
    unjudged,
    with_doubled_key,
    with_merger,
)
from eventide_core.action.compaction.slice_split import SplitVerdict, judge_split
from eventide_core.ports import Engine, LogContent, SplitSlice
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_shape import RecordShape

_Split = tuple[SplitSlice, RecordShape, ReaderRules]


@dataclass(slots=True)
class SplitJudge:
    """Judges the slices of one table, many at a time on the engine. Reuses the verdicts of earlier calls.

    A log file never changes under its name and size, and a slice with blocks that don't count isn't split (`select`),
    so a verdict is valid as long as the slice has these files.
    """

    content: LogContent
    engine: Engine
    _known: dict[_Split, SplitVerdict] = field(default_factory=dict[_Split, SplitVerdict])
    _doubled: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def judged(
        self, selections: Sequence[Selection], rules: ReaderRules, shape: RecordShape, blocks: BlockFilter
    ) -> list[Selection]:
        """The selections after the histories of their keys have been judged.

        A selection that falls back to full compaction is judged again if log files are above it.
        """
        selections = self._by_unique_keys([with_merger(selection, rules) for selection in selections], rules, shape)
        known = dict(self._known)
        self._known = {}
        judge = partial(_verdict, self.content, rules, shape, blocks)
        once = self._settled(selections, judge, rules, shape, known)
        fallen = [new for old, new in zip(selections, once, strict=True) if new.above and new.count != old.count]
        twice = iter(self._settled(fallen, judge, rules, shape, known))
        return [
            next(twice) if new.above and new.count != old.count else new
            for old, new in zip(selections, once, strict=True)
        ]

    def _by_unique_keys(
        self, selections: Sequence[Selection], rules: ReaderRules, shape: RecordShape
    ) -> list[Selection]:
        """The selections, in full where a key of the base file would meet other records of its own after a split."""
        bases = [_base_path(selection) if needs_unique_keys(selection, rules) else None for selection in selections]
        unknown = tuple(dict.fromkeys(path for path in bases if path is not None and path not in self._doubled))
        keys = self.engine.map(partial(_doubled_key, self.content, shape), unknown)
        known = self._doubled | dict(zip(unknown, keys, strict=True))
        self._doubled = {path: known[path] for path in bases if path is not None}
        doubled = [None if path is None else known[path] for path in bases]
        return [
            selection if key is None else with_doubled_key(selection, key)
            for selection, key in zip(selections, doubled, strict=True)
        ]

    def _settled(
        self,
        selections: Sequence[Selection],
        judge: Callable[[Selection], SplitVerdict],
        rules: ReaderRules,
        shape: RecordShape,
        known: dict[_Split, SplitVerdict],
    ) -> list[Selection]:
        splits = [
            None if needed_histories(selection, rules) is None else (_split(selection), shape, rules)
            for selection in selections
        ]
        asked = {split: selection for split, selection in zip(splits, selections, strict=True) if split is not None}
        unknown = {split: selection for split, selection in asked.items() if split not in known}
        known.update(zip(unknown, self.engine.map(judge, tuple(unknown.values())), strict=True))
        self._known |= {split: known[split] for split in asked}
        return [
            unjudged(selection, rules) if split is None else apply_verdict(selection, known[split])
            for split, selection in zip(splits, selections, strict=True)
        ]


def _verdict(
    content: LogContent, rules: ReaderRules, shape: RecordShape, blocks: BlockFilter, selection: Selection
) -> SplitVerdict:
    """Reads the histories of a slice's keys where it runs."""
    only_deleted = needed_histories(selection, rules)
    assert only_deleted is not None, "a split that algebra answers for"
    histories = content.records.key_histories(_split(selection), shape, blocks, only_deleted=only_deleted)
    return judge_split(histories, rules.rule, rules.readers, is_base_file_index=rules.is_base_file_index)


def _doubled_key(content: LogContent, shape: RecordShape, base_path: str) -> str | None:
    return content.records.doubled_key(base_path, shape)


def _base_path(selection: Selection) -> str | None:
    base = selection.facts.file_slice.base_file
    return base.path if base else None


def _split(selection: Selection) -> SplitSlice:
    merged, left_overs, above = (
        tuple(fact.log_file for fact in facts) for facts in (selection.compacted, selection.left_overs, selection.above)
    )
    above_paths = frozenset(log.path for log in above)
    return SplitSlice(_base_path(selection), merged, left_overs, selection.threshold_ms, above_paths)

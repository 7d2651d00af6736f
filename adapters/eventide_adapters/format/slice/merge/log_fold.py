"""Folds a slice's log files into one winner per key, in whole columns: the first step of core's record_order.

Keys become numbers in order of first appearance; records become positions in reader order.

COMMIT_TIME_ORDERING: the last position wins.
EVENT_TIME_ORDERING: only versions after the key's last natural delete count. The greatest ordering value among them wins,
and the last position on a tie. If no version follows the natural delete, the delete itself wins.
HUDI_0X_OVERWRITE_WITH_LATEST: the same, but the few keys with an ordered delete are folded one by one.

Memory holds little more than the winners: whenever the versions take more than twice the bytes of the previous winners, all
but the winners are dropped. This does not apply to HUDI_0X_OVERWRITE_WITH_LATEST, where a losing version may still decide.

CUSTOM: a user-defined merger makes the row of all versions (`custom_fold`).

If records lack columns, `partial_fold` determines the versions that a row consists of.

`ordering_values` defines how ordering values compare. Without an ordering field, all records are equal.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

import numpy as np
import pyarrow as pa

from eventide_adapters.format.encoding.columns.arrow_numpy import (
    ArrowArray,
    ArrowChunks,
    Flags,
    Numbers,
    empty_array,
    null_flags,
    to_arrow,
)
from eventide_adapters.format.slice.log_file.ordering_values import LEAST, ordering_type, orderings_of, ranks
from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock, LogPart
from eventide_adapters.format.slice.merge.custom_fold import fold_custom
from eventide_adapters.format.slice.merge.key_table import KeyTable, last_of_keys
from eventide_adapters.format.slice.merge.partial_fold import fold_partial, lacking_values, taken
from eventide_core.errors import RecordDecodeError
from eventide_core.table.records.custom_merger import CustomMerger
from eventide_core.table.records.record_order import MergeRule, Version, fold
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY

HELD_BYTES: Final = 256 * 1024 * 1024
_OF_COLUMNS: Final = (MergeRule.COMMIT_TIME_ORDERING, MergeRule.EVENT_TIME_ORDERING)  # with partial updates
_WINNERS_SHARE_MIN: Final = 0.5  # if a smaller share of the records has won, the others are removed from memory


@dataclass(frozen=True, slots=True)
class FoldedLogFiles:
    """The winner of each key in the log files. Arrays of winners are indexed by the key's number in `index`.

    `rows` has the winning records that are not deletes, and may have others, to avoid a copy. `row_of` has each key's place
    in `rows`, or -1 if the winner is a delete; `is_natural_delete`: that delete has no ordering value. `orderings` has a
    null if there is no ordering value. `lacking` has, by column name, which of `rows` lack the column: the base's record may
    have it.

    `instants` has the instant of each part of a block that was read, in reader order, and `instant_of` the place of the
    winner's in it. `record_count` counts all versions that were read, records and deletes; `block_count` counts blocks, not
    their parts.
    """

    index: KeyTable
    orderings: ArrowArray
    is_natural_delete: Flags
    row_of: Numbers
    rows: pa.Table
    instants: tuple[str, ...]
    instant_of: Numbers
    record_count: int
    block_count: int
    lacking: Mapping[str, Flags] = field(default_factory=dict[str, Flags])

    @property
    def keys(self) -> ArrowArray:
        return self.index.keys

    @property
    def is_delete(self) -> Flags:
        return self.row_of < 0

    def without_partial(self) -> "tuple[FoldedLogFiles, ArrowArray]":
        """The fold without the keys whose winners lack columns, which a merge leaves out; and those keys."""
        lacks = np.zeros(len(self.rows), np.bool_)
        for flags in self.lacking.values():
            lacks |= flags
        chosen = ~self.is_delete
        chosen[chosen] = lacks[self.row_of[chosen]]
        others = replace(
            self,
            is_natural_delete=self.is_natural_delete | chosen,
            row_of=np.where(chosen, -1, self.row_of),
            lacking={},
        )
        return others, self.keys.filter(to_arrow(chosen))

    @classmethod
    def of(
        cls,
        blocks: Iterable[LogPart],
        schema: pa.Schema,
        shape: RecordShape,
        *,
        held_bytes: int = HELD_BYTES,
    ) -> "FoldedLogFiles":
        """Folds blocks in reader order; data blocks have exactly the columns of `schema`.

        Versions are reduced to winners only when they take at least `held_bytes`.
        """
        log: _Log | None = None
        waiting, size, limit = list[LogPart](), 0, held_bytes
        record_count = block_count = 0
        for block in blocks:
            waiting.append(block)
            record_count += len(block.keys)
            block_count += block.is_first
            size += block.keys.nbytes if isinstance(block, DeleteBlock) else block.records.nbytes
            if size > limit and shape.merge_rule is not MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
                log = _Log.of(waiting, schema, shape).after(log).reduced(shape)
                waiting, size = [], log.data.nbytes + log.keys.nbytes
                limit = max(held_bytes, 2 * size)
        log = _Log.of(waiting, schema, shape).after(log)
        if log.lacking or shape.merger is not None:
            log = log.reduced(shape)
            index, winner = KeyTable(log.keys.combine_chunks()), np.arange(len(log.keys))
        else:
            index, winner = log.winners(shape.merge_rule)
        rows, row_of = log.data, log.row[winner]
        if not log.lacking and _WINNERS_SHARE_MIN * len(rows) > np.count_nonzero(row_of >= 0):
            rows, row_of = log.take_rows(winner)
        return cls(
            index=index,
            orderings=log.orderings.take(to_arrow(winner)),
            is_natural_delete=log.is_natural_delete[winner],
            row_of=row_of,
            rows=rows,
            instants=log.instants,
            instant_of=log.block_of[winner],
            record_count=record_count,
            block_count=block_count,
            lacking=log.lacking,
        )


@dataclass(frozen=True, slots=True)
class _Log:
    """Records and deletes of the log files, in reader order within a key. Arrays are indexed by record.

    `row` is a record's place in `data`, -1 for a delete. `lacking`, by column, is indexed by the rows of `data`.
    """

    keys: ArrowChunks
    orderings: ArrowArray
    is_natural_delete: Flags
    row: Numbers
    block_of: Numbers
    instants: tuple[str, ...]
    data: pa.Table
    lacking: Mapping[str, Flags]

    @classmethod
    def of(cls, blocks: Sequence[LogPart], schema: pa.Schema, shape: RecordShape) -> "_Log":
        kind = ordering_type(shape.ordering_fields, {field.name: field.type for field in schema})
        keys: list[ArrowArray] = [empty_array(schema.field(RECORD_KEY).type)]
        parts: list[ArrowArray] = [empty_array(kind)]
        data: list[pa.RecordBatch] = []
        for block in blocks:
            keys.append(block.keys)
            if isinstance(block, DeleteBlock):
                parts.append(block.orderings)
            else:
                parts.append(orderings_of(block.records, shape.ordering_fields))
                data.append(block.records)
        block_of = np.repeat(np.arange(len(blocks)), [len(part) for part in keys[1:]])
        is_delete = np.array([isinstance(block, DeleteBlock) for block in blocks], np.bool_)[block_of]
        orderings = pa.concat_arrays(parts)
        rows = pa.Table.from_batches(data, schema)
        return cls(
            keys=pa.chunked_array(keys),
            orderings=orderings,
            is_natural_delete=is_delete & null_flags(orderings),
            row=_record_places(~is_delete),
            block_of=block_of,
            instants=tuple(block.instant for block in blocks),
            data=rows,
            lacking=_lacking(blocks, rows, shape),
        )

    def after(self, earlier: "_Log | None") -> "_Log":
        """The records of both, the earlier ones first."""
        return self if earlier is None else earlier._followed_by(self)

    def _followed_by(self, later: "_Log") -> "_Log":
        row = np.where(later.row < 0, -1, later.row + len(self.data))
        return _Log(
            keys=pa.chunked_array([*self.keys.chunks, *later.keys.chunks]),
            orderings=pa.concat_arrays([self.orderings, later.orderings]),
            is_natural_delete=np.concatenate([self.is_natural_delete, later.is_natural_delete]),
            row=np.concatenate([self.row, row]),
            block_of=np.concatenate([self.block_of, later.block_of + len(self.instants)]),
            instants=(*self.instants, *later.instants),
            data=pa.concat_tables([self.data, later.data]),
            lacking={
                name: np.concatenate(
                    [log.lacking.get(name, np.zeros(len(log.data), np.bool_)) for log in (self, later)]
                )
                for name in {**self.lacking, **later.lacking}
            },
        )

    def winners(self, rule: MergeRule) -> tuple[KeyTable, Numbers]:
        """The keys in order of their first appearance, and the position of each key's winner."""
        index, codes = self._numbered()
        return index, winners(codes, len(index.keys), self, rule)

    def _numbered(self) -> tuple[KeyTable, Numbers]:
        """The keys in order of their first appearance, and the number of each record's key."""
        if self.keys.null_count:
            raise RecordDecodeError(
                f"a log record of instants {min(self.instants)} to {max(self.instants)} has no {RECORD_KEY}; "
                "roll back the write that made it"
            )
        return KeyTable.numbered(self.keys)

    def reduced(self, shape: RecordShape) -> "_Log":
        """The winners only, in order of their keys' first appearance."""
        if shape.merger is not None:
            return self._reduced_by(shape.merger, shape.ordering_fields)
        if self.lacking:
            return self._reduced_partial(shape.merge_rule)
        index, winner = self.winners(shape.merge_rule)
        rows, row_of = self.take_rows(winner)
        return self._of_winners(index.keys, winner, rows, row_of)

    def _reduced_by(self, merger: CustomMerger, fields: Sequence[str]) -> "_Log":
        index, codes = self._numbered()
        if len(index.keys) == len(codes):
            return self
        fold = fold_custom(
            codes, len(index.keys), self.orderings, self.is_natural_delete, self.row, self.data, merger, fields
        )
        is_live = fold.row >= 0
        rows = fold.data.take(to_arrow(fold.row[is_live])).combine_chunks()
        return replace(self._of_winners(index.keys, fold.last, rows, _record_places(is_live)), orderings=fold.orderings)

    def _reduced_partial(self, rule: MergeRule) -> "_Log":
        index, codes = self._numbered()
        assert rule in _OF_COLUMNS, f"{rule} takes versions whole"
        order = ranks(self.orderings) if rule is MergeRule.EVENT_TIME_ORDERING else np.zeros(len(codes), np.int64)
        fold = fold_partial(codes, len(index.keys), order, self.is_natural_delete, self.row, self.lacking)
        is_live = self.row[fold.winner] >= 0
        live = self.row[fold.winner][is_live]
        rows = taken(self.data, live, ((name, of_rows[is_live]) for name, of_rows in fold.sources.items()))
        lacking = {name: flags[is_live] for name, flags in fold.lacking.items() if flags[is_live].any()}
        log = self._of_winners(index.keys, fold.winner, rows.combine_chunks(), _record_places(is_live))
        return replace(log, lacking=lacking)

    def _of_winners(self, keys: ArrowArray, winner: Numbers, rows: pa.Table, row_of: Numbers) -> "_Log":
        return _Log(
            keys=pa.chunked_array([keys]),
            orderings=self.orderings.take(to_arrow(winner)),
            is_natural_delete=self.is_natural_delete[winner],
            row=row_of,
            block_of=self.block_of[winner],
            instants=self.instants,
            data=rows,
            lacking={},
        )

    def take_rows(self, winner: Numbers) -> tuple[pa.Table, Numbers]:
        """The winners' data rows in one table, and each winner's place in it (-1: none)."""
        source = self.row[winner]
        is_live = source >= 0
        return self.data.take(to_arrow(source[is_live])).combine_chunks(), _record_places(is_live)


def _record_places(is_live: Flags) -> Numbers:
    """The number of each version that is a record, in order, and -1 for each delete."""
    return np.where(is_live, np.cumsum(is_live) - 1, -1)


def _lacking(blocks: Sequence[LogPart], rows: pa.Table, shape: RecordShape) -> Mapping[str, Flags]:
    """Which of the rows of these blocks lack which columns."""
    lacking = lacking_values(rows, shape.partial_update)
    parts = [block for block in blocks if isinstance(block, DataBlock)]
    for name in frozenset[str]().union(*(part.absent or () for part in parts)):
        flags = [np.full(len(part.records), name in (part.absent or ())) for part in parts]
        lacking[name] = np.concatenate(flags) | lacking.get(name, False)
    return lacking


def winners(codes: Numbers, key_count: int, log: _Log, rule: MergeRule) -> Numbers:
    """The position of each key's winner."""
    match rule:
        case MergeRule.COMMIT_TIME_ORDERING | MergeRule.CUSTOM:  # of CUSTOM, `reduced` has left one version of each key
            return last_of_keys(codes, key_count)
        case MergeRule.EVENT_TIME_ORDERING:
            return _greatest(codes, key_count, ranks(log.orderings), log.is_natural_delete)
        case MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
            numbers = ranks(log.orderings)
            greatest = _greatest(codes, key_count, numbers, log.is_natural_delete)
            return _fold_one_by_one(codes, greatest, numbers, log, rule)
        case MergeRule.HUDI_0X_DEFAULT | MergeRule.HUDI_1_1_CUSTOM_PAYLOAD:
            raise AssertionError(f"{rule} does not apply to reads")
        case _:
            assert_never(rule)


def _greatest(codes: Numbers, key_count: int, order: Numbers, is_natural_delete: Flags) -> Numbers:
    """The last of the greatest versions after each key's last natural delete, or else this delete."""
    deleted = last_of_keys(codes, key_count, is_natural_delete)
    counts = np.arange(len(codes)) > deleted[codes]
    greatest = np.full(key_count, LEAST, np.int64)
    np.maximum.at(greatest, codes[counts], order[counts])
    return np.maximum(deleted, last_of_keys(codes, key_count, counts & (order == greatest[codes])))


def _fold_one_by_one(codes: Numbers, winner: Numbers, order: Numbers, log: _Log, rule: MergeRule) -> Numbers:
    """Corrects `winner` for the keys with ordered deletes, for which Hudi 0.x's rule is not an order of the versions."""
    is_delete = log.row < 0
    keys = np.unique(codes[is_delete & ~log.is_natural_delete])
    chosen = np.nonzero(np.isin(codes, keys))[0]
    chosen = chosen[np.argsort(codes[chosen], kind="stable")]
    for places in np.split(chosen, np.nonzero(np.diff(codes[chosen]))[0] + 1):
        last = fold(
            rule,
            (Version(None if log.is_natural_delete[i] else int(order[i]), bool(is_delete[i]), int(i)) for i in places),
        )
        if last is not None:
            winner[codes[last.position]] = last.position
    return winner

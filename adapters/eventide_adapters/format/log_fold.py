"""Folds a slice's logs into one winner a key, in whole columns: the first step of core's record_order.

Keys become numbers in order of first appearance, records positions in reader order.

COMMIT_TIME_ORDERING: the last position wins.
EVENT_TIME_ORDERING: only what follows the key's last natural delete counts; the greatest ordering value among that wins,
the last position on a tie; where nothing follows it, the natural delete itself is the winner.
HUDI_0X_OVERWRITE_WITH_LATEST: the same, but the few keys with an ordered delete are folded one by one.

An upsert without ordering value counts as less than any value: Hudi can't read such a table itself. Without an ordering
field all ordering values are equal. Floating-point values are ordered as Java's Double.compareTo does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro_schema import RECORD_KEY
from eventide_adapters.format.log_records import DataBlock, DeleteBlock
from eventide_core.errors import RecordDecodeError, UnsupportedTableError
from eventide_core.table.record_order import MergeRule, Version, fold
from eventide_core.table.record_shape import RecordShape

_LEAST = np.iinfo(np.int64).min

Numbers: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FoldedLogs:
    """The winner of each key in the logs; all arrays count keys.

    `rows` holds the winning records that are no deletes, in order of the keys' first appearance, and `row_of` says which
    of them is a key's: -1 where the winner is a delete. `orderings` has a null where there is no ordering value.
    """

    keys: pa.Array[Any]
    orderings: pa.Array[Any]
    is_natural_delete: Flags
    row_of: Numbers
    rows: pa.Table
    instants: tuple[str, ...]
    instant_of: Numbers
    record_count: int
    block_count: int

    @property
    def is_delete(self) -> Flags:
        return self.row_of < 0

    @classmethod
    def of(cls, blocks: Iterable[DataBlock | DeleteBlock], schema: pa.Schema, shape: RecordShape) -> FoldedLogs:
        """Folds blocks in reader order; data blocks have exactly the columns of `schema`."""
        log = _Log.of(tuple(blocks), schema, shape)
        encoded = log.keys.dictionary_encode()
        if encoded.null_count:
            raise RecordDecodeError(
                f"a log record of instants {min(log.instants)} to {max(log.instants)} has no {RECORD_KEY}; "
                "roll back the write that made it"
            )
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        winner = _winners(codes, len(encoded.dictionary), log, shape.merge_rule)
        rows, row_of = log.take_rows(winner)
        return cls(
            keys=encoded.dictionary,
            orderings=log.orderings.take(winner),
            is_natural_delete=log.is_natural_delete[winner],
            row_of=row_of,
            rows=rows,
            instants=log.instants,
            instant_of=log.block_of[winner],
            record_count=len(codes),
            block_count=log.block_count,
        )


@dataclass(frozen=True, slots=True)
class _Log:
    """All records of the logs in reader order, deletes among them; arrays count records, `tables` are the data blocks.

    `row` is a record's place in the data blocks laid end to end, -1 for a delete. A block may come in several parts, which
    count as one in `block_count`.
    """

    keys: pa.Array[Any]
    orderings: pa.Array[Any]
    is_natural_delete: Flags
    row: Numbers
    block_of: Numbers
    instants: tuple[str, ...]
    data: pa.Table
    block_count: int

    @classmethod
    def of(cls, blocks: Sequence[DataBlock | DeleteBlock], schema: pa.Schema, shape: RecordShape) -> _Log:
        ordering_type = _ordering_type(schema, shape)
        keys: list[pa.Array[Any]] = [pa.array([], schema.field(RECORD_KEY).type)]
        orderings: list[pa.Array[Any]] = [pa.array([], ordering_type)]
        is_natural_delete = [np.zeros(0, np.bool_)]
        rows = [np.zeros(0, np.int64)]
        data: list[pa.RecordBatch] = []
        data_count = 0
        for block in blocks:
            if isinstance(block, DeleteBlock):
                keys.append(block.keys)
                orderings.append(_orderings_of_deletes(block, ordering_type))
                is_deleted = np.ones(len(block.keys), np.bool_)
                rows.append(np.full(len(block.keys), -1, np.int64))
            else:
                records = block.records
                keys.append(records.column(RECORD_KEY))
                orderings.append(_orderings_of_records(records, shape))
                is_deleted = np.zeros(len(records), np.bool_)
                rows.append(np.arange(data_count, data_count + len(records)))
                data.append(records)
                data_count += len(records)
            is_natural_delete.append(is_deleted & orderings[-1].is_null().to_numpy(zero_copy_only=False))
        return cls(
            keys=pa.concat_arrays(keys),
            orderings=pa.concat_arrays(orderings),
            is_natural_delete=np.concatenate(is_natural_delete),
            row=np.concatenate(rows),
            block_of=np.repeat(np.arange(len(blocks)), [len(part) for part in rows[1:]]),
            instants=tuple(block.instant for block in blocks),
            data=pa.Table.from_batches(data, schema),
            block_count=sum(block.is_first for block in blocks),
        )

    def take_rows(self, winner: Numbers) -> tuple[pa.Table, Numbers]:
        """The data rows among the winning records in one piece, and which of them is each winner's (-1: none)."""
        source = self.row[winner]
        is_live = source >= 0
        row_of = np.where(is_live, np.cumsum(is_live) - 1, -1)
        return self.data.take(source[is_live]).combine_chunks(), row_of


def _winners(codes: Numbers, key_count: int, log: _Log, rule: MergeRule) -> Numbers:
    """The position of each key's winner."""
    positions = np.arange(len(codes))
    winner = np.full(key_count, -1, np.int64)
    match rule:
        case MergeRule.COMMIT_TIME_ORDERING:
            np.maximum.at(winner, codes, positions)
            return winner
        case MergeRule.EVENT_TIME_ORDERING:
            return _greatest(codes, winner, positions, _ranks(log.orderings), log.is_natural_delete)
        case MergeRule.HUDI_0X_OVERWRITE_WITH_LATEST:
            ranks = _ranks(log.orderings)
            greatest = _greatest(codes, winner, positions, ranks, log.is_natural_delete)
            return _fold_one_by_one(codes, greatest, ranks, log, rule)
        case MergeRule.HUDI_0X_DEFAULT:
            raise AssertionError(f"{rule} is no rule to read by")
        case _:
            assert_never(rule)


def _greatest(codes: Numbers, winner: Numbers, positions: Numbers, ranks: Numbers, is_natural_delete: Flags) -> Numbers:
    """`winner`, all -1, becomes the last of the greatest after a key's last natural delete, or that delete."""
    np.maximum.at(winner, codes[is_natural_delete], positions[is_natural_delete])
    counts = positions > winner[codes]
    greatest = np.full(len(winner), _LEAST, np.int64)
    np.maximum.at(greatest, codes[counts], ranks[counts])
    is_best = counts & (ranks == greatest[codes])
    np.maximum.at(winner, codes[is_best], positions[is_best])
    return winner


def _fold_one_by_one(codes: Numbers, winner: Numbers, ranks: Numbers, log: _Log, rule: MergeRule) -> Numbers:
    """`winner`, corrected for the keys with ordered deletes: there Hudi 0.x's rule is no order of the versions."""
    is_delete = log.row < 0
    keys = np.unique(codes[is_delete & ~log.is_natural_delete])
    chosen = np.nonzero(np.isin(codes, keys))[0]
    chosen = chosen[np.argsort(codes[chosen], kind="stable")]
    for places in np.split(chosen, np.nonzero(np.diff(codes[chosen]))[0] + 1):
        last = fold(
            rule,
            (Version(None if log.is_natural_delete[i] else int(ranks[i]), bool(is_delete[i]), int(i)) for i in places),
        )
        if last is not None:
            winner[codes[last.position]] = last.position
    return winner


def _ranks(orderings: pa.Array[Any]) -> Numbers:
    """Numbers that are ordered as the values are; the least of all for a null."""
    values: Any = comparable(orderings)
    if pa.types.is_integer(values.type) or pa.types.is_temporal(values.type):
        width = pa.int32() if values.type.bit_width == 32 else pa.int64()
        numbers = values.view(width).cast(pa.int64())
    else:
        encoded = values.dictionary_encode()
        rank_of = np.empty(len(encoded.dictionary), np.int64)
        rank_of[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
        ranks: Any = pa.array(rank_of)
        numbers = ranks.take(encoded.indices)
    return np.asarray(numbers.fill_null(_LEAST).to_numpy(zero_copy_only=False))


def comparable(values: pa.Array[Any]) -> pa.Array[Any]:
    """The values such that Arrow's order is Hudi's: floats become integers in Java's total order of them."""
    if not pa.types.is_floating(values.type):
        return values
    doubles: Any = values.cast(pa.float64())
    numbers = doubles.fill_null(0.0).to_numpy(zero_copy_only=False).copy()
    numbers[np.isnan(numbers)] = np.nan  # one NaN, the positive one, greater than infinity
    bits = numbers.view(np.int64)
    ordered = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    with_nulls: pa.Array[Any] = pa.array(ordered, mask=values.is_null().to_numpy(zero_copy_only=False))
    return with_nulls


def _ordering_type(schema: pa.Schema, shape: RecordShape) -> pa.DataType:
    if shape.ordering_field is None:
        return pa.int64()
    if shape.ordering_field not in schema.names:
        raise UnsupportedTableError(
            f"ordering field {shape.ordering_field} is no column of the table ({', '.join(schema.names)})"
        )
    ordering_type: pa.DataType = schema.field(shape.ordering_field).type
    return ordering_type


def _orderings_of_records(records: pa.RecordBatch, shape: RecordShape) -> pa.Array[Any]:
    if shape.ordering_field is None:
        return pa.array(np.zeros(len(records), np.int64))
    orderings: pa.Array[Any] = records.column(shape.ordering_field)
    return orderings


def _orderings_of_deletes(block: DeleteBlock, ordering_type: pa.DataType) -> pa.Array[Any]:
    if block.orderings.type == ordering_type:
        return block.orderings
    assert block.orderings.null_count == len(block.orderings), "ordering values of another type than the column's"
    return pa.array([None] * len(block.orderings), ordering_type)

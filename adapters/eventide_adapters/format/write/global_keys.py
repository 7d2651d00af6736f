"""Places the records of a write in a table in which a key is unique across partitions: Hudi's global indexes.

A key is in a slice that shows a row for it. Rows that log files delete don't count, because a key that has moved leaves its
old row in a base file. If a record's key is

    in the record's partition          the record is written to that slice
    in another partition, and the      the record is written to that slice, with that partition
    record is a delete or keys
    don't move
    in another partition, and keys     the record stays in its partition as a new record, and its key is deleted in the
    move                               other one. If the row there has a greater ordering value, the record is written to
                                       that slice instead, and loses
    in no slice                        the record is new
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Numbers
from eventide_adapters.format.encoding.columns.field_path import top_level
from eventide_adapters.format.slice.log_file.ordering_values import common_ranks, orderings_of
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.write.key_lookup import LookupTask, held_keys
from eventide_adapters.format.write.keyed_records import IS_DELETE, key_parts, keyed_schema
from eventide_core.ports import Storage
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from eventide_core.table.settings.write_shape import WriteShape

PLACE: Final = "_eventide_place"


@dataclass(frozen=True, slots=True)
class Homes:
    """The homes of keys, the slices that show a row for them. The arrays are parallel, with an entry for each home.

    `rows` has the number of the record with the key among the write's records; a key with several rows, or several homes, is
    there several times. `partitions` and `file_ids` name the slice. `orderings` has the ordering value of the row in the
    table.
    """

    rows: Numbers
    partitions: ArrowArray
    file_ids: ArrowArray
    orderings: ArrowArray


def shown_keys(storage: Storage, task: LookupTask, /) -> tuple[Numbers, ArrowArray]:
    """The positions of the task's keys for which its slice shows rows, and their ordering values."""
    fields = task.shape.ordering_fields
    positions: list[Numbers] = [np.zeros(0, np.int64)]
    orderings: list[ArrowArray] = []
    held = held_keys(storage, task)
    wanted: Any = task.keys.take(_indices(held))
    columns = [RECORD_KEY, *top_level(fields)]
    reader = ArrowSliceReader(storage)
    for batch in reader.read(task.file_slice, task.shape, columns) if len(held) else ():
        indices: Any = pc.index_in(batch.column(RECORD_KEY), value_set=wanted)
        living = batch.filter(indices.is_valid())
        positions.append(held[indices.drop_null().to_numpy()])
        orderings.append(orderings_of(living, fields))
    return np.concatenate(positions), pa.concat_arrays(orderings) if orderings else pa.nulls(0)


def homes_of(
    lookups: Sequence[tuple[Numbers, ArrowArray]], slices: Sequence[tuple[str, str]], key_codes: Numbers
) -> Homes:
    """Converts the results of lookups in `slices` (partition, file ID) from distinct keys to rows of the records.

    `key_codes` has, for each row of the records, the position of its key among the distinct keys.
    """
    by_key = np.argsort(key_codes, kind="stable")
    begins, ends = (
        np.searchsorted(key_codes[by_key], np.arange(key_codes.max(initial=-1) + 1), side) for side in ("left", "right")
    )
    keys = np.concatenate([np.zeros(0, np.int64), *(positions for positions, _ in lookups)])
    slice_numbers = np.repeat(np.arange(len(slices)), [len(positions) for positions, _ in lookups])
    counts = ends[keys] - begins[keys]
    rows = np.concatenate(
        [np.zeros(0, np.int64), *(by_key[b:e] for b, e in zip(begins[keys], ends[keys], strict=True))]
    )
    of_home = np.repeat(np.arange(len(keys)), counts)
    orderings = [values for _, values in lookups if len(values)]
    numbers = _indices(slice_numbers[of_home])
    return Homes(
        rows,
        pa.array([partition for partition, _ in slices], pa.string()).take(numbers),
        pa.array([file_id for _, file_id in slices], pa.string()).take(numbers),
        (pa.concat_arrays(orderings) if orderings else pa.nulls(0)).take(_indices(of_home)),
    )


def place_records(keyed: pa.Table, homes: Homes, shape: WriteShape, *, moves: bool) -> pa.Table:
    """The records with their places in a column PLACE, including the deletes of keys that move."""
    at_home = keyed.take(_indices(homes.rows))
    is_own = pc.equal(at_home.column(PARTITION_PATH).combine_chunks(), homes.partitions).to_numpy(zero_copy_only=False)
    is_delete = at_home.column(IS_DELETE).to_numpy()
    leaves = ~is_own & ~is_delete & _wins(at_home, homes, shape) if moves else np.zeros(len(homes.rows), np.bool_)
    stays = ~leaves

    is_new = np.ones(len(keyed), np.bool_)
    is_new[homes.rows[stays]] = False
    is_new[homes.rows[leaves]] = True
    is_new[homes.rows[is_own]] = False
    new = keyed.filter(pa.array(is_new))
    parts = [
        _with_places(at_home, homes, stays),
        _deletes(_with_places(at_home, homes, leaves), shape),
        new.append_column(PLACE, pa.repeat("", len(new))),
    ]
    return pa.concat_tables(parts)


def _indices(numbers: Numbers) -> Any:
    return pa.array(numbers, pa.int64())


def _wins(rows: pa.Table, homes: Homes, shape: WriteShape) -> npt.NDArray[np.bool_]:
    """For each record, if it beats the row at its key's home. True if the ordering values are not known."""
    is_by_commit = shape.records.merge_rule is MergeRule.COMMIT_TIME_ORDERING
    if is_by_commit or not len(homes.rows) or pa.types.is_null(homes.orderings.type):
        return np.ones(len(homes.rows), np.bool_)
    mine = orderings_of(rows.combine_chunks().to_batches()[0], shape.records.ordering_fields)
    own, there = common_ranks(mine, homes.orderings)
    return own >= there


def _with_places(rows: pa.Table, homes: Homes, chosen: npt.NDArray[np.bool_]) -> pa.Table:
    mask = pa.array(chosen)
    placed = rows.filter(mask)
    number = placed.schema.get_field_index(PARTITION_PATH)
    placed = placed.set_column(number, placed.schema.field(number), homes.partitions.filter(mask))
    return placed.append_column(PLACE, homes.file_ids.filter(mask))


def _deletes(rows: pa.Table, shape: WriteShape) -> pa.Table:
    """The records as deletes in natural order, which delete any version."""
    kept = {RECORD_KEY, PARTITION_PATH, PLACE, *key_parts(shape)}
    schema = keyed_schema(shape).append(pa.field(PLACE, pa.string()))
    columns: list[Any] = [
        rows.column(field.name)
        if field.name in kept
        else pa.repeat(True, len(rows))
        if field.name == IS_DELETE
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)

"""Places the records of a write by the record index of Hudi's metadata table, instead of a search in the table's files.

The index names the slice of each key (`global_keys` calls it the key's home), but not the row's ordering value. Where keys
move between partitions and ordering values decide, the home of each key that may move is read, for these keys alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Numbers
from eventide_adapters.format.encoding.columns.java_hash import file_group_numbers
from eventide_adapters.format.write.global_keys import Homes, homes_of, place_records
from eventide_adapters.format.write.key_lookup import LookupTask
from eventide_adapters.format.write.keyed_records import IS_DELETE
from eventide_core.ports import KeyIndex
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY
from eventide_core.table.settings.write_shape import WriteShape

Found: TypeAlias = tuple[Numbers, ArrowArray]
"""The positions of the keys that a lookup in a slice found, and their ordering values."""


@dataclass(frozen=True, slots=True)
class Places:
    """The homes of keys, in the order of the keys that were looked up.

    `partitions` and `file_ids` are parallel; both are null for a key that the table doesn't have.
    """

    partitions: ArrowArray
    file_ids: ArrowArray

    def take(self, rows: Numbers) -> "Places":
        chosen: Any = pa.array(rows, pa.int64())
        return Places(self.partitions.take(chosen), self.file_ids.take(chosen))

    def slices(self) -> set[tuple[str, str]]:
        """The slices that are the home of a key."""
        table = pa.table({"partition": self.partitions, "file_id": self.file_ids}).drop_null()
        return {
            (row["partition"], row["file_id"])
            for row in table.group_by(table.column_names, use_threads=False).aggregate([]).to_pylist()
        }


def located_keys(index: KeyIndex, task: tuple[int, ArrowArray], /) -> Places:
    """The homes of keys by one file group of the record index. A task is the file group's number and the keys."""
    number, keys = task
    texts: list[Any] = keys.to_pylist()
    homes_by_key = index.locate(number, texts)
    homes = [homes_by_key.get(text, (None, None)) for text in texts]
    partitions, file_ids = ([home[part] for home in homes] for part in (0, 1))
    return Places(
        *(pa.array(column, pa.string()).dictionary_encode().cast(pa.string()) for column in (partitions, file_ids))
    )


def by_index_group(keys: ArrowArray, index: KeyIndex) -> tuple[list[tuple[int, ArrowArray]], Numbers]:
    """The lookups of these keys, and the order in which they ask for the keys."""
    numbers = file_group_numbers(keys, index.file_groups)
    order = np.argsort(numbers, kind="stable")
    asked, begins = np.unique(numbers[order], return_index=True)
    borders = pairwise([*begins, len(keys)])
    by_number: Any = pa.array(order, pa.int64())
    sorted_keys: Any = keys.take(by_number)
    tasks = [(int(n), sorted_keys.slice(int(b), int(e - b))) for n, (b, e) in zip(asked, borders, strict=True)]
    return tasks, order


def places_of(lookups: Sequence[Places], order: Numbers) -> Places:
    """The results of the lookups of `by_index_group`, in the order of its keys."""
    none: ArrowArray = pa.array([], pa.string())
    whole = Places(
        pa.concat_arrays([none, *(one.partitions for one in lookups)]),
        pa.concat_arrays([none, *(one.file_ids for one in lookups)]),
    )
    return whole.take(np.argsort(order, kind="stable"))


def is_decided_at_home(keyed: pa.Table, places: Places, shape: WriteShape, *, moves: bool) -> npt.NDArray[np.bool_]:
    """For each record, if the ordering value of the row at its key's home decides where it is written."""
    if not moves or shape.records.merge_rule is MergeRule.COMMIT_TIME_ORDERING:
        return np.zeros(len(keyed), np.bool_)
    is_elsewhere: Any = pc.not_equal(keyed.column(PARTITION_PATH).combine_chunks(), places.partitions)
    is_delete: npt.NDArray[np.bool_] = keyed.column(IS_DELETE).to_numpy().astype(np.bool_)
    moves_away: npt.NDArray[np.bool_] = pc.fill_null(is_elsewhere, False).to_numpy(zero_copy_only=False)
    return ~is_delete & moves_away


def place_located(keyed: pa.Table, places: Places, shape: WriteShape, *, moves: bool) -> pa.Table:
    """The records with their places, as `place_records` returns them; no ordering value decides."""
    is_known = places.file_ids.is_valid()
    rows = np.flatnonzero(is_known.to_numpy(zero_copy_only=False))
    homes = Homes(rows, places.partitions.filter(is_known), places.file_ids.filter(is_known), pa.nulls(len(rows)))
    return place_records(keyed, homes, shape, moves=moves)


def place_decided(
    keyed: pa.Table,
    places: Places,
    slices: Sequence[SliceRead],
    shape: WriteShape,
    look_up: Callable[[Sequence[LookupTask]], Sequence[Found]],
) -> pa.Table:
    """The records with their places, of those whose homes decide. `slices` are these homes. Keys move."""
    coded = keyed.column(RECORD_KEY).combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    first = np.zeros(len(coded.dictionary), np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    of_key = places.take(first)
    pairs: list[Any] = list(zip(of_key.partitions.to_pylist(), of_key.file_ids.to_pylist(), strict=True))
    position_of = {(one.partition, one.file_id): position for position, one in enumerate(slices)}
    number_of_key = np.array([position_of[pair] for pair in pairs], np.int64)
    all_keys: Any = coded.dictionary
    asked = [np.flatnonzero(number_of_key == position) for position in range(len(slices))]
    tasks = [
        LookupTask(one, shape.records, all_keys.take(pa.array(keys, pa.int64())), by_bloom=False)
        for one, keys in zip(slices, asked, strict=True)
    ]
    lookups = [(keys[own], values) for keys, (own, values) in zip(asked, look_up(tasks), strict=True)]
    homes = homes_of(lookups, [(one.partition, one.file_id) for one in slices], codes)
    return place_records(keyed, homes, shape, moves=True)

"""The records of a write as Arrow tables in this process: ports.IncomingRecords.

1. `keyed_records` adds keys and partition paths, checks the records, and keeps one version of each key if requested.
2. Each record gets its place: a bucket, the file group that contains its key, or none.
3. After the groups of the write are planned, a record is assigned to its place's group. If the place has several groups, a
   hash of the record's key selects one, so that a second run assigns it to the same group.
4. The rows are sorted by group once, and each group's rows are passed to a task of the engine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Numbers
from eventide_adapters.format.encoding.columns.java_hash import buckets_of, shares_of
from eventide_adapters.format.write.global_keys import PLACE, homes_of, place_records, shown_keys
from eventide_adapters.format.write.incoming_schema import evolved_schema
from eventide_adapters.format.write.indexed_keys import (
    by_index_group,
    is_decided_at_home,
    located_keys,
    place_decided,
    place_located,
    places_of,
)
from eventide_adapters.format.write.key_lookup import LookupTask, held_keys
from eventide_adapters.format.write.keyed_records import (
    IS_DELETE,
    combined,
    key_parts,
    keyed_deletes,
    keyed_upserts,
    require_single_keys,
)
from eventide_adapters.format.write.record_writer import GroupRows, RowWriter
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import Engine, KeyIndex
from eventide_core.table.files.bucket import bucket_name
from eventide_core.table.files.file_group_write import FileGroupWrite, Placement
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY, AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules, WriteShape
from eventide_core.table.timeline.contents.commit_metadata import WriteStat


@dataclass(slots=True)
class ArrowRecords:
    """`upserts` have columns of the table; `deletes` have the columns of key, partition and optionally ordering."""

    upserts: pa.Table | None
    deletes: pa.Table | None
    engine: Engine
    writer: RowWriter
    _shape: WriteShape | None = None
    _keyed: pa.Table = field(default_factory=lambda: pa.table({}))
    _places: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    _place_of_row: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))

    def schema_after(self, table_schema: AvroSchema | None, table_name: str, rules: SchemaRules) -> AvroSchema:
        if self.upserts is not None:
            return evolved_schema(table_schema, self.upserts.schema, table_name, rules)
        assert table_schema is not None, "deletes of a table that has no schema"
        return table_schema

    def prepare(self, shape: WriteShape, *, combines: bool) -> None:
        parts: list[pa.Table] = []
        if self.upserts is not None:
            upserts = keyed_upserts(self.upserts, shape)
            parts.append(combined(upserts, shape) if combines else upserts)
        if self.deletes is not None:
            parts.append(combined(keyed_deletes(self.deletes, shape), shape))
        self._keyed = pa.concat_tables(parts).combine_chunks()
        self._shape = shape
        if len(parts) == 2:
            require_single_keys(self._keyed, shape)

    def place_by_bucket(self, buckets: int, hash_fields: Sequence[str]) -> tuple[Placement, ...]:
        texts = hashed_texts(self._keyed, self._required_shape, hash_fields)
        numbers = buckets_of(texts, buckets)
        return self._place(numbers, bucket_name)

    def place_by_key(self, slices: Sequence[SliceRead], *, by_bloom: bool) -> tuple[Placement, ...]:
        partitions: Any = self._keyed.column(PARTITION_PATH).combine_chunks()
        keys = self._keyed.column(RECORD_KEY).combine_chunks()
        rows_of: dict[str, Numbers] = {}
        tasks: list[LookupTask] = []
        for file_slice in slices:
            if file_slice.partition not in rows_of:
                is_there = pc.equal(partitions, pa.scalar(file_slice.partition)).to_numpy(zero_copy_only=False)
                rows_of[file_slice.partition] = np.flatnonzero(is_there)
            rows = rows_of[file_slice.partition]
            if len(rows):
                wanted = keys.take(rows)
                tasks.append(LookupTask(file_slice, self._required_shape.records, wanted, by_bloom=by_bloom))
        lookups = self.engine.map(partial(held_keys, self.writer.storage), tasks)
        # If a key is in several file groups, after an insert that did not look it up, it is written to each of them.
        hits = [rows_of[task.file_slice.partition][positions] for task, positions in zip(tasks, lookups, strict=True)]
        slice_of_hit = np.repeat(np.arange(1, len(tasks) + 1), [len(rows) for rows in hits])
        hit_rows = np.concatenate([np.zeros(0, np.int64), *hits])
        is_new = np.ones(len(keys), np.bool_)
        is_new[hit_rows] = False
        rows = np.concatenate([hit_rows, np.flatnonzero(is_new)])
        numbers = np.concatenate([slice_of_hit, np.zeros(len(rows) - len(hit_rows), np.int64)])
        order = np.argsort(rows, kind="stable")
        self._keyed = self._keyed.take(rows[order])
        names = ["", *(task.file_slice.file_id for task in tasks)]
        return self._place(numbers[order], lambda number: names[number])

    def place_by_global_key(
        self, slices: Sequence[SliceRead], *, by_bloom: bool, moves: bool, index: KeyIndex | None = None
    ) -> tuple[Placement, ...]:
        shape = self._required_shape
        coded = self._keyed.column(RECORD_KEY).combine_chunks().dictionary_encode()
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        placed = None if index is None else self._placed_by_index(coded.dictionary, codes, slices, index, moves=moves)
        if placed is None:
            tasks = [LookupTask(one, shape.records, coded.dictionary, by_bloom=by_bloom) for one in slices]
            lookups = self.engine.map(partial(shown_keys, self.writer.storage), tasks)
            homes = homes_of(lookups, [(one.partition, one.file_id) for one in slices], codes)
            placed = place_records(self._keyed, homes, shape, moves=moves)
        placed = placed.combine_chunks()
        self._keyed = placed.drop_columns([PLACE])
        places = placed.column(PLACE).combine_chunks().dictionary_encode()
        names: list[Any] = places.dictionary.to_pylist()
        return self._place(places.indices.to_numpy(zero_copy_only=False).astype(np.int64), lambda number: names[number])

    def _placed_by_index(
        self, keys: ArrowArray, codes: Numbers, slices: Sequence[SliceRead], index: KeyIndex, *, moves: bool
    ) -> pa.Table | None:
        """None if the index names a slice that is not among `slices`."""
        shape, known = self._required_shape, {(one.partition, one.file_id): one for one in slices}
        tasks, order = by_index_group(keys, index)
        by_key = places_of(self.engine.map(partial(located_keys, index), tasks), order)
        if not by_key.slices() <= known.keys():
            return None
        places = by_key.take(codes)
        decides = is_decided_at_home(self._keyed, places, shape, moves=moves)
        chosen, others = np.flatnonzero(decides), np.flatnonzero(~decides)
        homes = places.take(chosen)
        read = [known[place] for place in sorted(homes.slices())]
        look_up = partial(self.engine.map, partial(shown_keys, self.writer.storage))
        return pa.concat_tables(
            [
                place_located(self._keyed.take(others), places.take(others), shape, moves=moves),
                place_decided(self._keyed.take(chosen), homes, read, shape, look_up),
            ]
        )

    def place_nowhere(self) -> tuple[Placement, ...]:
        return self._place(np.zeros(len(self._keyed), np.int64), lambda _: "")

    def write(
        self, groups: Sequence[FileGroupWrite], *, on_done: Callable[[], None] | None = None
    ) -> list[tuple[WriteStat, ...]]:
        group_of_row = assign_groups(self._places, self._place_of_row, self._keyed.column(RECORD_KEY), groups)
        order = np.argsort(group_of_row, kind="stable")
        rows = self._keyed.take(order)
        bounds = np.searchsorted(group_of_row[order], np.arange(len(groups) + 1))
        tasks = [
            GroupRows(group, self._required_shape, rows.slice(int(begin), int(end - begin)))
            for group, begin, end in zip(groups, bounds[:-1], bounds[1:], strict=True)
        ]
        return self.engine.map(self.writer, tasks, on_done=on_done)

    @property
    def _required_shape(self) -> WriteShape:
        assert self._shape is not None, "records are placed before they were prepared"
        return self._shape

    def _place(self, numbers: Numbers, name: Callable[[int], str]) -> tuple[Placement, ...]:
        """Sets each row's place, by its partition and number. Returns a placement for each partition and number."""
        partitions = self._keyed.column(PARTITION_PATH).combine_chunks().dictionary_encode()
        directories: list[Any] = partitions.dictionary.to_pylist()
        span = int(numbers.max()) + 1 if len(numbers) else 1
        codes = partitions.indices.to_numpy(zero_copy_only=False).astype(np.int64) * span + numbers
        groups, self._place_of_row = np.unique(codes, return_inverse=True)
        self._places = [(directories[int(code) // span], name(int(code) % span)) for code in groups]
        is_delete = self._keyed.column(IS_DELETE).to_numpy()
        deletes = np.bincount(self._place_of_row[is_delete], minlength=len(groups))
        counts = np.bincount(self._place_of_row, minlength=len(groups))
        return tuple(
            Placement(*place, upserts=int(count - deleted), deletes=int(deleted))
            for place, count, deleted in zip(self._places, counts, deletes, strict=True)
        )


def hashed_texts(keyed: pa.Table, shape: WriteShape, hash_fields: Sequence[str]) -> list[Any]:
    """The columns with the texts that are hashed for a key's bucket.

    Raises UnsupportedTableError for a key that Hudi's versions split in different ways.
    """
    parts = key_parts(shape)
    names = [parts[shape.keys.key_fields.index(name)] for name in hash_fields] if parts else [RECORD_KEY]
    own_colon = shape.keys.names_key_fields and not parts
    for name in parts or (RECORD_KEY,):
        column: Any = keyed.column(name).combine_chunks()
        if own_colon:
            # `field:value`: Hudi hashes it as a whole if it contains no comma.
            unclear = pc.match_substring(column, ",")
        else:
            unclear = pc.match_substring_regex(column, "[:,]" if parts else ":")
        row: int = pc.index(unclear, pa.scalar(value=True)).as_py()
        if row >= 0:
            raise UnsupportedTableError(
                f"record key {keyed.column(RECORD_KEY)[row].as_py()!r}: Hudi's bucket index misreads a key whose "
                "value contains a colon or comma; use another key, or a table that was created "
                "with hoodie.index.type=SIMPLE, BLOOM or RECORD_INDEX"
            )
    return [keyed.column(name).combine_chunks() for name in names]


def assign_groups(
    places: Sequence[tuple[str, str]], place_of_row: Numbers, keys: Any, groups: Sequence[FileGroupWrite]
) -> Numbers:
    """The position in `groups` of each row's file group; len(groups) for a row without a group."""
    positions: dict[tuple[str, str], list[int]] = {}
    for position, group in enumerate(groups):
        positions.setdefault((group.partition, group.place), []).extend([position] * group.share)
    dealt = [positions.get(place, [len(groups)]) for place in places]
    first = np.array([chosen[0] for chosen in dealt] or [0], np.int64)[place_of_row]
    if all(len(chosen) == 1 for chosen in dealt):
        return first
    shares = shares_of(keys.combine_chunks())
    for number, chosen in enumerate(dealt):
        if len(chosen) > 1:
            rows = np.flatnonzero(place_of_row == number)
            picked = (shares[rows] % np.uint64(len(chosen))).astype(np.int64)
            first[rows] = np.array(chosen, np.int64)[picked]
    return first

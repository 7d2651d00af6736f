"""Merges a slice's folded log files with its base file, in whole columns: the second step of core's record_order.

The base file is read in batches, so that memory holds the log files, the current batch, and the batch that is read ahead.

1. A base row stays if no log file has a winner for its key. Otherwise, the winner replaces the row, except under
   EVENT_TIME_ORDERING if the base row's ordering value is greater and the winner is not a natural delete. If several base
   rows have one key (insert operations may write them), the winner meets only the first, as in Hudi 1.1.1; but all of them
   if the log files state positions in the base file (`positions`).
   Under CUSTOM, the user-defined merger makes the row of both; its rule for deletes decides whether a delete replaces the
   row.
2. The winning record takes the columns that it lacks from the other one (partial_fold). So a base row that wins takes them
   from the log files' winner, which comes too late to win.
3. Winners that met no base row come last, as inserts, in order of their first appearance in the log files.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray, Flags, Numbers, to_arrow
from eventide_adapters.format.encoding.columns.field_path import top_level
from eventide_adapters.format.encoding.parquet.dictionary_columns import in_columns, with_dictionaries
from eventide_adapters.format.slice.log_file.ordering_values import later_wins, orderings_of
from eventide_adapters.format.slice.merge.key_table import KeyTable
from eventide_adapters.format.slice.merge.log_fold import FoldedLogFiles
from eventide_adapters.format.slice.merge.partial_fold import lacking_values, taken
from eventide_adapters.format.slice.merge.record_mergers import merge_rows
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY

Fillers: TypeAlias = Mapping[str, tuple[Numbers, Numbers]]


def merge_columns(shape: RecordShape) -> tuple[str, ...]:
    """The columns that a merge always needs: all if a user-defined merger makes rows of them."""
    if shape.merger is not None:
        return tuple(field.name for field in table_fields(shape.schema))
    return top_level((RECORD_KEY, *shape.ordering_fields))


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Deletes with an ordering value that won.

    `keys`, `orderings` and `instants` are parallel: the record key, the ordering value, which is never null, and the instant
    of the write whose block has the delete.
    """

    keys: ArrowArray
    orderings: ArrowArray
    instants: tuple[str, ...]

    def filter(self, mask: ArrowArray) -> "Tombstones":
        """The tombstones for which the mask is true."""
        instants = tuple(i for i, is_kept in zip(self.instants, mask.to_pylist(), strict=True) if is_kept)
        return Tombstones(self.keys.filter(mask), self.orderings.filter(mask), instants)


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """What a merge changes of the base's rows, for the change log: a table for each batch of the base that it changes.

    `before` has the rows that are replaced, as the base has them, and `after` in the same order as they are now. `deleted`
    has the rows that are removed, as the base has them.
    """

    before: list[pa.Table] = field(default_factory=list[pa.Table])
    after: list[pa.Table] = field(default_factory=list[pa.Table])
    deleted: list[pa.Table] = field(default_factory=list[pa.Table])


@dataclass(slots=True)
class SliceMerge:
    """One pass over a base file. The counts, `tombstones` and `changes` are complete after `batches`, or after `inserted`.

    `updates` and `deletes` count rows of the base that a winner replaced or removed, `inserts` the winners whose keys the
    base lacks. `changes` collects the changed rows for a caller that sets it; None: they aren't wanted. The last
    `early_parts` of the instants in `folded` are of early records, whose log files stay as left-overs. `meets_all_of_key`: a
    winner meets all of the base's rows that have its key, not only the first.
    """

    folded: FoldedLogFiles
    shape: RecordShape
    updates: int = 0
    inserts: int = 0
    deletes: int = 0
    changes: ChangedRows | None = None
    early_parts: int = 0
    meets_all_of_key: bool = False
    _is_met: Flags = field(init=False)
    _is_beaten: Flags = field(init=False)
    _index: KeyTable = field(init=False)

    def __post_init__(self) -> None:
        self._is_met = np.zeros(len(self.folded.keys), np.bool_)
        self._is_beaten = np.zeros(len(self.folded.keys), np.bool_)
        self._index = self.folded.index

    def batches(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The merged slice: the base's rows in their order, then the inserts. The base has the columns of the log files.

        If a text column of the base is dictionary-encoded, so may be the merged slice's column, entirely or not at all.
        """
        yield from self.met(base)
        yield self.inserted()

    def met(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """The base's rows after the merge. They have only keys of the base."""
        columns: pa.Schema | None = None
        for batch in base:
            if columns is None:
                self.folded = replace(self.folded, rows=with_dictionaries(self.folded.rows, batch.schema))
                columns = self.folded.rows.schema
            yield self._meet(in_columns(batch, columns), self._index.find(batch.column(RECORD_KEY)))

    def inserted(self) -> pa.Table:
        """The rows of keys that the base doesn't have. Call it after `met` has read the whole base."""
        inserted = np.flatnonzero(~self._is_met & ~self.folded.is_delete)
        self.inserts = len(inserted)
        if not self.inserts:  # as in most slices; even an empty `take` of each column costs time
            return self.folded.rows.slice(0, 0)
        rows = self.folded.row_of[inserted]
        if self.shape.partial_update is None:
            self._require_whole(inserted, rows)
        return self.folded.rows.take(to_arrow(rows))

    def _require_whole(self, inserted: Numbers, rows: Numbers) -> None:
        for name, flags in self.folded.lacking.items():
            lacks = np.flatnonzero(flags[rows])
            if len(lacks):
                key = self.folded.keys[int(inserted[lacks[0]])].as_py()
                raise UnsupportedTableError(
                    f"record key {key!r}: a partial update lacks the column {name}, and the record that it updates is not "
                    "here; let an incremental query begin before the commit that wrote the record, else roll back the write "
                    "that deleted the record, or the one that updated it"
                )

    @property
    def tombstones(self) -> Tombstones:
        """The ordered deletes, of which the merged slice keeps no trace for later readers.

        A left-over keeps its own. A second copy with the same instant would move the left-over's other rows below older
        ones for readers that group blocks by instant.
        """
        folded = self.folded
        is_merged = folded.instant_of < len(folded.instants) - self.early_parts
        chosen = np.flatnonzero(folded.is_delete & ~folded.is_natural_delete & ~self._is_beaten & is_merged)
        instants = tuple(folded.instants[i] for i in folded.instant_of[chosen])
        places = to_arrow(chosen)
        return Tombstones(folded.keys.take(places), folded.orderings.take(places), instants)

    def _meet(self, batch: pa.RecordBatch, places: npt.NDArray[np.int32]) -> pa.Table:
        """Merges a batch. `places` is each row's place among the log files' keys, -1 if the log files lack its key."""
        table = pa.Table.from_batches([batch])
        rows = np.flatnonzero(places >= 0)
        keys = places[rows]
        if not self.meets_all_of_key:
            is_new = self._is_first(keys) & ~self._is_met[keys]
            keys, rows = keys[is_new], rows[is_new]
        self._is_met[keys] = True
        wins = self._beats_base(keys, batch, rows)
        self._is_beaten[keys[~wins]] = True
        beaten = self._fillers(batch, keys[~wins], rows[~wins])
        keys, rows = keys[wins], rows[wins]
        if len(keys) == 0 and not beaten:
            return table
        source = self.folded.row_of[keys]
        is_update = source >= 0
        self.updates += int(is_update.sum())
        self.deletes += int((~is_update).sum())
        # First take the rows of the log files that this batch needs: to take from a text column of several chunks, Arrow
        # combines all of them.
        updates = self.folded.rows.take(to_arrow(source[is_update]))
        if self.shape.merger is not None:
            updates = merge_rows(self.shape.merger, table.take(to_arrow(rows[is_update])), updates)
        index = np.arange(len(batch))
        index[rows] = np.where(is_update, len(batch) + np.cumsum(is_update) - 1, -1)
        kept = index >= 0
        both = pa.concat_tables([table, updates])
        if not self.folded.lacking and not beaten:
            return self._changed(table, rows, is_update, _taken_once(both, index[kept]), kept)
        of_columns = {
            name: self._base_where_lacking(index, rows[is_update], flags[source[is_update]])[kept]
            for name, flags in self.folded.lacking.items()
        }
        merged = taken(both, index[kept], iter(of_columns.items()))
        merged = self._filled(merged, beaten, np.cumsum(kept) - 1)
        filled = np.unique(np.concatenate([rows[:0], *(filled for filled, _ in beaten.values())]))
        is_update = np.concatenate([is_update, np.ones(len(filled), np.bool_)])
        return self._changed(table, np.concatenate([rows, filled]), is_update, merged, kept)

    def _changed(self, base: pa.Table, rows: Numbers, is_update: Flags, merged: pa.Table, kept: Flags) -> pa.Table:
        """The merged rows. Keeps what they change, if anybody asks: the base's `rows` are updated, or else deleted."""
        if self.changes is not None:
            place_of = np.cumsum(kept) - 1
            self.changes.before.append(base.take(to_arrow(rows[is_update])))
            self.changes.after.append(merged.take(to_arrow(place_of[rows[is_update]])))
            self.changes.deleted.append(base.take(to_arrow(rows[~is_update])))
        return merged

    @staticmethod
    def _base_where_lacking(index: Numbers, rows: Numbers, lacks: Flags) -> Numbers:
        """The index, with the base's own rows where their updates lack a column."""
        of_column = index.copy()
        of_column[rows[lacks]] = rows[lacks]
        return of_column

    def _fillers(self, batch: pa.RecordBatch, keys: npt.NDArray[np.int32], rows: Numbers) -> Fillers:
        """By column: the winning rows of the base that lack it, and the rows of the log files that have it."""
        if self.shape.partial_update is None or not len(rows):
            return {}
        source = self.folded.row_of[keys]
        rows, source = rows[source >= 0], source[source >= 0]
        fillers: dict[str, tuple[Numbers, Numbers]] = {}
        for name, flags in lacking_values(batch, self.shape.partial_update).items():
            fills = flags[rows]
            if name in self.folded.lacking:
                fills = fills & ~self.folded.lacking[name][source]
            if fills.any():
                fillers[name] = rows[fills], source[fills]
        return fillers

    def _filled(self, merged: pa.Table, fillers: Fillers, place_of: Numbers) -> pa.Table:
        """The merged rows with these columns filled. `place_of` has the current place of each base row."""
        for name, (rows, source) in fillers.items():
            number = merged.schema.get_field_index(name)
            field = merged.schema.field(number)
            index = np.arange(len(merged))
            index[place_of[rows]] = len(merged) + np.arange(len(rows))
            of_logs = self.folded.rows.column(number).take(to_arrow(source))
            both = pa.chunked_array([*merged.column(number).chunks, *of_logs.chunks], field.type)
            merged = merged.set_column(number, field, both.take(to_arrow(index)))
        return merged

    def _is_first(self, keys: npt.NDArray[np.int32]) -> Flags:
        """Which of these key numbers occur for the first time."""
        places = np.arange(len(keys))
        first = np.empty(len(self.folded.keys), np.int64)
        first[keys[::-1]] = places[::-1]  # the last assignment of a key stays, which is its first place
        return np.asarray(first[keys] == places, np.bool_)

    def _beats_base(self, keys: npt.NDArray[np.int32], batch: pa.RecordBatch, rows: Numbers) -> Flags:
        """Whether the log files' versions replace these rows of the base. A record that is merged with its row does."""
        merger, fields = self.shape.merger, self.shape.ordering_fields
        rule = self.shape.merge_rule if merger is None else merger.delete_rule
        if rule is not MergeRule.EVENT_TIME_ORDERING or not fields:
            return np.ones(len(keys), np.bool_)
        met = orderings_of(batch.select(list(top_level(fields))).take(to_arrow(rows)), fields)
        wins = later_wins(met, self.folded.orderings.take(to_arrow(keys)), self.folded.is_natural_delete[keys])
        return wins if merger is None else wins | ~self.folded.is_delete[keys]


def _taken_once(rows: pa.Table, places: Numbers) -> pa.Table:
    """The rows at these places, all in range. Columns that repeat the keys, as a key of one field does, share memory."""
    number = rows.schema.get_field_index(RECORD_KEY)
    keys = rows.column(number)
    repeats = [
        n for n, column in enumerate(rows.columns) if n != number and column.type == keys.type and column == keys
    ]
    others = [n for n in range(rows.num_columns) if n not in repeats]
    of_others: Any = pc.take(rows.select(others), to_arrow(places.astype(np.int32)), boundscheck=False)
    table: pa.Table = of_others
    for n in repeats:
        table = table.add_column(n, rows.schema.field(n), table.column(RECORD_KEY))
    return table

"""What a merge of source rows into a table changes: which rows match, and what becomes of them, in whole columns.

1. Matching: by the identity of a record, its key and partition path as the table's key generator makes them (under a global
   index the key alone), or by columns that the user names. A row without a value there matches nothing, as in SQL.
2. A source row that matches several rows of the table, or several source rows that match the same one, are an error, as
   is a row to insert whose identity the table or another such row has.
3. Of a matched row, `delete` comes first, then `update`. An update whose ordering value is less than the row's own is
   left out: the greater one wins, as in each write.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.rows.changed_rows import ChangedTable, parsed_values, with_values
from eventide.rows.value_expression import evaluated, is_true, parse_filter
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_adapters.format.encoding.columns.exact_cast import cast_whole
from eventide_adapters.format.encoding.columns.field_path import top_level
from eventide_adapters.format.write.incoming_schema import evolved_schema, refuse_names_alike
from eventide_adapters.format.write.record_keys import partition_paths, record_keys
from eventide_core.errors import ConfigError, InvalidRecordError
from eventide_core.table.schema.avro_schema import PARTITION_PATH, RECORD_KEY, AvroSchema
from eventide_core.table.settings.write_shape import SchemaRules

Clause: TypeAlias = bool | str | Mapping[str, Any] | tuple[str, Mapping[str, Any]] | None
"""What becomes of a row: see `Table.merge`."""
Reader: TypeAlias = Callable[[Sequence[str] | None, pc.Expression | None], pa.Table]
"""Reads columns of the table's rows that a filter keeps."""

_NO_DIRECTORY: Final = frozenset([None, "", "default", "__HIVE_DEFAULT_PARTITION__"])
_ROW: Final = "_eventide_row"
_OTHER_ROW: Final = "_eventide_other_row"


@dataclass(frozen=True, slots=True)
class Clauses:
    """What becomes of rows that match, and of source rows that match nothing. Raises ConfigError if all of them do nothing.

    None and False mean none of them, True all of them, and a text those for which it is true as a condition. They get the
    values of the source row, unless `matched_update` or `not_matched_insert` has values by column, or a pair of a condition
    and such values; `matched_delete` has none.
    """

    matched_update: Clause
    matched_delete: Clause
    not_matched_insert: Clause

    def __post_init__(self) -> None:
        clauses = {
            "when_matched_update": self.matched_update,
            "when_matched_delete": self.matched_delete,
            "when_not_matched_insert": self.not_matched_insert,
        }
        if all(clause is None or clause is False for clause in clauses.values()):
            raise ConfigError(f"a merge needs one of {', '.join(clauses)}")
        for name, clause in clauses.items():
            if clause is None or isinstance(clause, bool | str):
                continue
            kinds = "true or a condition"
            if name != "when_matched_delete":
                if isinstance(_values_of(clause), Mapping) and (
                    isinstance(clause, Mapping) or isinstance(clause[0], str)
                ):
                    continue
                kinds = "true, a condition, values by column, or a pair of both"
            raise ConfigError(f"{name}={clause!r} is not {kinds}")


@dataclass(frozen=True, slots=True)
class Changes:
    """What a merge writes.

    `upserts` are rows with the table's columns, the last `inserted` of which are new. `deletes` has only the columns of the
    key, the partition and the ordering. `left_out` are updates whose ordering value is less than the row's own.
    """

    upserts: pa.Table
    deletes: pa.Table
    inserted: int
    left_out: pa.Table

    @property
    def updated(self) -> int:
        return len(self.upserts) - self.inserted


@dataclass(frozen=True, slots=True)
class Merge:
    """A merge of source rows into one table.

    `schema` are the table's own columns, `avro` the same as Avro. `rules` decide what becomes of source columns that the
    table lacks. `clauses` decide what happens to rows that match. `on` are the columns that have to be equal; None for the
    identity of a record.
    """

    table: ChangedTable
    schema: pa.Schema
    avro: AvroSchema
    rules: SchemaRules
    clauses: Clauses
    on: tuple[str, ...] | None

    def changes(self, source: pa.Table, read: Reader) -> Changes:
        """Raises ConfigError, InvalidFilterError and InvalidRecordError. Reads only rows that may match."""
        source = self._conformed(source).combine_chunks()
        matchable = self._matchable(source, read)
        target_rows, source_rows = self._pairs(matchable, source)
        own = matchable.select(self.schema.names)
        matched = _sides(source=source.take(source_rows), target=own.take(target_rows))
        is_deleted = self._chosen(matched, self.clauses.matched_delete, "when_matched_delete")
        is_updated = self._chosen(matched, self.clauses.matched_update, "when_matched_update") & ~is_deleted
        updated, left_out = self._updated(matched.filter(pa.array(is_updated)), matchable.take(target_rows[is_updated]))
        others = np.setdiff1d(np.arange(len(source)), source_rows)
        inserted = self._inserted(source, others, read)
        deleted = own.take(target_rows[is_deleted])
        columns = list(dict.fromkeys((*self.table.key_columns, *top_level(self.table.ordering))))
        return Changes(pa.concat_tables([updated, inserted]), deleted.select(columns), len(inserted), left_out)

    def _conformed(self, source: pa.Table) -> pa.Table:
        """The source with the table's types in the columns that the table has too."""
        for place, name in enumerate(source.column_names):
            if name not in self.schema.names or source.schema.field(place).type == self.schema.field(name).type:
                continue
            column = cast_whole(source.column(place), self.schema.field(name).type, f"source column {name!r}")
            source = source.set_column(place, name, column)
        return source

    def _matchable(self, source: pa.Table, read: Reader) -> pa.Table:
        """The rows of the table, with meta columns, that may match a source row."""
        columns = [RECORD_KEY, PARTITION_PATH, *self.schema.names]
        if self.on is None:
            return read(columns, self._may_have(source, self._identities(source, "source rows")[0]))
        for what, names in (("table", self.schema.names), ("source", source.column_names)):
            missing = [name for name in self.on if name not in names]
            if missing:
                raise ConfigError(f"on: the {what} has no column {missing[0]!r}")
        first = _is_in(self.on[0], source.column(self.on[0]))
        for name in self.on[1:]:
            first &= _is_in(name, source.column(name))
        return read(columns, first)

    def _may_have(self, rows: pa.Table, keys: Any) -> pc.Expression:
        """A filter that keeps the rows of the table with the same identity as one of the rows, and few partitions."""
        condition = _is_in(RECORD_KEY, keys)
        if self.table.has_global_keys or self.table.keys.slashes is not None:
            return condition
        for name in self.table.keys.partition_fields:
            if name in self.table.keys.time_fields or name not in rows.column_names:
                continue
            # Different values have different directories, except for those that stand for none.
            values = pc.unique(rows.column(name))
            is_plain = pa.types.is_integer(values.type) or pa.types.is_string(values.type)
            if is_plain and not _NO_DIRECTORY.intersection(values.to_pylist()):
                condition &= _is_in(name, values)
        return condition

    def _pairs(self, matchable: pa.Table, source: pa.Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The positions of the rows of the table and of the source that match, by the source's order."""
        if self.on is None:
            one, other = (
                self._identity(matchable.column(RECORD_KEY), matchable.column(PARTITION_PATH)),
                self._identity(*self._identities(source, "source rows")),
            )
        else:
            one, other = matchable.select(self.on), source.select(self.on)
        target_rows, source_rows = _matches(one, other)
        for rows, what in ((source_rows, "source row {} matches several rows of the table"), (target_rows, "")):
            row = _repeated(rows)
            if row is None:
                continue
            if not what:
                matching = source_rows[target_rows == row]
                what = f"source rows {matching[0]} and {matching[1]} match the same row of the table"
            raise InvalidRecordError(f"{what.format(row)}; make `on`, or the source's rows, unambiguous")
        return target_rows, source_rows

    def _chosen(self, rows: pa.Table, clause: Clause, what: str) -> np.ndarray[Any, Any]:
        """For each row, if the clause applies to it."""
        if clause is None or clause is False:
            return np.zeros(len(rows), np.bool_)
        condition = clause[0] if isinstance(clause, tuple) else clause
        if not isinstance(condition, str) or condition == "*":
            return np.ones(len(rows), np.bool_)
        try:
            return is_true(rows, parse_filter(condition, rows.schema)).to_numpy(zero_copy_only=False)
        except pa.ArrowException as error:
            raise ConfigError(f"{what}: the condition {condition!r} does not fit the rows: {error}") from None

    def _updated(self, matched: pa.Table, targets: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The new rows of the table's rows `targets`, with their source rows in `matched`; and those that are older."""
        what, clause = "when_matched_update", self.clauses.matched_update
        old = _nullable(targets.select(self.schema.names))
        given = _values_of(clause)
        if clause is None or clause is False:
            return old, old
        if given is None:
            names = [field.name for field in matched.schema.field("source").type]
            self._refuse_unknown(names)
            given = {name: pc.field("source", name) for name in names if name not in (self.on or ())}
        else:
            self.table.refuse_keys(list(given), what)
        new = with_values(old, evaluated(matched, parsed_values(given, self.schema, matched.schema, what), self.schema))
        if any(name in self.table.key_columns for name in given):
            self._refuse_moved(new, targets)
        older = self.table.is_older(new, old)
        return new.filter(pa.array(~older)), new.filter(pa.array(older))

    def _refuse_moved(self, new: pa.Table, targets: pa.Table) -> None:
        """Raises InvalidRecordError for an update with a source row of another key or partition."""
        for column, own in zip(self._identities(new, "source rows"), (RECORD_KEY, PARTITION_PATH), strict=True):
            moved = np.flatnonzero(
                pc.not_equal(column, targets.column(own).combine_chunks()).to_numpy(zero_copy_only=False)
            )
            if len(moved):
                row = int(moved[0])
                raise InvalidRecordError(
                    f"when_matched_update: the row of key {targets.column(RECORD_KEY)[row].as_py()!r} would change its key "
                    f"or partition ({targets.column(own)[row].as_py()!r} to {column[row].as_py()!r}); name the columns to "
                    "update, or delete the row and insert it"
                )

    def _inserted(self, source: pa.Table, others: np.ndarray[Any, Any], read: Reader) -> pa.Table:
        """The new rows, of the source rows `others`, which match nothing."""
        what, clause = "when_not_matched_insert", self.clauses.not_matched_insert
        others = others[self._chosen(_sides(source=source.take(others)), clause, what)]
        sides = _sides(source=source.take(others))
        given = _values_of(clause)
        if clause is None or clause is False:
            return _nullable(self.schema.empty_table())
        if given is None:
            # What an upsert with the same columns would refuse.
            evolved_schema(
                self.avro, pa.schema([source.schema.field(name) for name in source.column_names]), "", self.rules
            )
            given = {name: pc.field("source", name) for name in source.column_names if name in self.schema.names}
        values = evaluated(sides, parsed_values(given, self.schema, sides.schema, what), self.schema)
        columns = [
            values.column(field.name) if field.name in values.column_names else pa.nulls(len(sides), field.type)
            for field in self.schema
        ]
        rows = _nullable(pa.table(columns, names=self.schema.names))
        if len(rows):
            self._refuse_known(rows, source, others, read)
        return rows

    def _refuse_known(self, rows: pa.Table, source: pa.Table, others: np.ndarray[Any, Any], read: Reader) -> None:
        """Raises InvalidRecordError for rows to insert, of the source rows `others`, whose identity is not new."""
        keys, paths = self._identities(rows, "rows to insert")
        identity = self._identity(keys, paths)
        first, second = _matches(identity, identity)
        twice = np.flatnonzero(first != second)
        if len(twice):
            one, other = sorted((int(first[twice[0]]), int(second[twice[0]])))
            raise InvalidRecordError(
                f"source rows {others[one]} and {others[other]} match nothing, and both would be inserted with the record "
                f"key {keys[one].as_py()!r}"
            )
        if self.on is None and identity.equals(self._identity(*self._identities(source.take(others), "source rows"))):
            return  # nothing matched them
        known = read([RECORD_KEY, PARTITION_PATH], self._may_have(rows, keys))
        _, place = _matches(self._identity(known.column(RECORD_KEY), known.column(PARTITION_PATH)), identity)
        if len(place):
            raise InvalidRecordError(
                f"source row {others[place[0]]} matches nothing by {', '.join(self.on or self.table.key_columns)}, and "
                f"would be inserted with the record key {keys[int(place[0])].as_py()!r}, which a row of the table has: "
                "match by the key, or compute another one in when_not_matched_insert"
            )

    def _identities(self, rows: pa.Table, what: str) -> tuple[ArrowArray, ArrowArray]:
        """The record keys and partition paths of rows. Raises InvalidRecordError for a missing column or value."""
        missing = [name for name in self.table.key_columns if name not in rows.column_names]
        if missing:
            raise InvalidRecordError(
                f"{what} without the column {missing[0]!r}: {', '.join(self.table.key_columns)} identify the record and "
                "where it belongs; add it, or name the columns to match by (`on`)"
            )
        key, _ = record_keys(rows, self.table.keys)
        return key, partition_paths(rows, self.table.keys)

    def _identity(self, keys: Any, paths: Any) -> pa.Table:
        return pa.table({RECORD_KEY: keys} if self.table.has_global_keys else {RECORD_KEY: keys, PARTITION_PATH: paths})

    def _refuse_unknown(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in self.schema.names]
        if unknown:
            refuse_names_alike([*self.schema.names, unknown[0]])
            raise InvalidRecordError(
                f"the table has no column {unknown[0]!r} of the source; it has {', '.join(self.schema.names)}. Name the "
                "columns to write, or add it by an upsert with schema_mode='merge' first"
            )


def _values_of(clause: Clause) -> Mapping[str, Any] | None:
    """The values that a clause names; None for all columns of the source."""
    named = clause[1] if isinstance(clause, tuple) and len(clause) == 2 else clause
    return named if isinstance(named, Mapping) else None


def _sides(**tables: pa.Table) -> pa.Table:
    """A table with each of the tables as one column, a struct: its columns are `source.x` and `target.x`."""
    return pa.Table.from_arrays([rows.to_struct_array() for rows in tables.values()], names=list(tables))


def _nullable(rows: pa.Table) -> pa.Table:
    """The rows with columns that may be null, so that the rows of several sources make one table."""
    return pa.table(rows.columns, schema=pa.schema([field.with_nullable(True) for field in rows.schema]))


def _is_in(name: str, values: Any) -> pc.Expression:
    is_member: pc.Expression = pc.field(name).isin(pc.unique(values))
    return is_member


def _matches(one: pa.Table, other: pa.Table) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The positions in both of the rows with the same values. Null equals nothing."""
    left = one.append_column(_ROW, pa.array(np.arange(len(one))))
    right = other.append_column(_OTHER_ROW, pa.array(np.arange(len(other))))
    joined = left.join(right, one.column_names, join_type="inner").combine_chunks()
    first, second = (joined.column(name).to_numpy() for name in (_ROW, _OTHER_ROW))
    order = np.argsort(second, kind="stable")
    return first[order], second[order]


def _repeated(rows: np.ndarray[Any, Any]) -> int | None:
    values, counts = np.unique(rows, return_counts=True)
    return int(values[counts.argmax()]) if len(counts) and counts.max() > 1 else None

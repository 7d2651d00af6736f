"""The rows that an update or a merge changes, and the state of the table that they were read from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.bootstrap import Application
from eventide.rows.value_expression import evaluated, parse_value
from eventide_adapters.format.encoding.columns.field_path import column_at, top_level
from eventide_adapters.format.slice.log_file.ordering_values import common_ranks, orderings_of
from eventide_core.action.write.basis import ReadBasis
from eventide_core.errors import ConfigError, InvalidRecordError, UnsupportedTableError
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import META_FIELDS
from eventide_core.table.settings.key_format import KeyFormat
from eventide_core.table.settings.write_shape import SchemaRules

if TYPE_CHECKING:
    from eventide_core.service.common.state.table import TableState

Values = Mapping[str, Any]
"""New values by column: a text is an expression as in SQL; anything else is the value itself."""


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """What a change of rows needs to know of the table. `state` and `basis` are as of a moment before any row is read.

    `keys` is how record keys and partition paths are made of a row. `ordering` are the fields that order the versions of a
    row; none if the last one wins. `has_global_keys`: a key is unique in the table, not only in its partition. `rules`
    decide what becomes of columns that differ from the table's.
    """

    uri: str
    state: "TableState"
    keys: KeyFormat
    ordering: tuple[str, ...]
    has_global_keys: bool
    rules: SchemaRules
    basis: ReadBasis

    @classmethod
    def load(cls, application: Application) -> "ChangedTable":
        """Raises UnsupportedTableError for a table whose merge of versions could change what is written."""
        state, root = application.state(), application.storage.root
        config = state.config
        if config.merger is not None or config.partial_update is not None:
            raise UnsupportedTableError(
                f"{root}: the table merges a new version of a row with the older one by rules of its own, which could undo "
                "a change of some columns; upsert the rows instead"
            )
        if not config.record_key_fields:
            raise ConfigError(f"{root}: the table has no record key fields, which identify the rows to change")
        shape, rules = application.append.current_shape(state)
        is_by_commit = shape.records.merge_rule is MergeRule.COMMIT_TIME_ORDERING
        return cls(
            root,
            state,
            shape.keys,
            () if is_by_commit else tuple(shape.records.ordering_fields),
            shape.has_global_keys,
            rules,
            ReadBasis.of(state.timeline),
        )

    @property
    def key_columns(self) -> tuple[str, ...]:
        return top_level(self.keys.fields)

    def refuse_keys(self, names: Sequence[str], what: str) -> None:
        """Raises ConfigError for columns of the key or partition, which cannot change."""
        fixed = [name for name in names if name in self.key_columns]
        if fixed:
            raise ConfigError(
                f"{what}: {', '.join(map(repr, fixed))} is of the record key or the partition, which a change of a row "
                "keeps; delete the row, and insert it under its new key"
            )

    def is_older(self, new: pa.Table, old: pa.Table) -> np.ndarray[Any, Any]:
        """For each row, if its new ordering value is less than the old one, so that no reader would see the new row.

        A null is not: no write takes it.
        """
        if not self.ordering or not len(new):
            return np.zeros(len(new), np.bool_)
        one, other = (orderings_of(rows.combine_chunks().to_batches()[0], self.ordering) for rows in (new, old))
        new_ranks, old_ranks = common_ranks(one, other)
        has_null = np.zeros(len(new), np.bool_)
        for field in self.ordering:
            has_null |= column_at(new, field).is_null().to_numpy()
        older: np.ndarray[Any, Any] = (new_ranks < old_ranks) & ~has_null
        return older


def own_columns(rows: pa.Table) -> pa.Table:
    """The rows without Hudi's meta columns."""
    return rows.select([name for name in rows.column_names if name not in META_FIELDS])


def parsed_values(values: Values, columns: pa.Schema, schema: pa.Schema, what: str) -> dict[str, pc.Expression]:
    """The expressions over `schema` of new values of `columns`. Raises ConfigError for an unknown column."""
    if not values:
        raise ConfigError(f"{what} is empty: name the columns and their new values")
    unknown = [name for name in values if name not in columns.names]
    if unknown:
        raise ConfigError(f"{what}: the table has no column {unknown[0]!r}; it has {', '.join(columns.names)}")
    return {name: parse_value(value, columns.field(name), schema) for name, value in values.items()}


def with_values(rows: pa.Table, new: pa.Table) -> pa.Table:
    """The rows with some columns replaced."""
    columns = [new.column(name) if name in new.column_names else rows.column(name) for name in rows.column_names]
    return pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in rows.schema]))


def updated_rows(rows: pa.Table, values: Values, table: ChangedTable) -> pa.Table:
    """The rows with new values. Raises InvalidRecordError for a value that cannot be, or that would have no effect."""
    table.refuse_keys(list(values), "set")
    expressions = parsed_values(values, rows.schema, rows.schema, "set")
    new = with_values(rows, evaluated(rows, expressions, rows.schema))
    older = table.is_older(new, rows)
    if older.any():
        row = int(older.argmax())
        key = ", ".join(f"{name}={rows.column(name)[row].as_py()!r}" for name in table.key_columns)
        raise InvalidRecordError(
            f"set makes the ordering value of the row {key} less than it is ({', '.join(table.ordering)}), and the greater "
            "one wins: the update would have no effect"
        )
    return new

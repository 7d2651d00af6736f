"""The changes of rows in place: update, merge, and upserts of some columns."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from eventide.table.arguments import progress_of, require_columns
from eventide.table.open_table import traced
from eventide.table.queries import TableQueries
from eventide_core.errors import ConfigError, EventideError
from eventide_core.ports import Progress
from eventide_core.table.settings.write_shape import WriteOperation

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.rows.changed_rows import ChangedTable, Values
    from eventide.rows.given import Records
    from eventide.rows.merge import Clause, Clauses
    from eventide.rows.row_filter import Filter
    from eventide.table.derived import SourceState
    from eventide_core.action.write.pending_write import WriteResult
    from eventide_core.service.common.state.table import TableState
    from eventide_core.table.records.event_time import Moment


class TableChanges(TableQueries):
    """The changes of rows of `eventide.Table`. They read rows, and write what these become, under one check of conflicts."""

    __slots__ = ()

    @traced
    def update(
        self,
        set: "Values",
        where: "Filter | None" = None,
        *,
        all: bool = False,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Gives the rows that `where` keeps new values, in one commit; with `all=True` instead, every row.

        `set` has the new values by column. A text is an expression as in SQL, over the row's columns as they were: `amount *
        2`, `'a text'`, `null`, `coalesce(a, b)`, `case when a > 1 then b else c end`. Any other value is the value itself.
        Each has to fit the type of its column. `where` is a filter as in `Rows`.

        A row keeps its ordering value, unless `set` has the ordering column. Of equal values, the later write wins, so
        the update does. A value less than the row's own is refused, because the update would have no effect.

        Raises ConfigError for a column of key or partition, an unknown one, or unless it gets one of `where` and `all`;
        InvalidFilterError for an invalid expression; InvalidRecordError for a value that does not fit; and
        WriteConflictError if another writer changed the same file groups since the rows were read: nothing is committed
        then.
        """
        from eventide.rows.changed_rows import ChangedTable, own_columns, updated_rows

        require_columns(set=set)
        if (where is None) is not all:
            raise ConfigError("give either a condition (`where`), or `all=True` for every row")
        table = ChangedTable.load(self._application)
        rows = own_columns(self._snapshot_of(table.state).to_arrow(None, where))
        new = updated_rows(rows, set, table)
        if any(name in set for name in table.ordering):
            self._warn_of_ordering(new, table.state, lambda _: rows)
        return self._write_changes(table, new, None, updated=len(new), progress=progress)

    @traced
    def merge(
        self,
        source: "Records",
        on: str | Sequence[str] | None = None,
        *,
        when_matched_update: "Clause" = None,
        when_matched_delete: "Clause" = None,
        when_not_matched_insert: "Clause" = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Updates and deletes the rows that source rows match, and inserts source rows that match nothing, in one commit.

        `source` is as in `upsert`; the driver collects a DataFrame of Spark. Its rows match rows of the same
        record key and partition, or of equal values in the columns `on`. A source row may match one row at most, and a row
        one source row at most.

        A clause is true (or "*": all columns of the source), a condition as in SQL, new values by column as in `update`,
        or a pair of condition and values. Its columns are `source.x` and, of rows that match, `target.x`. A delete takes no
        values, and comes before the update. A column that an insert's values leave out is null.

        An update whose ordering value is less than the row's own leaves the row as it is, as in each write; without one,
        the row keeps its own. The result counts the rows that were inserted, updated and deleted. `sources` says what the
        source rows were made of, as in `upsert`.

        Raises InvalidRecordError for ambiguous matches and values that do not fit; ConfigError for a clause that cannot be,
        and values of key or partition columns; InvalidFilterError for an invalid expression; and WriteConflictError if
        another writer changed the same file groups since the rows were read: nothing is committed then.
        """
        from eventide.rows.merge import Clauses

        clauses = Clauses(when_matched_update, when_matched_delete, when_not_matched_insert)
        columns = None if on is None else (on,) if isinstance(on, str) else tuple(on)
        return self._merge(source, columns, clauses, progress, sources)

    def _upsert_some_columns(
        self, records: Any, progress: Progress | None, sources: "Mapping[Self | str, SourceState | Moment] | None"
    ) -> "WriteResult":
        """Updates the columns that the records have; in new rows, the others are null."""
        import pyarrow.compute as pc

        from eventide.rows.changed_rows import own_columns
        from eventide.rows.merge import Clauses
        from eventide.rows.writer import named_apart

        rows = own_columns(named_apart(self._application, records))
        given = {name: pc.field("source", name) for name in rows.column_names}
        return self._merge(rows, None, Clauses(True, None, given), progress, sources)

    def _merge(
        self,
        source: Any,
        on: tuple[str, ...] | None,
        clauses: "Clauses",
        progress: Progress | None,
        sources: "Mapping[Self | str, SourceState | Moment] | None",
    ) -> "WriteResult":
        import pyarrow as pa

        from eventide.rows.changed_rows import ChangedTable, own_columns
        from eventide.rows.merge import Merge
        from eventide.rows.writer import named_apart

        rows = own_columns(named_apart(self._application, source))
        table = ChangedTable.load(self._application)
        snapshot = self._snapshot_of(table.state)
        schema = own_columns(snapshot.schema.empty_table()).schema
        merge = Merge(table, schema, snapshot.plan.shape.schema, table.rules, clauses, on)
        changes = merge.changes(rows, snapshot.to_arrow)
        written = pa.concat_tables([changes.left_out, changes.upserts])
        self._warn_of_ordering(written, table.state)
        return self._write_changes(
            table,
            changes.upserts,
            changes.deletes,
            inserted=changes.inserted,
            updated=changes.updated,
            progress=progress,
            sources=sources,
        )

    def _warn_of_ordering(
        self, rows: "pa.Table", state: "TableState", known: Callable[[str], "pa.Table | None"] | None = None
    ) -> None:
        """`known` has a row of the table with a column; without it, one is read."""
        from eventide.rows.ordering_warnings import warn_of_ordering

        warn_of_ordering(self._application, state, rows, known or partial(self._a_row, state))

    def _write_changes(
        self,
        table: "ChangedTable",
        upserts: "pa.Table",
        deletes: "pa.Table | None",
        *,
        progress: Progress | None,
        updated: int,
        inserted: int = 0,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
    ) -> "WriteResult":
        """Writes upserts and deletes in one commit, unless the table's rows have changed since `table` was loaded."""
        from eventide.rows.writer import arrow_records

        records = arrow_records(self._application, upserts, deletes)
        basis = replace(table.basis, new_keys=inserted)
        append = self._noting(replace(self._application.append, known=table.state), sources)
        result = append.write(WriteOperation.UPSERT, records, progress_of(progress), basis=basis)
        deleted = 0 if deletes is None else len(deletes)
        return replace(result, rows_inserted=inserted, rows_updated=updated, rows_deleted=deleted)

    def _a_row(self, state: "TableState", column: str) -> "pa.Table | None":
        """A row of the table with that column alone, read by a task; none if it has none, or cannot be read."""
        from eventide.rows.reader import first_row

        with suppress(EventideError):  # the write finds that itself, if it matters there
            reading = self._snapshot_of(state).limit(1).reading([column])
            read = partial(first_row, reading.of_slices())
            return next(iter(self._application.engine.map(read, reading.slices[:1])), None)
        return None

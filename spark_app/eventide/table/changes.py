"""The changes of rows in place: update."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from eventide.bootstrap import Application
from eventide_core.ports import NoProgress, Progress
from eventide_core.table.settings.write_shape import WriteOperation

if TYPE_CHECKING:
    import pyarrow as pa

    from eventide.rows.changed_rows import ChangedTable, Values
    from eventide.rows.reader import Rows
    from eventide.rows.row_filter import Filter
    from eventide_core.action.write.pending_write import WriteResult


class TableChanges:
    """The changes of rows of `eventide.Table`. They read rows, and write what these become, under one check of conflicts."""

    __slots__ = ()

    _application: Application

    if TYPE_CHECKING:

        def snapshot(self, *, tag: str | None = None) -> Rows: ...

    def update(self, set: Values, where: Filter | None = None, *, progress: Progress | None = None) -> WriteResult:
        """Gives the rows that `where` keeps new values, in one commit; without `where`, all rows.

        `set` has the new values by column. A text is an expression as in SQL, over the row's columns as they were: `amount *
        2`, `'a text'`, `null`, `coalesce(a, b)`, `case when a > 1 then b else c end`. Any other value is the value itself.
        Each has to fit the type of its column. `where` is a filter as in `Rows`.

        A row keeps its ordering value, unless `set` has the ordering column. Of equal values, the later write wins, so
        the update does. A value less than the row's own is refused, because the update would have no effect.

        Raises ConfigError for a column of key or partition, or an unknown one; InvalidFilterError for an invalid expression;
        InvalidRecordError for a value that does not fit; and WriteConflictError if another writer changed the same file
        groups since the rows were read: nothing is committed then.
        """
        from eventide.rows.changed_rows import ChangedTable, own_columns, updated_rows

        table = ChangedTable.load(self._application)
        rows = own_columns(self.snapshot().to_arrow(None, where))
        new = updated_rows(rows, set, table)
        return self._write_changes(table, new, None, updated=len(new), progress=progress)

    def _write_changes(
        self,
        table: ChangedTable,
        upserts: pa.Table,
        deletes: pa.Table | None,
        *,
        progress: Progress | None,
        inserted: int = 0,
        updated: int = 0,
    ) -> WriteResult:
        """Writes upserts and deletes in one commit, unless the table's rows have changed since `table` was loaded."""
        from eventide.rows.writer import arrow_records

        records = arrow_records(self._application, upserts, deletes)
        basis = replace(table.basis, new_keys=inserted)
        result = self._application.append.write(WriteOperation.UPSERT, records, progress or NoProgress(), basis=basis)
        deleted = 0 if deletes is None else len(deletes)
        return replace(result, rows_inserted=inserted, rows_updated=updated, rows_deleted=deleted)

"""The writes of records: upserts, inserts, overwrites and deletes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from eventide.engine_local import LocalEngine
from eventide.options.streams import WRITE_OPERATION
from eventide.table.arguments import progress_of
from eventide.table.changes import TableChanges
from eventide.table.open_table import traced
from eventide_core.config import SCHEMA_MODE
from eventide_core.errors import ConfigError
from eventide_core.ports import Progress
from eventide_core.table.settings.write_shape import WriteOperation

if TYPE_CHECKING:
    from eventide.rows.given import Records
    from eventide.rows.row_filter import Filter
    from eventide.table.derived import SourceState
    from eventide_core.action.write.pending_write import WriteResult
    from eventide_core.table.records.event_time import Moment

_ADDING = (WriteOperation.UPSERT, WriteOperation.INSERT, WriteOperation.BULK_INSERT)


class TableWrites(TableChanges):
    """The writes of `eventide.Table`."""

    __slots__ = ()

    @traced
    def upsert(
        self,
        records: "Records",
        *,
        columns: str | None = None,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Updates the records whose keys exist, and inserts the others.

        `records` is a DataFrame of Spark, pandas (whose index is not written) or Polars, an Arrow table, record batch or
        reader, or anything else with Arrow's C stream (`__arrow_c_stream__`). Of several records of a key, only the
        latest is written.

        A column that the table does not have is refused, unless `schema_mode` is "merge", which adds it, and widens a column
        of a narrower type. A column that the records lack is refused, unless `hoodie.write.set.null.for.missing.columns` is
        true. Raises InvalidRecordError, which names row and column, also for a value that a column cannot hold exactly, and
        InvalidColumnNameError, before anything is written.

        With `columns="partial"`, such a column keeps its value, and is null in new rows: the rows are read and written
        whole, as `merge` does, with its errors and its check for other writers.

        `sources` says how far what the records come from has come: T of a source by its name, or, for a table that they were
        made of, a window of it, the result of its compaction, or its freshness from before it was read. The commit records
        it, and `freshness` of this table is no later than that.
        """
        if columns is not None:
            if columns != "partial" or schema_mode is not None:
                raise ConfigError(f"columns={columns!r}: only 'partial' is known, and it adds no columns")
            return self._upsert_some_columns(records, progress, sources)
        return self._write(WriteOperation.UPSERT, records, progress, schema_mode, sources)

    @traced
    def insert(
        self,
        records: "Records",
        *,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Inserts records without looking up their keys. Only the bucket index still assigns keys to file groups.

        `schema_mode` and `sources`, of every insert: as of `upsert`.
        """
        return self._write(WriteOperation.INSERT, records, progress, schema_mode, sources)

    @traced
    def bulk_insert(
        self,
        records: "Records",
        *,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Inserts many records, as in an initial load, into new file groups if the index allows it."""
        return self._write(WriteOperation.BULK_INSERT, records, progress, schema_mode, sources)

    @traced
    def insert_overwrite(
        self,
        records: "Records",
        *,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Replaces all rows of the partitions that `records` has rows of, as Hudi's `INSERT OVERWRITE` does.

        Other partitions stay as they are. Readers see the old rows or the new ones, never a mixture. The old files stay for
        time travel until `clean` removes them. Keys are not looked up, as in an insert.

        Raises InvalidRecordError if there are no records; BusyError while a plan, or a write of another engine, is pending,
        because what such a write adds to a replaced file would be lost; WriteConflictError if another writer of eventide
        wrote to one of the partitions in the meantime.
        """
        return self._write(WriteOperation.INSERT_OVERWRITE, records, progress, schema_mode, sources)

    @traced
    def insert_overwrite_table(
        self,
        records: "Records",
        *,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Replaces all rows of the table; otherwise as `insert_overwrite`. Without records, it leaves an empty table."""
        return self._write(WriteOperation.INSERT_OVERWRITE_TABLE, records, progress, schema_mode, sources)

    @traced
    def delete(
        self,
        records: "Records | None" = None,
        *,
        where: "Filter | None" = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
        progress: Progress | None = None,
    ) -> "WriteResult":
        """Deletes keys: the keys of `records`, which has the key and partition columns, or of the rows that `where` keeps.

        With the ordering column, a delete is ordered among the versions of its key. Without it, it deletes every version.
        `where` is a filter as in `Rows`. Its deletes carry the ordering value of the row that was read, so a later version
        that another writer adds in the meantime survives, if the table has an ordering column. `sources`: as of `upsert`.

        Raises ConfigError unless it gets one of the two, and InvalidFilterError for an invalid condition.
        """
        if (records is None) == (where is None):
            raise ConfigError("pass either records or a condition (`where`)")
        deleted = records if where is None else self._keys(where)
        return self._write(WriteOperation.DELETE, deleted, progress, sources=sources)

    def _keys(self, where: "Filter") -> Any:
        """The key, partition and ordering columns of the rows that a condition keeps, read where the table's tasks run."""
        config = self._application.files.config()
        if not config.record_key_fields:
            raise ConfigError(f"{self.uri}: the table has no record key fields: pass its rows instead of a condition")
        fields = (*config.record_key_fields, *config.partition_fields, *config.ordering_fields)
        columns = list(dict.fromkeys(field.partition(".")[0] for field in fields))
        session = getattr(self._application.engine, "session", None)
        rows = self.snapshot()
        return rows.to_arrow(columns, where) if session is None else rows.to_spark(session, columns, where)

    def _write(
        self,
        operation: WriteOperation,
        records: Any,
        progress: Progress | None,
        schema_mode: str | None = None,
        sources: "Mapping[Self | str, SourceState | Moment] | None" = None,
    ) -> "WriteResult":
        from eventide.rows.writer import incoming_records
        from eventide_adapters.format.write.arrow_records import ArrowRecords

        application = self._application
        stated = application.options.get(WRITE_OPERATION)
        if operation in _ADDING and stated not in _ADDING:  # the rows were to be deleted, or to replace others
            raise ConfigError(
                f"option {WRITE_OPERATION}={stated} contradicts {operation}: leave the option out, or write by the "
                "operation that it names"
            )
        session = getattr(records, "sparkSession", None)
        if session is not None and isinstance(application.engine, LocalEngine):
            application = self._on(session)  # what the indexes need is read where the rows are, not by the driver
        incoming = incoming_records(application, operation, records)
        state = application.state()
        for rows in (incoming.upserts, incoming.deletes) if isinstance(incoming, ArrowRecords) else ():
            if rows is not None:
                self._warn_of_ordering(rows, state)
        append = application.append if schema_mode is None else application.append.having(SCHEMA_MODE, schema_mode)
        return self._noting(replace(append, known=state), sources).write(operation, incoming, progress_of(progress))

"""`eventide ingest`: writes the rows of files into a table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from eventide import Table
from eventide.cli.row_sources import read_rows, source_files
from eventide.cli.settings import Settings, common_options
from eventide.formatting import format_size
from eventide_core.action.write.pending_write import WriteResult
from eventide_core.config import EVENT_TIME_FIELD, SANITIZE_NAMES, SCHEMA_MODE, Options, SchemaMode
from eventide_core.errors import NotAHudiTableError, counted
from eventide_core.table.records.avro_names import sanitized_names
from eventide_core.table.settings.write_shape import WriteOperation


@click.command()
@click.argument("table")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--op",
    "operation",
    type=click.Choice([str(operation) for operation in WriteOperation]),
    default=str(WriteOperation.UPSERT),
    show_default=True,
    help="What to do with the rows. A delete needs only the columns of key and partition. An insert_overwrite replaces "
    "the partitions of the rows, an insert_overwrite_table the whole table.",
)
@click.option("--create", is_flag=True, help="Creates the table if it does not exist, with the columns of the sources.")
@click.option("--record-key", metavar="FIELD[,FIELD...]", help="With --create: the fields that identify a record.")
@click.option("--partition", metavar="FIELD[,FIELD...]", help="With --create: the fields that make its partition.")
@click.option("--ordering", metavar="FIELD", help="With --create: the field whose greater value wins.")
@click.option("--event-time", metavar="FIELD", help="The event-time field; with --create also the ordering field.")
@click.option(
    "--sanitize",
    is_flag=True,
    help="Replaces each character that a column name of Hudi can't hold by two underscores, and says so.",
)
@click.option(
    "--add-columns", is_flag=True, help="Adds columns that the table does not have, instead of refusing them."
)
@common_options
def ingest(
    settings: Settings,
    table: str,
    sources: Sequence[str],
    operation: str,
    create: bool,
    sanitize: bool,
    add_columns: bool,
    **words: Any,
) -> None:
    """Write rows into a table.

    Reads each SOURCE, a file or a directory of files in Parquet, JSON (one object per line), or CSV (with a header), and
    writes all rows into TABLE in one commit.

    A new table has version 9, or the one of --option hoodie.write.table.version=VERSION: 6 or 8.
    """
    if not create and (words["record_key"] or words["partition"] or words["ordering"]):
        raise click.UsageError("--record-key, --partition, and --ordering describe a new table: add --create")
    if create and not words["record_key"]:
        raise click.UsageError("--create needs --record-key")
    files = source_files(sources)
    if not create:
        settings = settings.having(EVENT_TIME_FIELD, words["event_time"])
    if add_columns:
        settings = settings.having(SCHEMA_MODE, SchemaMode.MERGE)
    if sanitize:
        settings = settings.having(SANITIZE_NAMES, "true")
    rows = _opened(settings, table, files, words if create else None)
    with settings.table(table) as opened, settings.console.progress() as progress:
        write: Callable[..., WriteResult] = getattr(opened, operation)
        result = write(rows, progress=progress)
    renamed = _renamed(rows) if Options(settings.options).get(SANITIZE_NAMES) else {}
    for name, new in renamed.items():
        settings.console.say(f"column {name!r} is named {new!r} in the table")
    settings.console.report_dropped(result.dropped_indexes)
    settings.console.result({**_document(result), "renamed": renamed}, _summary(result, operation))


def _renamed(rows: pa.Table) -> dict[str, str]:
    """The columns that have another name in the table."""
    return {name: new for name, new in sanitized_names(rows.column_names).items() if new != name}


def _opened(settings: Settings, uri: str, files: Sequence[Path], words: dict[str, Any] | None) -> pa.Table:
    """The rows of the files; `words` create the table first if it does not exist."""
    try:
        table = Table.open(uri, settings.options)
    except NotAHudiTableError:
        if words is None:
            raise
        rows = read_rows(files, None)
        Table.create(uri, schema=rows.schema, options=settings.options, **words)
        return rows
    return read_rows(files, table.snapshot().schema, sanitizes=Options(settings.options).get(SANITIZE_NAMES))


def _document(result: WriteResult) -> dict[str, Any]:
    return {
        "instant": result.instant,
        "completion_time": result.completion_time,
        "rows": result.rows,
        "upserts": result.upserts,
        "deletes": result.deletes,
        "files": result.files,
        "bytes": result.bytes_written,
        "dropped_indexes": list(result.dropped_indexes),
        "added_columns": list(result.added_columns),
        "widened_columns": list(result.widened_columns),
    }


def _summary(result: WriteResult, operation: str) -> str:
    return (
        f"{operation} at {result.instant}: {counted(result.rows, 'row')} in {counted(result.files, 'file')}, "
        f"{format_size(result.bytes_written)}{_changed('added', result.added_columns)}"
        f"{_changed('widened', result.widened_columns)}"
    )


def _changed(how: str, columns: Sequence[str]) -> str:
    return f"; {how} {'column' if len(columns) == 1 else 'columns'} {', '.join(columns)}" if columns else ""

"""`eventide ingest`: writes the rows of files into a table."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from eventide import Table
from eventide.cli.argument_types import FIELDS, FilePath
from eventide.cli.rows.ingest_preview import PREVIEW_ROWS, preview
from eventide.cli.rows.ingest_target import declared_types, refuse_contradictions
from eventide.cli.settings import Settings, common_options, pairs_of, table_verb
from eventide.formatting import format_size
from eventide.options.streams import WRITE_OPERATION
from eventide.rows.writer import new_table
from eventide.sources.finding import STDIN, SourceFinder
from eventide.sources.rows import SourceRows, read_rows
from eventide.sources.schema_file import StatedSchema, read_schema
from eventide.sources.source import Dialect, Format, Source
from eventide.sources.streams import known_encoding
from eventide.sources.text_columns import has_no_value
from eventide.table.creation import created_by_first_commit, existing_table
from eventide.table.open_table import task_engine
from eventide_core.action.write.pending_write import WriteResult
from eventide_core.config import EVENT_TIME_FIELD, SANITIZE_NAMES, SCHEMA_MODE, Options, SchemaMode
from eventide_core.errors import ConfigError, EventideError, InvalidRecordError, counted
from eventide_core.table.schema.avro_names import sanitized
from eventide_core.table.schema.avro_schema import META_FIELDS
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.source_statements import stated as statement_of

_FIELDS = ("record_key", "partition", "ordering", "event_time")
_DELIMITERS = {"tab": "\t", "\\t": "\t"}
_ROW = re.compile(r"row (\d+): ")
_VALUE = re.compile(r"[-+]?\d")
"""The start of a number or a time, which few columns are named like."""


@dataclass(frozen=True, slots=True)
class _Csv:
    """How the user says that CSV is written."""

    delimiter: str | None
    quote: str | None
    has_header: bool
    null_words: tuple[str, ...]

    @property
    def is_stated(self) -> bool:
        return self != _Csv(None, None, True, ())


def _character(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001
    """One character of ASCII; a quote may be none."""
    character = _DELIMITERS.get(value or "", value)
    is_empty_quote = character == "" and param.name == "quote"
    if character is None or is_empty_quote or (len(character) == 1 and character.isascii() and character not in "\r\n"):
        return character
    raise click.BadParameter(f"{value!r} is not one character of ASCII, such as ';', '|' or tab")


@table_verb
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "--op",
    "operation",
    type=click.Choice([str(operation) for operation in WriteOperation]),
    help="What to do with the rows. A delete needs only the columns of key and partition. An insert_overwrite replaces "
    "the partitions of the rows, an insert_overwrite_table the whole table.  [default: "
    "hoodie.datasource.write.operation, else upsert]",
)
@click.option("--create", is_flag=True, help="Creates the table if it does not exist, with the columns of the sources.")
@click.option(
    "--record-key", type=FIELDS, metavar="FIELD[,FIELD...]", help="With --create: the fields that identify a record."
)
@click.option(
    "--partition", type=FIELDS, metavar="FIELD[,FIELD...]", help="With --create: the fields that make its partition."
)
@click.option("--ordering", type=FIELDS, metavar="FIELD", help="With --create: the field whose greater value wins.")
@click.option(
    "--event-time", type=FIELDS, metavar="FIELD", help="The event-time field; with --create also the ordering field."
)
@click.option(
    "--sanitize",
    is_flag=True,
    help="Replaces each character that a column name of Hudi can't hold by two underscores, and says so.",
)
@click.option(
    "--add-columns",
    is_flag=True,
    help="Adds columns that the table does not have, and widens narrower ones, instead of refusing them.",
)
@click.option(
    "--columns",
    type=click.Choice(["partial"]),
    help="partial: columns that the rows lack keep their values, and are null in new rows. Of an upsert. All lines of JSON "
    "need the same keys.",
)
@click.option(
    "--schema",
    "schema_file",
    type=FilePath(),
    metavar="FILE",
    help="Types of columns: an Avro record in JSON, an Arrow or Parquet file, or lines `name type`. A new table gets them.",
)
@click.option(
    "--format",
    "stated_format",
    type=click.Choice([str(kind) for kind in Format]),
    help="The format of all sources, whatever their names end in.",
)
@click.option("--encoding", metavar="NAME", help="The encoding of text, such as latin-1 or utf-16.  [default: utf-8]")
@click.option(
    "--delimiter",
    metavar="CHAR",
    callback=_character,
    help="CSV: what separates columns.  [default: a comma; a tab in .tsv]",
)
@click.option("--quote", metavar="CHAR", callback=_character, help="CSV: the quote; '' for none.  [default: \"]")
@click.option("--header/--no-header", "has_header", default=True, help="CSV: whether the first row names the columns.")
@click.option(
    "--null",
    "null_words",
    multiple=True,
    metavar="WORD",
    help="CSV: a cell with this word is null, instead of empty ones. Repeatable.",
)
@click.option(
    "--epochs",
    type=click.Choice(["s", "ms", "us", "ns"]),
    help="CSV and JSON: whole numbers in a column of timestamps are epochs in this unit.",
)
@click.option(
    "--source",
    "stated_sources",
    multiple=True,
    metavar="NAME=T",
    help="States with the commit that everything of this source before T has come. Repeatable.",
)
@click.option(
    "--dry-run", is_flag=True, help="Shows the columns, nulls and event times of the first rows. Writes nothing."
)
@common_options
def ingest(
    settings: Settings,
    table: str,
    sources: Sequence[str],
    operation: str | None,
    create: bool,
    dry_run: bool,
    sanitize: bool,
    add_columns: bool,
    columns: str | None,
    schema_file: Path | None,
    stated_format: str | None,
    encoding: str | None,
    epochs: str | None,
    stated_sources: Sequence[str],
    **words: Any,
) -> None:
    """Write rows into a table.

    Reads each SOURCE and writes all rows into TABLE in one commit. A SOURCE is a file, a directory of files, a glob such as
    'in/*.csv.gz', or - for standard input, here or on any store that a table may be on. Formats are CSV (.csv, .tsv), JSON
    with one object per line (.json, .jsonl, .ndjson), each of them also compressed (.gz, .zst), and Parquet.

    A new table appears with its first commit. It has version 9, or the one of --option
    hoodie.write.table.version=VERSION: 6 or 8.
    """
    fields = {name: words.pop(name) for name in _FIELDS}
    operation = operation or str(Options(settings.options).get(WRITE_OPERATION))
    csv = _Csv(**words)
    _check_usage(fields, sources, creates=create, stated_format=stated_format)
    if columns is not None and (operation != WriteOperation.UPSERT or create or add_columns):
        raise click.UsageError("--columns partial is of an upsert into a table that exists, and adds no columns")
    if add_columns:
        settings = settings.having(SCHEMA_MODE, SchemaMode.MERGE)
    if sanitize:
        settings = settings.having(SANITIZE_NAMES, "true")
    for key, text in statement_of(pairs_of(stated_sources, "--source")).items():
        settings = settings.having(key, text)
    of_existing = settings.having(EVENT_TIME_FIELD, fields["event_time"])
    existing = existing_table(table, of_existing.options, may_be_absent=create)
    if existing is not None:
        refuse_contradictions(existing, fields, settings.options)
        settings = of_existing
    stated = None if schema_file is None else read_schema(schema_file)
    types = declared_types(existing, None if stated is None else stated.columns, widens=add_columns)
    dialect = replace(_dialect(csv, encoding, list(types)), epochs=epochs, needs_every_key=columns is not None)
    sanitizes = Options(settings.options).get(SANITIZE_NAMES)
    with ExitStack() as living:
        finder = SourceFinder(
            Options(settings.options), Format(stated_format) if stated_format else None, living, settings.console.say
        )
        inputs = _checked(finder.find(sources, sys.stdin.buffer), csv)
        with settings.console.reading() as on_rows:
            rows = read_rows(
                inputs,
                lambda name: types.get(sanitized(name) if sanitizes else name),
                dialect,
                on_rows=on_rows,
                rows_max=PREVIEW_ROWS if dry_run else None,
            )
    with _header_doubted(inputs, csv, rows):
        if existing is not None:
            rows.refuse_gaps()
        if dry_run:
            if existing is None:
                # Refuses settings or columns that a table cannot have.
                new_table(
                    table, _new_schema(rows, stated, settings.console.say), settings.options, version=None, **fields
                )
            event_time = _event_time(existing, fields, Options(settings.options))
            document, parts = preview(rows, None if existing is None else types, event_time, sanitizes=sanitizes)
            settings.console.result(document, *parts)
            return
        result = _written(settings, table, existing, operation, rows, stated, fields, columns)
    renamed = _renamed(rows.rows.schema) if sanitizes else {}
    for name, new in renamed.items():
        settings.console.say(f"column {name!r} is named {new!r} in the table")
    settings.console.report_dropped(result.dropped_indexes)
    settings.console.result({**_document(result), "renamed": renamed}, _summary(result, operation))


def _check_usage(
    fields: Mapping[str, Any], sources: Sequence[str], *, creates: bool, stated_format: str | None
) -> None:
    if not creates and (fields["record_key"] or fields["partition"] or fields["ordering"]):
        raise click.UsageError("--record-key, --partition, and --ordering describe a new table: add --create")
    if creates and not fields["record_key"]:
        raise click.UsageError("--create needs --record-key")
    if creates and STDIN in sources and stated_format is None:
        raise click.UsageError("--create from standard input needs --format csv, json or parquet")


def _dialect(csv: _Csv, encoding: str | None, known: Sequence[str]) -> Dialect:
    names = None
    if not csv.has_header:
        names = tuple(name for name in known if name not in META_FIELDS)
        if not names:
            raise click.UsageError("--no-header needs --schema, which names the columns, or a table that exists")
    return Dialect(
        delimiter=csv.delimiter,
        quote='"' if csv.quote is None else csv.quote,
        encoding=None if encoding is None else known_encoding(encoding),
        null_words=csv.null_words,
        names=names,
    )


def _checked(sources: Sequence[Source], csv: _Csv) -> Sequence[Source]:
    if csv.is_stated and not any(source.format is Format.CSV for source in sources):
        raise click.UsageError(
            f"--delimiter, --quote, --no-header and --null are of CSV, and the sources are {sources[0].format}: omit them"
        )
    return sources


@contextmanager
def _header_doubted(sources: Sequence[Source], csv: _Csv, rows: SourceRows) -> Iterator[None]:
    """Adds to an error that the first row of a CSV, whose names look like values, may be no header."""
    try:
        yield
    except EventideError as error:
        is_read = csv.has_header and any(source.format is Format.CSV for source in sources)
        values = [name for name in rows.rows.column_names if _VALUE.match(name)]
        if is_read and values:
            error.add_note(
                f"the column {values[0]!r} looks like a value: if the first row is data, add --no-header and --schema"
            )
        raise


def _event_time(existing: Table | None, fields: Mapping[str, Any], options: Options) -> str | None:
    asked: str | None = fields["event_time"] or options.get(EVENT_TIME_FIELD)
    if asked is not None:
        return asked
    return fields["ordering"] if existing is None else existing._application.files.config().event_time_field


def _new_schema(rows: SourceRows, stated: StatedSchema | None, say: Callable[[str], None]) -> pa.Schema | str:
    """The columns of a new table. Raises ConfigError if nothing states or shows their types."""
    if stated is not None:
        return stated.columns if stated.avro is None else stated.avro  # unchanged, with its defaults and documentation
    untyped = [name for name in rows.rows.column_names if has_no_value(rows.rows.column(name))]
    if untyped and not len(rows.rows):
        raise ConfigError(
            "the sources have no rows, which would show the types of the columns: state them with --schema"
        )
    if untyped:
        say(f"a column without a value becomes a text: {', '.join(untyped)}; --schema states another type")
    return rows.rows.schema


def _written(
    settings: Settings,
    uri: str,
    existing: Table | None,
    operation: str,
    rows: SourceRows,
    stated: StatedSchema | None,
    fields: Mapping[str, Any],
    columns: str | None,
) -> WriteResult:
    with settings.session() as spark, settings.console.progress() as progress:
        if existing is None:
            engine = None if spark is None else task_engine(spark)
            schema = _new_schema(rows, stated, settings.console.say)
            made = created_by_first_commit(uri, schema, settings.options, fields, engine)
            opened = Table(uri, settings.options, made)
        else:
            opened = existing if spark is None else Table.open(uri, settings.options, engine=spark)
        write: Callable[..., WriteResult] = getattr(opened, operation)
        chosen = {} if columns is None else {"columns": columns}
        try:
            return write(rows.rows, progress=progress, **chosen)
        except InvalidRecordError as error:
            match = _ROW.match(str(error))
            if match is None:
                raise
            raise InvalidRecordError(f"{rows.place_of(int(match[1]))}: {str(error)[match.end() :]}") from None


def _renamed(fields: Iterable[Any]) -> dict[str, str]:
    """The columns and nested fields that have another name in the table."""
    renamed: dict[str, str] = {}
    for field in fields:
        nested = _renamed(field.type.field(number) for number in range(field.type.num_fields))
        renamed |= {name: sanitized(name) for name in (field.name,) if sanitized(name) != name} | nested
    return renamed


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

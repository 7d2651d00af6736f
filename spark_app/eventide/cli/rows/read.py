"""`eventide read`: the rows of a query, printed or written to a file."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pyarrow as pa

from eventide import Table
from eventide.cli.argument_types import FilePath
from eventide.cli.own_process import hide_pandas
from eventide.cli.row_files import check_target, write_rows
from eventide.cli.settings import Settings, common_options, option_help, stating, table_verb
from eventide.options.queries import AS_OF, BEGIN, END, QUERY_TYPE, QueryType
from eventide.rows.plain_values import plain_rows
from eventide.rows.reader import Rows
from eventide_core.config import Options
from eventide_core.errors import counted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ROWS_SHOWN = 20


@table_verb
@stating(QUERY_TYPE, "--query", type=click.Choice(QUERY_TYPE.kind.choices))
@click.option("--as-of", metavar="INSTANT", help=option_help(AS_OF))
@click.option(
    "--as-of-watermark",
    metavar="T",
    help="A read-optimized query as of the first compaction that reached this watermark.",
)
@click.option("--tag", metavar="NAME", help="A snapshot or read-optimized query of the state that the tag NAME keeps.")
@click.option("--begin", metavar="INSTANT", help=option_help(BEGIN))
@click.option("--end", metavar="INSTANT", help=option_help(END))
@click.option("--columns", metavar="A,B", help="The columns to read, in this order.")
@click.option("--filter", "condition", metavar="EXPR", help="A condition as in SQL: \"amount > 10 and part = 'a'\".")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    metavar="N",
    help="The maximum number of rows.  [default: 20; with --to all]",
)
@click.option("--all", "is_all", is_flag=True, help="Prints all rows.")
@click.option(
    "--to",
    type=FilePath(),
    metavar="FILE",
    help="Writes to FILE.parquet, .csv, .tsv, or .json, .jsonl or .ndjson (one object per line).",
)
@click.option(
    "--csv-escape-formulas",
    is_flag=True,
    help="With --to FILE.csv: puts an apostrophe before texts that a spreadsheet takes for formulas (=, +, -, @).",
)
@common_options
def read(
    settings: Settings,
    table: str,
    as_of: str | None,
    as_of_watermark: str | None,
    tag: str | None,
    begin: str | None,
    end: str | None,
    columns: str | None,
    condition: str | None,
    limit: int | None,
    is_all: bool,
    to: Path | None,
    csv_escape_formulas: bool,
) -> None:
    """Read the rows of a query.

    Prints 20 rows of TABLE, or as many as --limit or --all say; or writes them all to a file.

    Hudi's meta columns come first. Text output leaves them out unless --columns names them.
    """
    kind = Options(settings.options).get(QUERY_TYPE)
    _check_instants(kind, as_of, begin, end)
    _check_kept(kind, as_of, as_of_watermark, tag)
    if limit is not None and is_all:
        raise click.UsageError("give one of --limit and --all")
    if to is not None:
        check_target(to)
    if csv_escape_formulas and (to is None or to.suffix.lower() != ".csv"):
        raise click.UsageError("--csv-escape-formulas goes with --to FILE.csv")
    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    if names == []:
        raise click.UsageError(f"--columns {columns!r} names no column: omit it for all of them")
    console = settings.console
    if not settings.wants_spark:
        hide_pandas()
    opened = Table.open(table, settings.options)
    match kind:
        case QueryType.SNAPSHOT:
            rows = opened.snapshot(tag=tag) if as_of is None else opened.as_of(as_of)
        case QueryType.READ_OPTIMIZED:
            rows = opened.read_optimized(as_of_watermark=as_of_watermark, tag=tag)
        case QueryType.INCREMENTAL:
            assert begin is not None
            rows = opened.incremental(begin, end)
    if rows.note is not None:
        console.say(rows.note)
    if names is None and to is None and not console.is_json:
        names = [name for name in rows.schema.names if not name.startswith("_hoodie_")]
    rows.reading(names, condition)  # reports invalid columns or filters before Spark starts
    is_sample = limit is None and not is_all and to is None
    # One row more than is shown is read, to know whether there are others.
    wanted = ROWS_SHOWN + 1 if is_sample else limit
    rows = rows if wanted is None else rows.limit(wanted)
    with settings.session() as spark:
        batches = rows.to_batches(names, condition) if spark is None else _from_executors(rows, spark, names, condition)
        if to is not None:
            count = write_rows(to, rows.schema_of(names), batches, escapes_formulas=csv_escape_formulas)
            console.result({"rows": count, "file": str(to)}, f"{counted(count, 'row')} written to {to}")
            return
        plain = (row for batch in batches for row in plain_rows(batch))
        shown = islice(plain, ROWS_SHOWN) if is_sample else plain
        count = console.rows(rows.schema_of(names).names, shown, more={"file": None})
        if is_sample and next(plain, None) is not None:
            console.say(f"the first {count} rows are shown; --limit N shows more, --all shows all")


def _check_instants(kind: QueryType, as_of: str | None, begin: str | None, end: str | None) -> None:
    if as_of is not None and kind is not QueryType.SNAPSHOT:
        raise click.UsageError(f"--as-of goes with --query snapshot, not with {kind}")
    if kind is QueryType.INCREMENTAL and begin is None:
        raise click.UsageError(
            "--query incremental needs --begin: a completion time (an instant on version 6), or earliest"
        )
    if kind is not QueryType.INCREMENTAL and (begin is not None or end is not None):
        raise click.UsageError(f"--begin and --end go with --query incremental, not with {kind}")


def _check_kept(kind: QueryType, as_of: str | None, as_of_watermark: str | None, tag: str | None) -> None:
    if as_of_watermark is not None and kind is not QueryType.READ_OPTIMIZED:
        raise click.UsageError(f"--as-of-watermark goes with --query read_optimized, not with {kind}")
    if tag is not None and kind is QueryType.INCREMENTAL:
        raise click.UsageError("--tag goes with --query snapshot or read_optimized")
    if sum(word is not None for word in (as_of, as_of_watermark, tag)) > 1:
        raise click.UsageError("give one of --as-of, --as-of-watermark and --tag")


def _from_executors(
    rows: Rows, spark: "SparkSession", names: list[str] | None, condition: str | None
) -> Iterator[pa.RecordBatch]:
    """The batches that executors read, one Spark partition at a time."""
    schema = rows.schema_of(names)
    packed = rows.to_spark(spark, names, condition).mapInArrow(_packed, "batch binary")
    for row in packed.toLocalIterator(prefetchPartitions=True):
        with pa.ipc.open_stream(row.batch) as stream:
            for batch in stream:
                yield batch.cast(schema)


def _packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as one row of bytes, which Spark passes on unchanged."""
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield pa.RecordBatch.from_arrays([pa.array([sink.getvalue().to_pybytes()])], names=["batch"])

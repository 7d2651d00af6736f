"""Reads CSV in batches, in bounded memory. Every column is read as bytes first, so that nothing is guessed from a block.

Arrow reads whole rows of a block, and fails on a row that is larger, such as a text of many lines in quotes. The source is
then read again in larger blocks, without the rows that have been returned.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from eventide.sources.source import Dialect, Source
from eventide.sources.streams import readable, text_of
from eventide_core.errors import ConfigError, InvalidRecordError, counted

_BLOCK_BYTES: Final = 4 << 20
_BLOCK_BYTES_MAX: Final = (1 << 31) - 1  # a signed integer of 32 bits in Arrow
_OTHER_DELIMITERS: Final = {";": "';'", "\t": "tab", "|": "'|'"}


def csv_batches(source: Source, dialect: Dialect) -> Iterator[pa.RecordBatch]:
    """The rows, with columns of bytes. Raises ConfigError, InvalidRecordError."""
    names = _names(source, dialect)
    done, block_bytes = 0, _BLOCK_BYTES
    while True:
        try:
            for batch in _batches(source, dialect, names, block_bytes, done):
                done += len(batch)
                yield batch
        except _RowTooLargeError:
            if block_bytes == _BLOCK_BYTES_MAX:
                raise InvalidRecordError(
                    f"source {source.name!r}, row {done + 1} or later: a row is larger than 2 GiB; is a quote "
                    f"({dialect.quote}) not closed?"
                ) from None
            block_bytes = min(block_bytes * 8, _BLOCK_BYTES_MAX)
        else:
            if not done:
                yield pa.RecordBatch.from_arrays([pa.array([], pa.binary()) for _ in names], names=list(names))
            return


class _RowTooLargeError(Exception):
    """A row does not fit into one block."""


def _delimiter(source: Source, dialect: Dialect) -> str:
    return dialect.delimiter or ("\t" if source.has_tabs else ",")


def _parse_options(source: Source, dialect: Dialect, **more: Any) -> Any:
    quote: Any = dialect.quote or False
    return pyarrow.csv.ParseOptions(
        delimiter=_delimiter(source, dialect), quote_char=quote, newlines_in_values=bool(quote), **more
    )


def _names(source: Source, dialect: Dialect) -> tuple[str, ...]:
    """The column names. Raises ConfigError for an empty file, a name that comes twice, and a wrong delimiter."""
    block_bytes = _BLOCK_BYTES
    while True:
        with text_of(source, dialect.encoding) as text, readable(source.name):
            try:
                read = pyarrow.csv.ReadOptions(
                    use_threads=False, block_size=block_bytes, autogenerate_column_names=dialect.names is not None
                )
                options = _parse_options(source, dialect)
                names = list(pyarrow.csv.open_csv(text, read_options=read, parse_options=options).schema.names)
                break
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    what = "the rows" if dialect.names else "a header with the names of the columns"
                    raise ConfigError(f"source {source.name!r} is empty: it needs {what}") from None
                if "straddling" in str(error) and block_bytes < _BLOCK_BYTES_MAX:
                    block_bytes = min(block_bytes * 8, _BLOCK_BYTES_MAX)
                    continue
                names = _header(source, dialect)
                break
    return _checked_names(source, dialect, names)


def _header(source: Source, dialect: Dialect) -> list[str]:
    """The names in the first row alone, where the first block has an error, which is reported with its row later."""
    with text_of(source, dialect.encoding) as text, suppress(pa.ArrowInvalid):
        read = pyarrow.csv.ReadOptions(use_threads=False, autogenerate_column_names=dialect.names is not None)
        options = _parse_options(source, dialect, invalid_row_handler=lambda _: "skip")
        return list(pyarrow.csv.open_csv(text, read_options=read, parse_options=options).schema.names)
    return []


def _checked_names(source: Source, dialect: Dialect, names: list[str]) -> tuple[str, ...]:
    if dialect.names is not None:
        if len(names) != len(dialect.names):
            raise ConfigError(
                f"source {source.name!r} has {len(names)} columns, and without a header {len(dialect.names)} are expected: "
                f"{', '.join(dialect.names)}; state them in --schema, or check --delimiter"
            )
        return dialect.names
    delimiter = _delimiter(source, dialect)
    if len(names) == 1:
        for other, shown in _OTHER_DELIMITERS.items():
            if other in names[0] and other != delimiter:
                raise ConfigError(
                    f"source {source.name!r} has the single column {names[0]!r}: if its columns are separated by {shown}, "
                    f"add --delimiter {shown}"
                )
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(
                f"source {source.name!r} has the column {name!r} twice: rename one in its header, or use --no-header if its "
                "first row is data"
            )
        if not name:
            raise ConfigError(
                f"source {source.name!r}: a column has no name in the header: name it, or use --no-header"
            )
    return tuple(names)


def _batches(
    source: Source, dialect: Dialect, names: tuple[str, ...], block_bytes: int, done: int
) -> Iterator[pa.RecordBatch]:
    bad: list[Any] = []

    def note(row: Any) -> str:
        bad.append(row)
        return "error"

    convert: Any = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        null_values=list(dialect.null_words or ("",)),
        strings_can_be_null=True,
        quoted_strings_can_be_null=bool(dialect.null_words),
        check_utf8=False,
    )
    read: Any = pyarrow.csv.ReadOptions(
        use_threads=False,
        block_size=block_bytes,
        column_names=list(names),
        skip_rows_after_names=0 if dialect.names else 1,
    )
    with text_of(source, dialect.encoding) as text, readable(source.name):
        text.quote = dialect.quote.encode()
        try:
            parse = _parse_options(source, dialect, invalid_row_handler=note)
            for batch in pyarrow.csv.open_csv(text, read_options=read, parse_options=parse, convert_options=convert):
                if done < len(batch):
                    yield batch.slice(done)
                done = max(0, done - len(batch))
        except pa.ArrowInvalid as error:
            if "straddling" in str(error):
                raise _RowTooLargeError from None
            if bad:
                raise _ragged(source, dialect, bad[0]) from None
            if "Empty CSV" not in str(error):  # a header alone
                raise
        if text.quotes % 2:
            raise InvalidRecordError(
                f"source {source.name!r}: it has an odd number of quotes ({dialect.quote}): one is not closed, or the file "
                "ends too early; with --quote '' they are ordinary characters"
            )


def _ragged(source: Source, dialect: Dialect, row: Any) -> InvalidRecordError:
    number = row.number - (0 if dialect.names else 1)
    shown = row.text if len(row.text) <= 80 else row.text[:77] + "..."
    return InvalidRecordError(
        f"source {source.name!r}, row {number}: {counted(row.actual_columns, 'cell')} instead of {row.expected_columns}: "
        f"{shown!r}; quote a cell that contains {_delimiter(source, dialect)!r}, or complete the row"
    )

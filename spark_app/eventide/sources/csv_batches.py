"""Reads CSV in blocks of whole rows, in bounded memory. Every column is read as bytes first: no block decides a type.

1. A block ends with its last whole row. What follows begins the next block, which is larger for a row that no block holds,
   such as a text of many lines in quotes.
2. Arrow gets each block from memory, because it reads ahead in a thread of its own. A thread that still held one of
   Python's streams at the end of the process would abort it.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from eventide.sources.source import Dialect, Source
from eventide.sources.streams import readable, text_of
from eventide_core.errors import ConfigError, InvalidRecordError, counted

_BLOCK_BYTES: Final = 4 << 20
_BLOCK_BYTES_MAX: Final = (1 << 31) - 2  # Arrow counts it and one more in a signed integer of 32 bits
_OTHER_DELIMITERS: Final = {";": "';'", "\t": "tab", "|": "'|'"}
_RAGGED: Final = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def csv_tables(source: Source, dialect: Dialect) -> Iterator[pa.Table]:
    """The rows, with columns of bytes. Raises ConfigError, InvalidRecordError."""
    names: tuple[str, ...] = ()
    done = 0
    for block in _blocks(source, dialect):
        begin = 0
        if not names:
            first = _row_pattern(source, dialect).match(block)
            begin = 0 if first is None or dialect.names else first.end()
            names = _names(source, dialect, block if first is None else first[0])
        rows = _parsed(block[begin:], source, dialect, names, done)
        done += len(rows)
        if len(rows):
            yield rows
    if not names:
        what = "the rows" if dialect.names else "a header with the names of the columns"
        raise ConfigError(f"source {source.name!r} is empty: it needs {what}")
    if not done:
        yield _no_rows(names)


def _blocks(source: Source, dialect: Dialect) -> Iterator[bytes]:
    """The text, divided at the ends of rows."""
    rows = re.compile(b"(?:%b)*+" % _row_pattern(source, dialect).pattern)
    quote, rest = dialect.quote.encode(), b""
    with text_of(source, dialect.encoding) as text, readable(source.name):
        while len(rest) < _BLOCK_BYTES_MAX and (data := text.read(max(_BLOCK_BYTES, len(rest)))):
            rest += data
            whole = rows.match(rest) if quote and quote in rest else None
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1 if whole is None else whole.end()
            if end:
                yield rest[:end]
                rest = rest[end:]
    if rest:
        start = rest[:60].splitlines()[0].decode(errors="replace")
        raise InvalidRecordError(
            f"source {source.name!r}: a quote ({dialect.quote}) is not closed within 2 GiB or the file, in the row that "
            f"begins {start!r}: close it, copy the file again if it is not whole, or add --quote '' if quotes are ordinary "
            "characters"
        )


def _row_pattern(source: Source, dialect: Dialect) -> re.Pattern[bytes]:
    """One row with its end, as Arrow divides cells: a quote opens a cell only as its first character."""
    delimiter = re.escape(_delimiter(source, dialect).encode())
    plain = rb"[^%b\r\n]*+" % delimiter
    cell = plain
    if quote := re.escape(dialect.quote.encode()):
        cell = rb"(?:(?:%b[^%b]*+%b)++(?!%b)%b|(?!%b)%b)" % (quote, quote, quote, quote, plain, quote, plain)
    return re.compile(rb"(?:%b(?:%b|(?=[\r\n])))*+[\r\n]++" % (cell, delimiter))


def _delimiter(source: Source, dialect: Dialect) -> str:
    return dialect.delimiter or ("\t" if source.has_tabs else ",")


def _read(block: bytes, source: Source, dialect: Dialect, convert: Any = None, **how: Any) -> pa.Table:
    quote: Any = dialect.quote or False
    parse = pyarrow.csv.ParseOptions(
        delimiter=_delimiter(source, dialect), quote_char=quote, newlines_in_values=bool(quote)
    )
    read: Any = pyarrow.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, **how)
    stream: Any = pa.BufferReader(block)
    return pyarrow.csv.read_csv(stream, read_options=read, parse_options=parse, convert_options=convert)


def _names(source: Source, dialect: Dialect, first_row: bytes) -> tuple[str, ...]:
    """The column names. Raises ConfigError for a name that comes twice, and for a wrong delimiter."""
    with readable(source.name):
        rows = _read(first_row, source, dialect, autogenerate_column_names=dialect.names is not None)
        return _checked_names(source, dialect, rows.column_names)


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


def _parsed(block: bytes, source: Source, dialect: Dialect, names: tuple[str, ...], done: int) -> pa.Table:
    convert: Any = pyarrow.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.binary()),
        null_values=list(dialect.null_words or ("",)),
        strings_can_be_null=True,
        quoted_strings_can_be_null=bool(dialect.null_words),
        check_utf8=False,
    )
    with readable(source.name):
        try:
            return _read(block, source, dialect, convert, column_names=list(names))
        except pa.ArrowInvalid as error:
            ragged = _RAGGED.search(str(error))
            if ragged is not None:
                raise _misshapen(source, dialect, ragged, done) from None
            if "Empty CSV" not in str(error):
                raise
    return _no_rows(names)


def _no_rows(names: tuple[str, ...]) -> pa.Table:
    return pa.table([pa.array([], pa.binary()) for _ in names], names=list(names))


def _misshapen(source: Source, dialect: Dialect, row: re.Match[str], done: int) -> InvalidRecordError:
    shown = row[4] if len(row[4]) <= 80 else row[4][:77] + "..."
    return InvalidRecordError(
        f"source {source.name!r}, row {done + int(row[1])}: {counted(int(row[3]), 'cell')} instead of {row[2]}: {shown!r}; "
        f"quote a cell that contains {_delimiter(source, dialect)!r}, or complete the row"
    )

"""Reads the rows of sources into one Arrow table, batch by batch: text is never held as a whole.

1. Columns that are declared, by the table or by a schema, get their types while they are read.
2. Other columns of a text format are read as texts. After the last row, each gets the type that it has in a source with
   types, such as Parquet, or else the one that all of its values fit in all sources (text_columns.py).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.sources.csv_batches import csv_tables
from eventide.sources.json_batches import declared_type, json_tables
from eventide.sources.source import Dialect, Format, Source
from eventide.sources.streams import readable
from eventide.sources.text_columns import (
    EVERY_TYPE,
    TIMES,
    as_text,
    converted,
    inferred,
    is_text,
    needs_parquet,
    of_epochs,
)
from eventide_adapters.format.encoding.columns.exact_cast import refuse_unstated
from eventide_core.errors import ConfigError, InvalidRecordError


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a source that follow one another.

    `source` is the name of the source in messages, `first_row` the number of the first row there, from 0. `rows` have the
    columns that the source has. `candidates` are the types that a column may have that is not converted yet; a column
    without any is final.
    """

    source: str
    first_row: int
    rows: pa.Table
    candidates: Mapping[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])


@dataclass(frozen=True, slots=True)
class SourceRows:
    """All rows, and which of them are of which source.

    `rows` are the rows of all `parts` in their order, converted to one schema. Of `parts`, only the number of rows is meant:
    their columns are as they were read.
    """

    rows: pa.Table
    parts: tuple[Part, ...]

    def place_of(self, row: int) -> str:
        """The source of a row, and its number there, counted from 1."""
        before = 0
        for part in self.parts:
            if row < before + len(part.rows):
                return f"source {part.source!r}, row {part.first_row + row - before + 1}"
            before += len(part.rows)
        return f"row {row}"

    def refuse_gaps(self) -> None:
        """Raises InvalidRecordError for a source that lacks a column of another: its rows would overwrite it with nulls."""
        columns: dict[str, set[str]] = {}
        for part in self.parts:
            columns.setdefault(part.source, set()).update(part.rows.column_names)
        for source, own in columns.items():
            for name in self.rows.column_names:
                if name not in own and self.rows.num_rows:
                    other = next(there for there, names in columns.items() if name in names)
                    raise InvalidRecordError(
                        f"source {source!r} lacks the column {name!r}, which source {other!r} has, so that its rows would "
                        "become null there: load the sources one after the other"
                    )


def read_rows(
    sources: Sequence[Source],
    types: Callable[[str], Any],
    dialect: Dialect,
    *,
    on_rows: Callable[[int], None] = lambda _: None,
    rows_max: int | None = None,
) -> SourceRows:
    """The rows of all sources, or the first `rows_max`.

    `types` gives the type that a column is declared to have; None for a column that is not declared. Raises ConfigError for
    a source that cannot be read, or that does not fit the others; InvalidRecordError for a value that does not fit.
    """
    parts: list[Part] = []
    count = 0
    for source in sources:
        for part in _parts(source, types, dialect):
            kept = part if rows_max is None else replace(part, rows=part.rows.slice(0, rows_max - count))
            count += len(kept.rows)
            on_rows(len(kept.rows))
            parts.append(kept)
            if rows_max is not None and count >= rows_max:
                return _whole(sources, parts)
    return _whole(sources, parts)


def _parts(source: Source, types: Callable[[str], Any], dialect: Dialect) -> Iterator[Part]:
    match source.format:
        case Format.PARQUET:
            yield from _parquet_parts(source)
        case Format.CSV:
            yield from _text_parts(source, csv_tables(source, dialect), types, EVERY_TYPE, dialect.epochs)
        case Format.JSON:
            tables = json_tables(source, types, dialect)
            yield from _text_parts(source, tables, types, TIMES, dialect.epochs)


def _parquet_parts(source: Source) -> Iterator[Part]:
    with source.open() as stream, readable(source.name):
        try:
            file = pq.ParquetFile(stream)
        except pa.ArrowInvalid as error:
            raise ConfigError(
                f"source {source.name!r} cannot be read as Parquet: {' '.join(str(error).split()).rstrip('.')}: copy it "
                "again, or name its format with --format csv or json"
            ) from None
        yield Part(source.name, 0, file.schema_arrow.empty_table())
        first_row = 0
        for batch in file.iter_batches():
            yield Part(source.name, first_row, pa.Table.from_batches([batch]))
            first_row += len(batch)


def _text_parts(
    source: Source,
    tables: Iterator[pa.Table],
    types: Callable[[str], Any],
    candidates: tuple[Any, ...],
    epochs: str | None,
) -> Iterator[Part]:
    first_row = 0
    for rows in tables:
        yield _typed(source.name, first_row, rows, types, candidates, epochs)
        first_row += len(rows)


def _typed(
    place: str,
    first_row: int,
    rows: pa.Table,
    types: Callable[[str], Any],
    candidates: tuple[Any, ...],
    epochs: str | None,
) -> Part:
    columns: list[Any] = []
    for name in rows.column_names:
        column: Any = rows.column(name)
        kind = types(name)
        if pa.types.is_binary(column.type) and candidates is EVERY_TYPE:
            column = as_text(column, name, place, first_row)
        if kind is not None and column.type != kind and epochs is not None:
            column = of_epochs(column, kind, epochs, name, place, first_row)
        if kind is not None and column.type != kind:
            column = _declared(column, kind, name, place, first_row, empty_is_null=candidates is EVERY_TYPE)
        columns.append(column)
    open_to = {
        name: candidates if candidates is EVERY_TYPE or not _has_empty(column) else ()
        for name, column in zip(rows.column_names, columns, strict=True)
        if types(name) is None and is_text(column.type)
    }
    return Part(place, first_row, pa.table(columns, names=rows.column_names), open_to)


def _has_empty(column: Any) -> bool:
    return bool(pc.any(pc.equal(column, pa.scalar("", column.type))).as_py())


def _declared(column: Any, kind: Any, name: str, place: str, first_row: int, *, empty_is_null: bool) -> Any:
    if is_text(column.type):
        return converted(column, kind, name, place, first_row, empty_is_null=empty_is_null)
    if needs_parquet(kind):
        raise InvalidRecordError(
            f"source {place!r}: column {name!r} is of type {kind}, and bytes in nested values are not read from text: use "
            "Parquet"
        )
    if pa.types.is_timestamp(kind) and (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise InvalidRecordError(
            f"source {place!r}: column {name!r} has numbers, and is of type {kind}: if they are epochs, state their unit, "
            "such as --epochs ms, and write whole numbers"
        )
    refuse_unstated(column.type, kind, f"source {place!r}: column {name!r}")
    try:
        return column.cast(declared_type(column.type, kind, reads_texts=True))
    except pa.ArrowException as error:
        raise InvalidRecordError(
            f"source {place!r}: column {name!r} does not fit the type {kind}: {error}; correct the value"
        ) from None


def _whole(sources: Sequence[Source], parts: Sequence[Part]) -> SourceRows:
    if not any(part.rows.num_columns for part in parts):
        raise ConfigError(f"the sources have no rows, beginning with {sources[0].name!r}: name a source that has some")
    kinds = _kinds(parts)
    done = [
        Part(part.source, part.first_row, _in_kinds(part, {n: kinds[n] for n in part.candidates})) for part in parts
    ]
    try:
        rows = pa.concat_tables([part.rows for part in done], promote_options="permissive")
    except pa.ArrowException as error:
        raise ConfigError(f"the sources do not fit together: {error}") from None
    return SourceRows(rows, tuple(done))


def _kinds(parts: Sequence[Part]) -> dict[str, Any]:
    """The type of each column. Raises ConfigError for one that has other types in another source."""
    kinds: dict[str, Any] = {}
    for part in parts:
        for column in part.rows.schema:
            if column.name not in part.candidates:
                kinds[column.name] = _common(column, kinds.get(column.name), part)
    for part in parts:
        for name, candidates in part.candidates.items():
            # A text of JSON is a text or a time. One of CSV may be anything.
            known = kinds.get(name, pa.null())
            if candidates is not EVERY_TYPE and not pa.types.is_null(known) and known not in candidates:
                kinds[name] = _common(part.rows.schema.field(name), known, part)
    for name in {name for part in parts for name in part.candidates}:
        columns = [part.rows.column(name) for part in parts if name in part.candidates]
        allowed = [set(part.candidates[name]) for part in parts if name in part.candidates]
        if name not in kinds or pa.types.is_null(kinds[name]):
            kinds[name] = inferred(columns, [kind for kind in EVERY_TYPE if all(kind in some for some in allowed)])
    return kinds


def _common(column: Any, known: Any, part: Part) -> Any:
    if known is None or known == column.type:
        return column.type
    try:
        schemas = [pa.schema([column.with_type(known)]), pa.schema([column])]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except pa.ArrowException:
        raise ConfigError(
            f"source {part.source!r}, row {part.first_row + 1} and after: column {column.name!r} is {column.type}, and "
            f"{known} before: write all of its values alike, or state its type with --schema"
        ) from None


def _in_kinds(part: Part, kinds: Mapping[str, Any]) -> pa.Table:
    columns: list[Any] = list(part.rows.columns)
    fields: list[Any] = list(part.rows.schema)
    for place, known in enumerate(fields):
        kind = kinds.get(known.name, known.type)
        if kind != known.type:
            columns[place] = converted(columns[place], kind, known.name, part.source, part.first_row)
            fields[place] = pa.field(known.name, kind)
    metadata: Any = part.rows.schema.metadata
    return pa.table(columns, schema=pa.schema(fields, metadata))

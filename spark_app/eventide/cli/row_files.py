"""Writes rows to a file, batch by batch, in the formats that `ingest` reads: CSV has a header, JSON one object per line.

A text in a CSV file that begins with =, +, -, @, a tab or a carriage return is a formula for a spreadsheet. With
`escapes_formulas`, it begins with an apostrophe.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from eventide.report.whole_file import appearing_whole, check_file
from eventide.rows.plain_values import plain_rows, plain_value, python_values
from eventide.sources.source import ENDINGS, Format
from eventide_core.errors import ConfigError

_FORMULA = r"^[=+\-@\t\r]"


def format_of(path: Path) -> Format:
    """The format by the file's name, as `ingest` has it. Raises ConfigError for an unknown one."""
    kind = ENDINGS.get(path.suffix.lower())
    if kind is None:
        raise ConfigError(f"file {str(path)!r} has an unknown format: its name must end in {', '.join(ENDINGS)}")
    return kind


def check_target(path: Path) -> None:
    """Raises ConfigError if `write_rows` could not write there. Call it before anything is read or taken."""
    format_of(path)
    check_file(path)


def write_rows(
    path: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], *, escapes_formulas: bool = False
) -> int:
    """Writes all batches, in bounded memory; returns the number of rows. Raises ConfigError if it cannot write."""
    count = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal count
        for batch in batches:
            yield batch
            count += batch.num_rows

    with appearing_whole(path) as file:
        match format_of(path):
            case Format.PARQUET:
                _write_parquet(file, schema, counted())
            case Format.CSV:
                delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
                _write_csv(file, schema, counted(), delimiter, escapes_formulas=escapes_formulas)
            case Format.JSON:
                _write_json_lines(file, counted())
    return count


def _write_parquet(file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    with pq.ParquetWriter(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_csv(
    file: BinaryIO, schema: pa.Schema, batches: Iterable[pa.RecordBatch], delimiter: str, *, escapes_formulas: bool
) -> None:
    fields = [_csv_field(field) for field in schema]
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    with pyarrow.csv.CSVWriter(file, pa.schema(fields), write_options=options) as writer:
        for batch in batches:
            columns = [_csv_column(batch.column(i), field) for i, field in enumerate(fields)]
            if escapes_formulas:
                columns = [_without_formulas(column) for column in columns]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))


def _csv_field(field: Any) -> Any:
    """The column for a CSV cell: numbers and Booleans unchanged, anything else as text."""
    kind = field.type
    is_plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return field if is_plain else pa.field(field.name, pa.string(), field.nullable)


def _csv_column(column: Any, field: Any) -> Any:
    if column.type == field.type:
        return column
    return pa.array([_csv_text(value, column.type) for value in python_values(column, field.name)], pa.string())


def _without_formulas(column: Any) -> Any:
    if not pa.types.is_string(column.type):
        return column
    is_formula = pc.match_substring_regex(column, _FORMULA)
    return pc.if_else(is_formula, pc.binary_join_element_wise(pa.scalar("'"), column, ""), column)


def _csv_text(value: Any, kind: Any) -> str | None:
    plain = plain_value(value, kind)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain)


def _write_json_lines(file: BinaryIO, batches: Iterable[pa.RecordBatch]) -> None:
    for batch in batches:
        file.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in plain_rows(batch))

"""Reads rows from files: .parquet, .json with one object per line, .csv with a header; or from the files in a directory."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from eventide_core.errors import ConfigError
from eventide_core.table.records.avro_names import sanitized

SUFFIXES = (".parquet", ".json", ".csv")


def source_files(sources: Sequence[str]) -> tuple[Path, ...]:
    """The source files, those of a directory sorted by name. Raises ConfigError for a missing file or an unknown format."""
    found: list[Path] = []
    for source in sources:
        path = Path(source)
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
            if not inside:
                raise ConfigError(f"source {source!r}: no file in it ends in {', '.join(SUFFIXES)}")
            found += inside
        elif not path.is_file():
            raise ConfigError(f"source {source!r} does not exist")
        elif path.suffix.lower() not in SUFFIXES:
            raise ConfigError(f"source {source!r} has an unknown format: its name must end in {', '.join(SUFFIXES)}")
        else:
            found.append(path)
    return tuple(found)


def read_rows(files: Iterable[Path], table_schema: pa.Schema | None, *, sanitizes: bool = False) -> pa.Table:
    """All rows. Columns of text formats have the table's types if the table has the columns.

    With `sanitizes`, a column matches the table's column that has its sanitized name. The names in the rows stay unchanged.
    Raises ConfigError for a file that cannot be read, or whose columns do not match those of the other files.
    """
    types = {} if table_schema is None else {field.name: field.type for field in table_schema}
    tables = [_read(file, _types_by_name_in(file, types) if sanitizes else types) for file in files]
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise ConfigError(f"the sources do not fit together: {error}") from None


def _types_by_name_in(file: Path, types: dict[str, Any]) -> dict[str, Any]:
    """The table's types by the names that the columns have in the file."""
    return {name: types[sanitized(name)] for name in _read(file, {}).column_names if sanitized(name) in types}


def _read(file: Path, known: dict[str, Any]) -> pa.Table:
    try:
        match file.suffix.lower():
            case ".parquet":
                return pq.read_table(file)
            case ".csv":
                options = pyarrow.csv.ConvertOptions(column_types=known, strings_can_be_null=True)
                return pyarrow.csv.read_csv(file, convert_options=options)
            case _:
                columns: Any = pa.schema([pa.field(name, kind) for name, kind in known.items()]) if known else None
                parse = pyarrow.json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="infer")
                rows = pyarrow.json.read_json(file, parse_options=parse)
                return rows.select([name for name in rows.column_names if name in _names_in(file, rows, known)])
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"source {str(file)!r} cannot be read: {error}") from None


def _names_in(file: Path, rows: pa.Table, known: dict[str, Any]) -> frozenset[str]:
    """The columns that are in the file. Columns that only the table has are read as nulls and must be left out."""
    absent = [name for name in known if name in rows.column_names and rows.column(name).null_count == len(rows)]
    if not absent:
        return frozenset(rows.column_names)
    plain = pyarrow.json.read_json(file)
    return frozenset(name for name in rows.column_names if name not in absent or name in plain.column_names)

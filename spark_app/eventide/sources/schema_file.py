"""Reads the schema that a user states in a file.

Avro        a record in JSON (.avsc)
Arrow       an Arrow file or stream (.arrow, .feather, .arrows), of which only the schema is read; or a Parquet file
lines       `name type`, each optionally followed by `not null`; empty lines and those that begin with # are skipped
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.avro.type_words import TYPE_WORDS, type_of
from eventide_core.errors import ConfigError, EventideError
from eventide_core.table.schema.avro_schema import AvroSchema

_LINE: Final = re.compile(r"(\S+)\s+(.+?)(\s+not\s+null)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StatedSchema:
    """The schema of a table to create. `columns` is the schema in Arrow.

    `avro` is the text of an Avro schema, if the file has one; None for any other file.
    """

    columns: pa.Schema
    avro: str | None = None


def read_schema(path: Path) -> StatedSchema:
    """The schema in the file. Raises ConfigError, which names the line, if it cannot be read."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"--schema {str(path)!r} cannot be read: {error.strerror}") from None
    try:
        if data[:4] == b"PAR1":
            return StatedSchema(pq.read_schema(path))
        if data[:6] == b"ARROW1":
            return StatedSchema(pa.ipc.open_file(data).schema)
        if data[:4] == b"\xff\xff\xff\xff":
            return StatedSchema(pa.ipc.open_stream(data).schema)
    except (pa.ArrowException, OSError) as error:
        raise ConfigError(f"--schema {str(path)!r} isn't an Arrow or Parquet schema: {error}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(
            f"--schema {str(path)!r} is neither Arrow, Parquet, Avro in JSON, nor text in UTF-8"
        ) from None
    return _avro(text, path) if text.lstrip().startswith(("{", "[", '"')) else _lines(text, path)


def _avro(text: str, path: Path) -> StatedSchema:
    try:
        schema = AvroSchema.of(text)
        parsed = schema.parsed
        if not isinstance(parsed, dict) or parsed.get("type") != "record":
            raise ConfigError("it is not of the type record")
        return StatedSchema(arrow_schema(schema), text)
    except (ValueError, KeyError, TypeError, EventideError) as error:
        raise ConfigError(f"--schema {str(path)!r} isn't an Avro schema of a record: {error}") from None


def _lines(text: str, path: Path) -> StatedSchema:
    fields: list[Any] = []
    for number, line in enumerate(text.splitlines(), start=1):
        stated = line.strip()
        if not stated or stated.startswith("#"):
            continue
        match = _LINE.fullmatch(stated.removesuffix(","))
        kind = None if match is None else type_of(match[2])
        if match is None or kind is None:
            raise ConfigError(
                f"--schema {str(path)!r}, line {number}: {stated!r} is not `name type` with a type of {TYPE_WORDS}; use "
                "Avro for any other"
            )
        if any(field.name == match[1] for field in fields):
            raise ConfigError(f"--schema {str(path)!r}, line {number}: the column {match[1]!r} comes twice: remove one")
        fields.append(pa.field(match[1], kind, nullable=match[3] is None))
    if not fields:
        raise ConfigError(f"--schema {str(path)!r} has no column: write a line `name type` for each")
    return StatedSchema(pa.schema(fields))

"""Writes records with meta columns as Parquet: the codec, its level, and which columns get a dictionary.

A column whose values hardly repeat is written plain: its dictionary would be given up when it is full, after every value
has been looked for in it, and the values up to there would be stored in a worse way. Hudi's own writer decides by the first
page; here a sample of the first rows decides, evenly spaced, for base files are often sorted by something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.avro_schema import arrow_schema, with_meta_fields
from eventide_core.config import PARQUET_CODEC
from eventide_core.errors import ConfigError

# Java's deflate default; zstd beyond 1 costs half as much time again for a hundredth of the size.
LEVELS: Final[Mapping[str, int | None]] = {"gzip": 6, "zstd": 1, "snappy": None, "uncompressed": None}
ROW_GROUP_ROWS_MAX: Final = 1 << 20
# Of 16 Ki values drawn from 160 Ki different ones a twentieth meets another: eight-byte values of so many different kinds
# fill the megabyte that a dictionary may have.
_SAMPLE_ROWS: Final = 1 << 14
_DISTINCT_SHARE_MAX: Final = 0.95


class ParquetOutput:
    """One Parquet file, written to `sink` table by table, each a row group or several. The sink is left open."""

    def __init__(self, sink: Any, schema: str, codec: str) -> None:
        """`schema` is the table's Avro schema. Raises ConfigError for an unknown codec."""
        self._codec = codec.lower()
        if self._codec not in LEVELS:
            raise ConfigError(f"option {PARQUET_CODEC}={codec!r} is not one of {', '.join(LEVELS)}")
        self._sink = sink
        self._columns = arrow_schema(with_meta_fields(schema))
        self._writer: pq.ParquetWriter | None = None

    def write(self, records: pa.Table) -> None:
        """Adds records, which have all columns of the table."""
        self._opened(records).write_table(records, row_group_size=ROW_GROUP_ROWS_MAX)

    def close(self, footer: Mapping[str, str]) -> None:
        """Writes the footer with these pairs."""
        writer = self._opened(self._columns.empty_table())
        writer.add_key_value_metadata(dict(footer))
        writer.close()

    def abandon(self) -> None:
        """Lets go of a file that is not to be finished; Arrow may write to the sink all the same."""
        if self._writer is not None:
            self._writer.close()

    def _opened(self, records: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            compression: Any = "none" if self._codec == "uncompressed" else self._codec
            dictionaries: Any = repetitive_columns(records)
            self._writer = pq.ParquetWriter(
                self._sink,
                self._columns,
                compression=compression,
                compression_level=LEVELS[self._codec],
                use_dictionary=dictionaries,
                store_schema=False,
            )
        return self._writer


def repetitive_columns(records: pa.Table) -> list[str]:
    """The Parquet paths of the columns, nested ones too, that are worth a dictionary, by a sample of their values."""
    places = np.unique(np.linspace(0, max(len(records) - 1, 0), min(len(records), _SAMPLE_ROWS)).astype(np.int64))
    sample = records.take(places)
    return [
        path
        for name in records.schema.names
        for path, values in _leaves(name, sample.column(name).combine_chunks())
        if len(pc.unique(values)) <= _DISTINCT_SHARE_MAX * (len(values) - values.null_count) + 1
    ]


def avro_footer(schema: str) -> dict[str, str]:
    """What a footer says of the Avro schema."""
    return {"parquet.avro.schema": with_meta_fields(schema), "writer.model.name": "avro"}


def _leaves(path: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The columns that Parquet makes of one, and their values; what stands below a null may be among them."""
    kind = values.type
    if pa.types.is_struct(kind):
        for place, child in enumerate(kind):
            yield from _leaves(f"{path}.{child.name}", values.field(place))
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", values.keys)
        yield from _leaves(f"{path}.key_value.value", values.items)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", values.flatten())
    else:
        yield path, values

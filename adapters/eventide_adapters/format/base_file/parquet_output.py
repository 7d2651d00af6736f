"""Writes records with meta columns as Parquet. Chooses the codec level and the dictionary columns.

A column is written plain where more than half of its values differ, or its dictionary would not fit: every value would be
looked for in it, and stored in a worse way. Hudi's own writer decides by the first page; here some rows of the whole row
group decide, drawn at random, for base files are often sorted by something. Of Hudi's own columns it is known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.avro.schema import arrow_schema, with_meta_fields
from eventide_core.config import PARQUET_CODEC
from eventide_core.errors import ConfigError
from eventide_core.table.schema import META_FIELDS

# Java's deflate default; zstd beyond 1 costs half as much time again for a hundredth of the size.
LEVELS: Final[Mapping[str, int | None]] = {"gzip": 6, "zstd": 1, "snappy": None, "uncompressed": None}
ROW_GROUP_ROWS_MAX: Final = 1 << 20
_SAMPLE_ROWS: Final = 1 << 11
_DISTINCT_SHARE_MAX: Final = 0.5  # beyond it files were larger and took longer, with gzip as with zstd
_DICTIONARY_BYTES_MAX: Final = 1 << 20  # of Arrow's writer, as of parquet-mr
_OF_HUDI: Final = {name: name not in ("_hoodie_record_key", "_hoodie_commit_seqno") for name in META_FIELDS}


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
        """Adds records, which have all columns of the table; a column may always come as a dictionary of its values."""
        # Where two tables bring dictionaries of their own, Arrow's writer would continue without one.
        self._opened(records).write_table(records.unify_dictionaries(), row_group_size=ROW_GROUP_ROWS_MAX)

    def close(self, footer: Mapping[str, str | bytes]) -> None:
        """Writes the footer with these pairs."""
        writer = self._opened(self._columns.empty_table())
        pairs: Any = dict(footer)  # Arrow takes bytes, too
        writer.add_key_value_metadata(pairs)
        writer.close()

    def abandon(self) -> None:
        """Abandons an unfinished file; Arrow may still write to the sink."""
        if self._writer is not None:
            self._writer.close()

    def _opened(self, records: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            compression: Any = "none" if self._codec == "uncompressed" else self._codec
            dictionaries: Any = repetitive_columns(records)
            self._writer = pq.ParquetWriter(
                self._sink,
                _with_dictionaries(self._columns, records.schema),
                compression=compression,
                compression_level=LEVELS[self._codec],
                use_dictionary=dictionaries,
                store_schema=False,
            )
        return self._writer


def repetitive_columns(records: pa.Table) -> list[str]:
    """The Parquet paths of the columns, nested ones too, that are worth a dictionary in a row group of these records."""
    count = len(records)
    given = [field.name for field in records.schema if pa.types.is_dictionary(field.type)]
    own = [name for name in records.schema.names if name not in _OF_HUDI and name not in given]
    sample = records.select(own)
    if count > _SAMPLE_ROWS:
        drawn = np.random.default_rng(0)  # a fixed seed: the same rows each time
        sample = sample.take(drawn.integers(0, count, _SAMPLE_ROWS))
    return [name for name in records.schema.names if _OF_HUDI.get(name) or name in given] + [
        path
        for name in own
        for path, values in _leaves(name, sample.column(name).combine_chunks())
        if _is_repetitive(values.drop_null(), count / max(len(sample), 1))
    ]


def _is_repetitive(sample: Any, scale: float) -> bool:
    """Whether `scale` times as many values would repeat enough, if this sample is representative."""
    same = len(sample) - len(pc.unique(sample))
    if same == 0:
        return False
    # That many of a sample meet another one if there are so many kinds of values, all equally frequent.
    kinds = len(sample) ** 2 / (2 * same)
    count = len(sample) * scale
    expected = kinds * (1 - math.exp(-count / kinds))
    value_bytes = sample.nbytes / len(sample)
    return expected <= _DISTINCT_SHARE_MAX * count and expected * value_bytes <= _DICTIONARY_BYTES_MAX


def avro_footer(schema: str) -> dict[str, str]:
    """The Avro schema's pairs in a footer."""
    return {"parquet.avro.schema": with_meta_fields(schema), "writer.model.name": "avro"}


def _with_dictionaries(columns: pa.Schema, given: pa.Schema) -> pa.Schema:
    kinds: dict[str, Any] = {field.name: field.type for field in given if pa.types.is_dictionary(field.type)}
    return pa.schema([field.with_type(kinds[field.name]) if field.name in kinds else field for field in columns])


def _leaves(path: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The Parquet columns of one column, and their values, possibly including those below a null."""
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

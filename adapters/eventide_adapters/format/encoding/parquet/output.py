"""Writes records with meta columns as Parquet. Chooses the compression and the dictionary columns.

Arrow compresses pages, except with gzip (gzip_pages.py).

A column is written without a dictionary if more than half of its values are distinct, or if its dictionary would be too
large: the writer would look up every value without finding it, and store the values in a larger form. Hudi's own writer
decides by the first page. This writer decides by a random sample of the whole row group, because base files are often
sorted. For Hudi's meta columns, the decision is fixed.

Floats have no statistics: Arrow leaves NaN out of a range, and Spark, for which NaN is the greatest float, would skip rows.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.avro.vector_type import vectors_footer
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowField, empty_array, to_arrow
from eventide_adapters.format.encoding.parquet.gzip_pages import GzipPages
from eventide_adapters.format.encoding.parquet.legacy_calendar import SPARK_VERSION_FOOTER
from eventide_adapters.format.encoding.parquet.threads import threads_at_most
from eventide_core.config import PARQUET_CODEC
from eventide_core.errors import ConfigError
from eventide_core.table.schema.avro_schema import COMMIT_SEQNO, META_FIELDS, RECORD_KEY, AvroSchema

# The codecs, with Arrow's level. A level of zstd beyond 1 takes half as long again and saves a hundredth of the size.
LEVELS: Final[Mapping[str, int | None]] = {"gzip": None, "zstd": 1, "snappy": None, "uncompressed": None}
_COMPRESSING_THREADS: Final = 4  # one thread encodes about as fast as so many compress gzip
ROW_GROUP_ROWS_MAX: Final = 1 << 20
_ROW_GROUP_ROWS_MIN: Final = 1 << 10
# A row group is written when it has so many bytes of Arrow memory, and a batch may exceed them: two batches of 14 MB. While
# it is encoded, the next one is gathered, so two of them are in memory. Larger ones make no file smaller or faster to read.
ROW_GROUP_BYTES: Final = 24 * 1024 * 1024
# Spark takes a file of 3.1 or later without marks of the legacy calendar for one in today's. The oldest Spark with Hudi 1.x.
_SPARK_VERSION: Final = "3.3.0"
_SAMPLE_ROWS: Final = 1 << 11
_DISTINCT_SHARE_MAX: Final = 0.5  # beyond it, files were larger and slower to write, with gzip and with zstd
_DICTIONARY_BYTES_MAX: Final = 1 << 20  # the limit of Arrow's writer and of parquet-mr
_OF_HUDI: Final = {name: name not in (RECORD_KEY, COMMIT_SEQNO) for name in META_FIELDS}


class ParquetOutput:
    """One Parquet file, written to `sink` table by table. Each table is one or more row groups. Leaves the sink open."""

    def __init__(self, sink: Any, schema: AvroSchema, codec: str, *, marks_local_times: bool = True) -> None:
        """`schema` is the table's Avro schema. Without `marks_local_times`, local timestamps are stored as plain numbers.

        Raises ConfigError for an unknown codec.
        """
        self._codec = codec.lower()
        if self._codec not in LEVELS:
            raise ConfigError(f"option {PARQUET_CODEC}={codec!r} is not one of {', '.join(LEVELS)}")
        self._threads = threads_at_most(_COMPRESSING_THREADS) if self._codec == "gzip" else None
        self._gzip = GzipPages(sink, self._threads) if self._codec == "gzip" else None
        self._sink: Any = sink if self._gzip is None else pa.PythonFile(self._gzip, mode="w")
        columns = arrow_schema(schema.with_meta_fields())
        self._columns = columns if marks_local_times else pa.schema([unmarked(field) for field in columns])
        self._unmarked = [new for old, new in zip(columns, self._columns, strict=True) if old != new]
        self._writer: pq.ParquetWriter | None = None

    def write(self, records: pa.Table) -> None:
        """Adds records with all columns of the table. Any column may come as a dictionary of its values."""
        for field in self._unmarked:
            place = records.schema.get_field_index(field.name)
            records = records.set_column(place, field, records.column(place).cast(field.type))
        # What a slice inserts comes as one table. Row groups of its size would leave a reader of one key nothing to skip.
        pieces = max(1, records.nbytes // ROW_GROUP_BYTES - 1)
        size = min(ROW_GROUP_ROWS_MAX, max(_ROW_GROUP_ROWS_MIN, -(-len(records) // pieces)))
        # If two chunks had different dictionaries, Arrow's writer would continue without one.
        self._opened(records).write_table(records.unify_dictionaries(), row_group_size=size)

    def close(self, footer: Mapping[str, str | bytes]) -> None:
        """Writes the footer with the given pairs."""
        none = pa.Table.from_arrays([empty_array(kind) for kind in self._columns.types], schema=self._columns)
        writer = self._opened(none)
        pairs: Any = dict(footer)  # Arrow also accepts bytes
        writer.add_key_value_metadata(pairs)
        if self._gzip is None:
            writer.close()
            return
        self._gzip.begin_footer()
        writer.close()
        self._gzip.finish()
        self._end_threads()

    def abandon(self) -> None:
        """Abandons an unfinished file. Arrow may still write to the sink."""
        self._end_threads()
        if self._gzip is not None:
            self._gzip.begin_footer()
        if self._writer is not None:
            self._writer.close()

    def _end_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def _opened(self, records: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            compression: Any = self._codec if self._codec in ("zstd", "snappy") else "none"
            dictionaries: Any = repetitive_columns(records)
            self._writer = pq.ParquetWriter(
                self._sink,
                _with_dictionaries(self._columns, records.schema),
                compression=compression,
                compression_level=LEVELS[self._codec],
                use_dictionary=dictionaries,
                write_statistics=_columns_with_statistics(self._columns),
                store_schema=False,
                data_page_version="1.0",
                write_page_index=False,
                write_page_checksum=True,
            )
        return self._writer


def unmarked(field: ArrowField) -> ArrowField:
    """The column with plain numbers for its local timestamps, as parquet-avro stores them in Hudi before 1.1."""
    kind: Any = field.type
    if pa.types.is_timestamp(kind) and kind.tz is None:
        return field.with_type(pa.int64())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([unmarked(child) for child in kind]))
    if pa.types.is_map(kind):
        key, item = kind.key_field, unmarked(kind.item_field)
        named: Any = pa.map_  # it takes fields, although its stubs require types
        return field.with_type(named(key, item))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(unmarked(kind.value_field)))
    return field


def repetitive_columns(records: pa.Table) -> list[str]:
    """The Parquet paths of the columns for which a dictionary pays off in a row group of these records.

    Includes nested columns.
    """
    count = len(records)
    given = [field.name for field in records.schema if pa.types.is_dictionary(field.type)]
    own = [name for name in records.schema.names if name not in _OF_HUDI and name not in given]
    sample = records.select(own)
    if count > _SAMPLE_ROWS:
        drawn = np.random.default_rng(0)  # a fixed seed selects the same rows each time
        sample = sample.take(to_arrow(drawn.integers(0, count, _SAMPLE_ROWS)))
    return [name for name in records.schema.names if _OF_HUDI.get(name) or name in given] + [
        path
        for name in own
        for path, values in _leaves(name, sample.column(name).combine_chunks())
        if _is_repetitive(values.drop_null(), count / max(len(sample), 1))
    ]


def _columns_with_statistics(columns: pa.Schema) -> Any:
    """The Parquet paths of the columns that aren't floats."""
    # Not of an empty table: pyarrow would import pandas for it.
    leaves = (leaf for column in columns for leaf in _leaves(column.name, pa.nulls(0, column.type)))
    return [path for path, values in leaves if not pa.types.is_floating(values.type)]


def _is_repetitive(sample: Any, scale: float) -> bool:
    """Whether `scale` times as many values would repeat often enough, if this sample is representative."""
    same = len(sample) - len(pc.unique(sample))
    if same == 0:
        return False
    # The expected number of kinds of values, if all are equally frequent and `same` values of the sample repeat
    # another.
    kinds = len(sample) ** 2 / (2 * same)
    count = len(sample) * scale
    expected = kinds * (1 - math.exp(-count / kinds))
    value_bytes = sample.nbytes / len(sample)
    return expected <= _DISTINCT_SHARE_MAX * count and expected * value_bytes <= _DICTIONARY_BYTES_MAX


def avro_footer(schema: AvroSchema) -> dict[str, str]:
    """The pairs in a footer that state the Avro schema, the vectors, and the calendar."""
    return {
        "parquet.avro.schema": schema.with_meta_fields().text,
        "writer.model.name": "avro",
        SPARK_VERSION_FOOTER: _SPARK_VERSION,
        **vectors_footer(arrow_schema(schema)),
    }


def _with_dictionaries(columns: pa.Schema, given: pa.Schema) -> pa.Schema:
    kinds: dict[str, Any] = {field.name: field.type for field in given if pa.types.is_dictionary(field.type)}
    return pa.schema([field.with_type(kinds[field.name]) if field.name in kinds else field for field in columns])


def _leaves(path: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The Parquet columns of one column with their values, which may include values below a null."""
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

"""The kinds of tables that real Hudi writes, and cells of their product that cover every combination of a few kinds.

Each cell is a table: a version of Hudi and of the table, a key generator, column types, log blocks, an index, a merge
mode, and the partitions of the metadata table. `covering_cells(2)` has each pair of kinds at least once. The result is
always the same.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, TypeVar

import pyarrow as pa

from golden.histories import EPOCH_MS, PLAIN_COLUMNS, RICH_COLUMNS, Row, rich_values
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BLOOM_INDEX,
    BUCKET_INDEX,
    COMMIT_TIME_ORDERING,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    METADATA_TABLE,
    NO_METADATA_TABLE,
    OVERWRITE_WITH_LATEST,
    PARQUET_LOG_BLOCKS,
    SIMPLE_INDEX,
    table_name,
    table_version,
)

KEYS = 16
DAY_MS = 86_400_000
KEY_GENERATORS = "org.apache.hudi.keygen"


class Writer(StrEnum):
    """The Hudi that writes a table, and the table's version."""

    HUDI_0_15_V6 = "0.15.0-v6"
    HUDI_1_0_V6 = "1.0.2-v6"
    HUDI_1_0_V8 = "1.0.2-v8"
    HUDI_1_1_V6 = "1.1.1-v6"
    HUDI_1_1_V8 = "1.1.1-v8"
    HUDI_1_1_V9 = "1.1.1-v9"
    HUDI_1_2_V6 = "1.2.0-v6"
    HUDI_1_2_V8 = "1.2.0-v8"
    HUDI_1_2_V9 = "1.2.0-v9"

    @property
    def bundle(self) -> str:
        return self.partition("-")[0]

    @property
    def version(self) -> int:
        return int(self[-1])


class KeyGenerator(StrEnum):
    SIMPLE = "simple"
    COMPLEX = "complex"
    TIMESTAMP = "timestamp"
    NON_PARTITIONED = "non-partitioned"


class Types(StrEnum):
    PLAIN = "plain"
    RICH = "rich"


class Blocks(StrEnum):
    AVRO = "avro"
    PARQUET = "parquet"


class Index(StrEnum):
    BUCKET = "bucket"
    SIMPLE = "simple"
    BLOOM = "bloom"
    RECORD = "record"


class Merge(StrEnum):
    EVENT_TIME = "event-time"
    COMMIT_TIME = "commit-time"


class Metadata(StrEnum):
    """The partitions of the metadata table."""

    NONE = "no-metadata"
    FILES = "files"
    ALL = "all-metadata"


@dataclass(frozen=True, slots=True)
class Cell:
    writer: Writer
    keys: KeyGenerator
    types: Types
    blocks: Blocks
    index: Index
    merge: Merge
    metadata: Metadata

    def __str__(self) -> str:
        return "_".join(getattr(self, field.name) for field in fields(self))

    @property
    def name(self) -> str:
        """The table's name, which must be a single word in Hudi."""
        return f"cell_{str(self).replace('-', '_').replace('.', '_')}"

    @property
    def schema(self) -> pa.Schema:
        plain = RICH_COLUMNS if self.types is Types.RICH else PLAIN_COLUMNS
        return pa.schema([*plain, *_KEY_COLUMNS])

    @property
    def options(self) -> dict[str, str]:
        """The options with which Hudi writes the table."""
        metadata = _METADATA[self.metadata] | (_RECORD_INDEX if self.index is Index.RECORD else {})
        return (
            MERGE_ON_READ
            | _KEYS[self.keys]
            | (PARQUET_LOG_BLOCKS if self.blocks is Blocks.PARQUET else AVRO_LOG_BLOCKS)
            | _INDEX[self.index]
            | _merged(self)
            | metadata
            | table_name(self.name)
        )

    def rows(self, keys: Sequence[int], batch: int, at_ms: int) -> pa.Table:
        """A version of some keys. Key n has the event time `at_ms` + n seconds."""
        return pa.Table.from_pylist([self._row(key, batch, at_ms + 1000 * key) for key in keys], schema=self.schema)

    def _row(self, key: int, batch: int, event_ms: int) -> Row:
        row: dict[str, Any] = {
            "id": f"k{key:05d}",
            "part": "ab"[key % 2],
            "event_ts": event_ms,
            "val": f"b{batch}-{key}",
            "amount": key + batch / 10,
            "sub": key % 3,
            "region": ("north east", "süd")[key % 4 // 2],
            "born": EPOCH_MS + key % 2 * DAY_MS,
        }
        return row | rich_values(key, batch, event_ms) if self.types is Types.RICH else row


_KEY_COLUMNS: "list[pa.Field[Any]]" = [
    pa.field("sub", pa.int32()),
    pa.field("region", pa.string()),
    pa.field("born", pa.int64()),
]
_KEYS = {
    KeyGenerator.SIMPLE: {"hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.SimpleKeyGenerator"},
    KeyGenerator.COMPLEX: {
        "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.ComplexKeyGenerator",
        "hoodie.datasource.write.recordkey.field": "id,sub",
        "hoodie.datasource.write.partitionpath.field": "part,region",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    },
    KeyGenerator.TIMESTAMP: {
        "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.TimestampBasedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "born",
        "hoodie.datasource.write.hive_style_partitioning": "false",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        "hoodie.keygen.timebased.timezone": "UTC",
    },
    KeyGenerator.NON_PARTITIONED: {
        "hoodie.datasource.write.keygenerator.class": f"{KEY_GENERATORS}.NonpartitionedKeyGenerator",
        "hoodie.datasource.write.partitionpath.field": "",
    },
}
_INDEX = {
    Index.BUCKET: BUCKET_INDEX,
    Index.SIMPLE: SIMPLE_INDEX,
    Index.BLOOM: BLOOM_INDEX,
    Index.RECORD: {"hoodie.index.type": "RECORD_INDEX"},
}
_RECORD_INDEX = {
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    # The default is ten; each write of Hudi processes all of them.
    "hoodie.metadata.record.index.min.filegroup.count": "2",
}
_METADATA = {
    Metadata.NONE: NO_METADATA_TABLE,
    Metadata.FILES: METADATA_TABLE,
    Metadata.ALL: {
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.metadata.index.partition.stats.enable": "true",
        "hoodie.metadata.index.bloom.filter.enable": "true",
    },
}


def _merged(cell: Cell) -> dict[str, str]:
    is_by_event_time = cell.merge is Merge.EVENT_TIME
    if cell.writer is Writer.HUDI_0_15_V6:
        return DEFAULT_PAYLOAD if is_by_event_time else OVERWRITE_WITH_LATEST
    if cell.writer.version == 6:  # the payload alone says there how rows are merged
        return table_version(6) | (DEFAULT_PAYLOAD if is_by_event_time else OVERWRITE_WITH_LATEST)
    return table_version(cell.writer.version) | (EVENT_TIME_ORDERING if is_by_event_time else COMMIT_TIME_ORDERING)


def is_possible(cell: Cell) -> bool:
    """Whether such a table can exist.

    The record index is a part of the metadata table; without it, Hudi uses another index.
    """
    return cell.index is not Index.RECORD or cell.metadata is not Metadata.NONE


def covering_cells(strength: int) -> tuple[Cell, ...]:
    """Possible cells that contain each possible combination of `strength` kinds."""
    kinds = (Writer, KeyGenerator, Types, Blocks, Index, Merge, Metadata)
    cells = [cell for cell in itertools.starmap(Cell, itertools.product(*kinds)) if is_possible(cell)]
    return covering(cells, lambda cell: tuple(getattr(cell, field.name) for field in fields(cell)), strength)


T = TypeVar("T")


def covering(rows: Sequence[T], values_of: Callable[[T], tuple[object, ...]], strength: int) -> tuple[T, ...]:
    """A selection of the rows that contains each combination of `strength` values that any row has.

    Greedy: always takes the row that adds the most combinations. Among equals, it takes the row that adds the most
    combinations of `strength + 1` values, so that rows also differ where they don't have to; then the first one.
    """
    wanted, beyond = (_combinations(rows, values_of, size) for size in (strength, strength + 1))
    missing, missing_beyond = (functools.reduce(operator.or_, masks, 0) for masks in (wanted, beyond))
    chosen: list[T] = []
    while missing:
        gains = [
            ((mask & missing).bit_count(), (further & missing_beyond).bit_count())
            for mask, further in zip(wanted, beyond, strict=True)
        ]
        best = gains.index(max(gains))
        missing &= ~wanted[best]
        missing_beyond &= ~beyond[best]
        chosen.append(rows[best])
    return tuple(chosen)


def _combinations(rows: Sequence[T], values_of: Callable[[T], tuple[object, ...]], size: int) -> list[int]:
    """The combinations of `size` values in each row, as the bits of a number."""
    numbers: dict[tuple[tuple[int, object], ...], int] = {}
    masks: list[int] = []
    for row in rows:
        combinations = itertools.combinations(enumerate(values_of(row)), size)
        masks.append(sum(1 << numbers.setdefault(found, len(numbers)) for found in combinations))
    return masks

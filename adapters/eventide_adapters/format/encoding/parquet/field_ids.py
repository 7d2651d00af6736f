"""The ids of fields in parquet.thrift, by struct, and the walk through a footer to its column chunks."""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from eventide_adapters.format.encoding.parquet.thrift_compact import (
    Data,
    Span,
    WalkedStructs,
    elements,
    fields,
    integer,
)

Struct: TypeAlias = Mapping[int, Span]
"""Where the values of a struct are, by id of the field."""

FILE_ROW_GROUPS, FILE_PAIRS, FILE_ENCRYPTION = 4, 5, 8
PAIR_KEY, PAIR_VALUE = 1, 2
GROUP_COLUMNS, GROUP_ROWS, GROUP_OFFSET, GROUP_COMPRESSED_SIZE = 1, 3, 5, 6
CHUNK_PATH, CHUNK_OFFSET, CHUNK_METADATA, CHUNK_CRYPTO, CHUNK_ENCRYPTED = 1, 2, 3, 8, 9
CHUNK_OFFSET_INDEX, CHUNK_OFFSET_INDEX_SIZE, CHUNK_COLUMN_INDEX, CHUNK_COLUMN_INDEX_SIZE = 4, 5, 6, 7
COLUMN_KIND, COLUMN_NAMES, COLUMN_CODEC, COLUMN_VALUES, COLUMN_SIZE, COLUMN_COMPRESSED_SIZE = 1, 3, 4, 5, 6, 7
COLUMN_DATA, COLUMN_INDEX_PAGES, COLUMN_DICTIONARY, COLUMN_BLOOM_FILTER = 9, 10, 11, 14  # where each begins
COLUMN_STATISTICS, COLUMN_SIZE_STATISTICS = 12, 16
STATISTICS_GREATEST, STATISTICS_LEAST = 5, 6
SIZES_UNENCODED_BYTES, SIZES_REPETITIONS, SIZES_DEFINITIONS = 1, 2, 3

PAGE_KIND, PAGE_SIZE, PAGE_COMPRESSED_SIZE, PAGE_CRC, PAGE_DATA, PAGE_DICTIONARY, PAGE_V2 = 1, 2, 3, 4, 5, 7, 8
KIND_DATA, KIND_DICTIONARY, KIND_V2 = 0, 2, 3
DATA_VALUES, DATA_ENCODING = 1, 2  # of data pages of both versions, and of dictionaries
V2_LEVELS, V2_IS_COMPRESSED = (5, 6), 7

OFFSET_INDEX_LOCATIONS: Final = 1
LOCATION_OFFSET, LOCATION_SIZE, LOCATION_ROW = 1, 2, 3
COLUMN_INDEX_NULL_PAGES, COLUMN_INDEX_LEAST, COLUMN_INDEX_GREATEST = 1, 2, 3

CODECS: Final = ("uncompressed", "snappy", "gzip", "lzo", "brotli", "lz4", "zstd", "lz4_raw")
UNCOMPRESSED, GZIP = CODECS.index("uncompressed"), CODECS.index("gzip")


def row_groups(footer: Data, walked: WalkedStructs | None = None) -> list[Struct]:
    """`walked` as in `fields`. Raises IndexError or ValueError for a damaged footer."""
    top, _ = fields(footer, 0, walked)
    if FILE_ROW_GROUPS not in top:
        return []
    return [fields(footer, at, walked)[0] for at, _ in elements(footer, top[FILE_ROW_GROUPS][0], walked)]


def column_chunks(footer: Data, group: Struct, walked: WalkedStructs | None = None) -> Iterator[tuple[Struct, Struct]]:
    """The column chunks of a row group, each with its metadata. Raises as `row_groups`, and KeyError for one without."""
    for at, _ in elements(footer, group[GROUP_COLUMNS][0], walked):
        chunk, _ = fields(footer, at, walked)
        yield chunk, fields(footer, chunk[CHUNK_METADATA][0], walked)[0]


def integers(data: Data, struct: Struct, *wanted: int) -> list[int]:
    """The integers in these fields of a struct. Raises KeyError if it lacks one."""
    return [integer(data, struct[field][0])[0] for field in wanted]


def is_elsewhere(chunk: Struct) -> bool:
    """Whether a column chunk is in another file, or encrypted."""
    return not chunk.keys().isdisjoint((CHUNK_PATH, CHUNK_CRYPTO, CHUNK_ENCRYPTED))

"""Pages that Arrow wrote uncompressed, compressed: what Arrow reads of the file, and its checksums, offsets and sizes."""

import gzip
import io
import json
import random
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.parquet.gzip_pages import GzipPages, gzip_page
from eventide_adapters.format.encoding.parquet.output import ParquetOutput
from eventide_adapters.format.encoding.parquet.thrift_compact import fields, integer
from eventide_core.table.schema.avro_schema import AvroSchema

pytestmark = pytest.mark.slow

SCHEMA = AvroSchema.of(
    json.dumps(
        {
            "type": "record",
            "name": "row",
            "fields": [
                {"name": "id", "type": "string"},
                {"name": "city", "type": ["null", "string"], "default": None},
                {"name": "number", "type": ["null", "long"], "default": None},
                {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
                {
                    "name": "place",
                    "type": {"type": "record", "name": "place", "fields": [{"name": "x", "type": "double"}]},
                },
            ],
        }
    )
)
COLUMNS = arrow_schema(SCHEMA.with_meta_fields())


@cache
def rows(seed: int, count: int) -> pa.Table:
    drawn = random.Random(seed)
    return pa.Table.from_pylist(
        [
            {
                **{name: f"{name} {row}" for name in COLUMNS.names if name.startswith("_hoodie_")},
                "id": drawn.randbytes(8).hex(),
                "city": drawn.choice(["Kyiv", "Lyon", None]),
                "number": drawn.choice([None, row]),
                "tags": [drawn.choice(["a", None, drawn.randbytes(3).hex()]) for _ in range(drawn.randrange(4))],
                "place": {"x": drawn.random()},
            }
            for row in range(count)
        ],
        COLUMNS,
    )


PIECES = rows(4, 5)
WORDS = [random.Random(number).randbytes(number % 9 + 1).hex() for number in range(300)]


def parquet(tables: list[pa.Table], codec: str, footer: dict[str, str]) -> bytes:
    sink = io.BytesIO()
    output = ParquetOutput(sink, SCHEMA, codec)
    for table in tables:
        output.write(table)
    output.close(footer)
    return sink.getvalue()


def opened(data: bytes) -> pq.ParquetFile:
    return pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)


def without_compression(metadata: Any) -> dict[str, Any]:
    """What the compression of pages may not change. Everything from the offset of a page on lies elsewhere."""
    of_columns = ("compression", "total_compressed_size", "data_page_offset", "dictionary_page_offset")
    groups = [
        {
            **{key: value for key, value in group.items() if key not in ("columns", "total_compressed_size")},
            "columns": [
                {key: value for key, value in column.items() if key not in of_columns} for column in group["columns"]
            ],
        }
        for group in metadata["row_groups"]
    ]
    return {**metadata, "serialized_size": 0, "row_groups": groups}


@pytest.mark.parametrize(
    "counts", [(), (0,), (1,), (7, 0, 3), (25_000, 12)], ids=["no row group", "no row", "one row", "few", "many pages"]
)
def test_the_file_is_that_of_arrow_but_for_the_compression(counts: tuple[int, ...]) -> None:
    tables = [rows(seed, count) for seed, count in enumerate(counts)]
    footer = {"filter": "AAAA" * 100_000, "empty": ""}
    plain, ours = (opened(parquet(tables, codec, footer)) for codec in ("uncompressed", "gzip"))
    assert ours.read().equals(plain.read())
    assert without_compression(ours.metadata.to_dict()) == without_compression(plain.metadata.to_dict())
    assert ours.metadata.metadata == plain.metadata.metadata
    assert ours.schema.equals(plain.schema)


def test_each_column_chunk_is_where_the_footer_says_and_as_large() -> None:
    """Parquet has no other way to find them: walked from the first byte to the footer, without a gap."""
    data = parquet([rows(0, 25_000), rows(1, 12)], "gzip", {})
    metadata, at = opened(data).metadata, 4
    for group in range(metadata.num_row_groups):
        chunks = [metadata.row_group(group).column(place) for place in range(metadata.num_columns)]
        for chunk in chunks:
            assert chunk.compression == "GZIP"
            starts = [at]
            end = at + chunk.total_compressed_size
            values = 0
            while at < end:
                header, start = fields(data, at)
                starts.append(at)
                at = start + integer(data, header[3][0])[0]
                page = data[start:at]
                assert integer(data, header[4][0])[0] & 0xFFFFFFFF == zlib.crc32(page)
                assert len(gzip.decompress(page)) == integer(data, header[2][0])[0]
                if 5 in header:
                    values += integer(data, fields(data, header[5][0])[0][1][0])[0]
            assert at == end
            assert values == chunk.num_values
            assert chunk.data_page_offset in starts
            if chunk.has_dictionary_page:
                assert chunk.dictionary_page_offset == starts[0]
            else:
                assert chunk.data_page_offset == starts[0]
    assert at == len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def test_duckdb_and_polars_read_the_same_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    file.write_bytes(parquet([rows(0, 25_000), rows(1, 12)], "gzip", {}))
    expected = pa.concat_tables([rows(0, 25_000), rows(1, 12)]).to_pylist()
    by_duckdb: Any = duckdb.sql(f"from read_parquet('{file}')")
    assert by_duckdb.fetchall() == [tuple(row.values()) for row in expected]
    assert polars.read_parquet(file).to_dicts() == expected


def test_the_same_rows_give_the_same_bytes() -> None:
    assert parquet([rows(0, 25_000)], "gzip", {}) == parquet([rows(0, 25_000)], "gzip", {})


@given(st.lists(st.integers(1, 300), max_size=60))
def test_arrow_may_write_in_pieces_of_any_size(sizes: list[int]) -> None:
    whole = parquet([PIECES], "uncompressed", {})
    start_of_footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    sink = io.BytesIO()
    pages = GzipPages(sink)
    at = 0
    for size in [*sizes, start_of_footer]:
        piece = whole[at : min(at + size, start_of_footer)]
        assert pages.write(piece) == len(piece)
        at += len(piece)
        assert pages.tell() == at
    pages.begin_footer()
    for piece in (whole[start_of_footer:-5], whole[-5:]):
        pages.write(piece)
    pages.finish()
    assert sink.getvalue() == parquet([PIECES], "gzip", {})


def test_pages_after_the_footer_began_are_an_error() -> None:
    whole = parquet([PIECES], "uncompressed", {})
    pages = GzipPages(io.BytesIO())
    pages.write(whole[:100])
    pages.begin_footer()
    pages.write(whole[100:])
    with pytest.raises(AssertionError, match="after the last page"):
        pages.finish()


def test_an_abandoned_file_has_no_footer() -> None:
    sink = io.BytesIO()
    output = ParquetOutput(sink, SCHEMA, "gzip")
    output.write(PIECES)
    size = len(sink.getvalue())
    output.abandon()
    assert len(sink.getvalue()) == size


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"a",
        random.Random(1).randbytes(40_000),
        random.Random(2).randbytes(20_000).hex().encode(),
        " ".join(random.Random(3).choices(WORDS, k=9000)).encode(),
        b"".join(f'{{"user":{n % 977},"action":"click","at":{n * 1009}}}'.encode() for n in range(3000)),
        bytes(1 << 20),
    ],
    ids=["empty", "byte", "noise", "hexadecimal", "text", "json", "zeros"],
)
def test_a_page_is_hardly_larger_than_by_zlib(page: bytes) -> None:
    compressed = gzip_page(page)
    assert gzip.decompress(compressed) == page
    assert len(compressed) <= 1.02 * len(zlib.compress(page, 6, 31)) + 64

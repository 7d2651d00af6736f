"""Files in gzip, shown to Arrow without compression: the rows that Arrow inflates itself; what is damaged is refused."""

import io
import itertools
import json
import random
import tarfile
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.parquet import inflated_pages
from eventide_adapters.format.encoding.parquet.bloom_filter import FOOTER_KEY
from eventide_adapters.format.encoding.parquet.footer_columns import Footer
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.encoding.parquet.thrift_compact import Span, elements, fields, integer, with_integers
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptBaseFileError
from eventide_core.table.schema.avro_schema import AvroSchema
from support.doubles.remote_stream import RemoteStream
from support.pasts import golden
from support.run.campaign import IS_PROOF

pytestmark = pytest.mark.slow

SIZE, COMPRESSED_SIZE = 2, 3
PLAIN: dict[str, Any] = {"compression": "gzip", "store_schema": False, "write_page_checksum": True}


@cache
def rows(count: int) -> pa.Table:
    drawn = random.Random(1)
    return pa.table(
        {
            "id": [drawn.randbytes(8).hex() for _ in range(count)],
            "city": [drawn.choice(["Kyiv", "Lyon", None]) for _ in range(count)],
            "number": pa.array([drawn.choice([None, row]) for row in range(count)], pa.int64()),
            "nothing": pa.nulls(count, pa.string()),
            "is_open": [drawn.random() < 0.5 for _ in range(count)],
            "tags": [[drawn.choice(["a", None, "b"]) for _ in range(drawn.randrange(3))] for _ in range(count)],
            "place": [{"x": drawn.random(), "name": drawn.randbytes(2).hex()} for _ in range(count)],
        }
    )


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **{**PLAIN, **options})
    return sink.getvalue()


def inflated(data: bytes, columns: Collection[str], stream: Any = None, *, bytes_min: int = 0) -> InflatedPages | None:
    footer = Footer(io.BytesIO(data), len(data)).data
    return InflatedPages.of(stream or io.BytesIO(data), len(data), footer, columns, bytes_min=bytes_min)


def opened(pages: Any) -> pq.ParquetFile:
    assert pages is not None
    return pq.ParquetFile(pages, pre_buffer=False, buffer_size=1024)  # as small as pages are here


def pages_of(data: bytes) -> Iterator[tuple[int, int, int, dict[int, Span]]]:
    """Where each page of the first chunk begins, its content, and its end; its header."""
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    at = chunk.dictionary_page_offset or chunk.data_page_offset
    end = at + chunk.total_compressed_size
    while at < end:
        header, start = fields(data, at)
        after = start + integer(data, header[COMPRESSED_SIZE][0])[0]
        yield at, start, after, header
        at = after


WRITTEN = {
    "as by default": {},
    "pages of version 2": {"data_page_version": "2.0"},
    "small pages": {"data_page_size": 200, "write_batch_size": 50},
    "small pages of version 2": {"data_page_size": 200, "write_batch_size": 50, "data_page_version": "2.0"},
    "without dictionaries": {"use_dictionary": False},
    "without checksums": {"write_page_checksum": False},
    "several row groups": {"row_group_size": 700},
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("count", [0, 1, 3000])
@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
def test_the_rows_are_those_that_arrow_inflates(options: dict[str, Any], count: int, is_local: bool) -> None:
    table = rows(count)
    data = parquet(table, **options)
    for columns in (table.column_names, ["id", "tags"], ["place"], ["nothing", "number"]):
        pages = inflated(data, columns, None if is_local else RemoteStream(data))
        if pages is None:
            assert count == 0
            continue
        file = opened(pages)
        assert file.metadata.row_group(0).column(0).compression == ("UNCOMPRESSED" if "id" in columns else "GZIP")
        groups = [file.iter_batches(999, [group], columns) for group in range(file.metadata.num_row_groups)]
        batches = [batch for group in groups for batch in group]
        assert (
            pa.Table.from_batches(batches, file.schema_arrow if not batches else None)
            .select(columns)
            .equals(pq.read_table(io.BytesIO(data), columns=columns))
        )


def test_files_of_hudi_give_the_same_rows() -> None:
    """Every base file of the golden tables, as parquet-mr wrote it."""
    count = 0
    for name in golden.names():
        with tarfile.open(golden.DIRECTORY / f"{name}.tar.gz") as archive:
            paths = [m for m in archive.getmembers() if m.name.endswith(".parquet") and "/.hoodie/" not in m.name]
            for member in paths:
                data = archive.extractfile(member).read()  # type: ignore[union-attr]
                file = pq.ParquetFile(io.BytesIO(data))
                pages = inflated(data, file.schema_arrow.names)
                if pages is not None and file.metadata.num_rows:
                    count += 1
                    assert opened(pages).read().equals(file.read())
    assert count > 50


def test_the_footer_keeps_its_pairs_except_for_the_bloom_filter() -> None:
    pairs = {FOOTER_KEY: "QUJD" * 50_000, "hoodie_min_record_key": "a", "empty": ""}
    table, sink = rows(50), io.BytesIO()
    with pq.ParquetWriter(sink, table.schema, **PLAIN) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(pairs)
    file = opened(inflated(sink.getvalue(), ["id"]))
    expected = {b"hoodie_min_record_key": b"a", b"empty": b"", FOOTER_KEY.encode(): b""}
    assert file.metadata.metadata == expected
    assert file.read(["id"]).column("id") == table.column("id")


def test_near_chunks_of_a_row_group_are_one_read_of_a_remote_file() -> None:
    data = parquet(rows(3000), row_group_size=1500)
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    stream = RemoteStream(data)
    file = opened(inflated(data, ["id", "city", "number", "tags"], stream))
    for group in range(2):
        list(file.iter_batches(100, [group], ["id", "city", "number", "tags"], use_threads=False))
    expected = []
    for written in (metadata.row_group(place) for place in range(2)):
        chunks = {column.path_in_schema: column for column in map(written.column, range(written.num_columns))}
        first, last = chunks["id"], chunks["tags.list.element"]
        start = first.dictionary_page_offset or first.data_page_offset
        end = (last.dictionary_page_offset or last.data_page_offset) + last.total_compressed_size
        expected.append((start, end - start))
    assert stream.reads == expected


@given(st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 3000)), max_size=20))
def test_any_range_may_be_read_in_any_order(ranges: list[tuple[int, int]]) -> None:
    data = PIECES
    whole = inflated(data, ["id"])
    assert whole is not None
    whole.seek(4)
    content = bytes(whole.read())
    assert len(content) == sum(
        start - at + integer(data, header[SIZE][0])[0] for at, start, _, header in pages_of(data)
    ) + len(header_growth(data))
    pages = inflated(data, ["id"])
    assert pages is not None
    for offset, size in ranges:
        if offset < len(content):
            pages.seek(4 + offset)
            assert pages.read(size) == content[offset : offset + size]
            assert pages.tell() == 4 + min(offset + size, len(content))


PIECES = parquet(rows(500), data_page_size=500, write_batch_size=50)


def header_growth(data: bytes) -> bytes:
    """As many bytes as the headers become longer."""
    grown = 0
    for at, start, _, header in pages_of(data):
        size = integer(data, header[SIZE][0])[0]
        grown += len(with_integers(data, at, start, {header[COMPRESSED_SIZE]: size})) - (start - at)
    return bytes(grown)


def test_other_files_are_left_to_arrow() -> None:
    table = rows(100)
    assert inflated(parquet(table, compression="zstd"), ["id"]) is None
    assert inflated(parquet(table, compression={"id": "zstd", "city": "gzip"}), ["id", "city"]) is None
    assert inflated(parquet(table, compression={"id": "zstd", "city": "gzip"}), ["city"]) is not None
    assert inflated(parquet(table), []) is None


def test_small_files_are_left_to_arrow() -> None:
    data = parquet(rows(100))
    assert inflated(data, rows(0).column_names, bytes_min=len(data)) is None


def test_a_chunk_outside_of_the_file_is_left_to_arrow() -> None:
    data = parquet(rows(100))
    footer = Footer(io.BytesIO(data), len(data)).data
    assert InflatedPages.of(io.BytesIO(data), 50, footer, ["id"], bytes_min=0) is None


def damaged(data: bytes, at: int, start: int, new: dict[Span, int]) -> bytes:
    """The file with other integers, of the same length, in a page's header."""
    header = with_integers(data, at, start, new)
    assert len(header) == start - at
    return data[:at] + header + data[start:]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize(("number", "change"), [(SIZE, 1), (SIZE, -1), (COMPRESSED_SIZE, 1), (COMPRESSED_SIZE, -1)])
def test_a_wrong_size_in_a_header_is_refused(version: str, number: int, change: int) -> None:
    data = parquet(
        rows(3000).select(["id"]), use_dictionary=False, data_page_version=version, write_page_checksum=False
    )
    at, start, _, header = next(pages_of(data))
    wrong = damaged(data, at, start, {header[number]: integer(data, header[number][0])[0] + change})
    with pytest.raises(OSError, match=f"the page at byte {at}"):
        opened(inflated(wrong, ["id"])).read()


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_changed_byte_of_a_header_raises_an_error_of_arrow_or_none(version: str) -> None:
    data = parquet(rows(40).select(["id"]), data_page_version=version, use_dictionary=False)
    at, start, _, _ = next(pages_of(data))
    refused = 0
    for place, byte in itertools.product(range(at, start), range(0, 256, STEP)):
        changed = data[:place] + bytes([byte]) + data[place + 1 :]
        try:
            opened(inflated(changed, ["id"])).read()
        except (OSError, pa.ArrowException):
            refused += 1
    assert refused > 1000 / STEP


@pytest.mark.parametrize(
    ("size", "compressed_size"), [(2**31 - 1, None), (-1, None), (None, 2**31 - 1), (None, -1)], ids=str
)
def test_a_page_that_claims_more_than_its_chunk_has_is_refused_before_it_is_inflated(
    size: int | None, compressed_size: int | None
) -> None:
    data = parquet(rows(3000).select(["id"]), use_dictionary=False)
    at, start, _, header = next(pages_of(data))
    new = {header[SIZE]: size, header[COMPRESSED_SIZE]: compressed_size}
    longer = with_integers(data, at, start, {span: value for span, value in new.items() if value is not None})
    pages = inflated(data[:at] + longer + data[at + len(longer) :], ["id"])
    with pytest.raises(OSError, match="more than its column chunk has"):
        opened(pages).read()


def test_a_bomb_is_not_inflated_beyond_the_size_that_it_claims() -> None:
    """Its page states the 64 bytes that Arrow would allocate, and inflates to a gigabyte."""
    table = pa.table({"id": ["0" * 60]})
    data = parquet(table, use_dictionary=False, write_page_checksum=False, write_statistics=False)
    at, start, after, header = next(pages_of(data))
    bomb = isal_zlib.compress(bytes(1 << 26), 1, 31)
    longer = with_integers(data, at, start, {header[COMPRESSED_SIZE]: len(bomb)}) + bomb
    footer = Footer(io.BytesIO(data), len(data)).data
    group, _ = fields(footer, elements(footer, fields(footer, 0)[0][4][0])[0][0])
    chunk, _ = fields(footer, elements(footer, group[1][0])[0][0])
    column, _ = fields(footer, chunk[3][0])
    footer = with_integers(footer, 0, len(footer), {column[7]: len(longer)})
    pages = InflatedPages.of(io.BytesIO(data[:at] + longer), at + len(longer), footer, ["id"], bytes_min=0)
    with pytest.raises(OSError, match="does not end where it states"):
        opened(pages).read()
    assert after < at + len(longer)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_flipped_bit_of_a_chunk_is_refused_or_changes_nothing(version: str) -> None:
    table = rows(40).select(["id", "city"])
    data = parquet(table, data_page_version=version)
    end = len(data) - 8 - len(Footer(io.BytesIO(data), len(data)).data)
    refused = 0
    for place in range(4, end):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        try:
            reread = opened(inflated(bytes(changed), ["id", "city"])).read()
        except (OSError, pa.ArrowException):
            refused += 1
            continue
        # Some bits of a header mean nothing, such as the bits of its statistics, or are beyond its checksum for Arrow, too.
        if not reread.equals(table):
            assert reread.equals(pq.ParquetFile(io.BytesIO(changed), page_checksum_verification=True).read())
    assert refused > (end - 4) // 2


def test_a_chunk_that_ends_early_is_refused() -> None:
    data = parquet(rows(3000).select(["id"]), use_dictionary=False)
    pages = inflated(data, ["id"], io.BytesIO(data[:3000]))
    with pytest.raises(OSError, match="is not whole"):
        opened(pages).read()


def test_a_damaged_page_is_a_damaged_base_file() -> None:
    schema = json.dumps({"type": "record", "name": "row", "fields": [{"name": "id", "type": ["null", "string"]}]})
    drawn = random.Random(1)
    data = bytearray(
        parquet(pa.table({"id": [drawn.randbytes(20).hex() for _ in range(30_000)]}), use_dictionary=False)
    )
    data[200] ^= 1
    storage = MemoryStorage.from_dump("damaged", {})
    storage.put("base.parquet", bytes(data))
    with pytest.raises(CorruptBaseFileError, match=r"base file base\.parquet cannot be read: the page at byte 4 .*CRC"):
        list(read_base(storage, "base.parquet", table_fields(AvroSchema.of(schema), ["id"])))


def keyed(*, is_nullable: bool, **others: "pa.Array[Any]") -> pa.Table:
    """Keys in the meta column and in their field, as Hudi stores them, and other columns."""
    columns: dict[str, pa.Array[Any]] = {"_hoodie_record_key": pa.array(KEYS), "id": pa.array(KEYS), **others}
    fields_of = [pa.field(name, column.type, is_nullable or name != "id") for name, column in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields_of))


STEP = 1 if IS_PROOF else 5
"""Of the bytes that are tried at each place."""
KEYS = [f"{random.Random(row).randrange(1 << 40):012}" for row in range(3_000)]
IN_PAGES: dict[str, Any] = {"use_dictionary": False, "data_page_size": 8_000, "write_batch_size": 100}


@pytest.fixture
def inflated_sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the pages that are inflated."""
    sizes: list[int] = []
    inflate = inflated_pages.inflated_page

    def noted(body: Any, size: int, *rest: Any) -> Any:
        sizes.append(size)
        return inflate(body, size, *rest)

    monkeypatch.setattr(inflated_pages, "inflated_page", noted)
    return sizes


@pytest.mark.parametrize("is_nullable", [True, False])
def test_keys_are_inflated_once_for_both_columns_that_hold_them(
    *, inflated_sizes: list[int], is_nullable: bool
) -> None:
    table = keyed(is_nullable=is_nullable)
    data = parquet(table, **IN_PAGES)
    batches = opened(inflated(data, table.column_names)).iter_batches(500, use_threads=False)
    assert pa.Table.from_batches(batches, table.schema) == table
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(0)
    assert len(inflated_sizes) > 3
    assert sum(inflated_sizes) <= chunk.total_uncompressed_size  # which has the headers, too


@pytest.mark.parametrize("least_and_greatest", ["same", "other"])
def test_other_values_of_the_same_size_are_inflated(inflated_sizes: list[int], least_and_greatest: str) -> None:
    """Texts as long as the keys. With the same bounds, only the checksum distinguishes them."""
    ends = [min(KEYS), max(KEYS)] if least_and_greatest == "same" else []
    other = [*ends, *(KEYS[::-1])][: len(KEYS)]
    other[-1] = ends[0] if ends else "0" * 12
    table = keyed(is_nullable=True, other=pa.array(other))
    data = parquet(table, **IN_PAGES)
    assert opened(inflated(data, table.column_names)).read() == table
    assert sum(inflated_sizes) > 1.9 * len(KEYS) * 16


def test_a_checksum_alone_does_not_make_a_page_one_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if each page of the same size had the same checksum: the bounds differ."""
    monkeypatch.setattr(inflated_pages, "_end_of", lambda body: (0, inflated_pages._GZIP_END.unpack(body[-8:])[1]))
    monkeypatch.setattr(isal_zlib, "crc32", lambda _: 0)
    table = keyed(is_nullable=True, other=pa.array([key[::-1] for key in KEYS]))
    data = parquet(table, **IN_PAGES, write_page_checksum=False)
    assert opened(inflated(data, table.column_names)).read() == table

"""Base files as Hudi reads and writes them."""

import errno
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.schema import arrow_schema, record_fields, table_fields
from eventide_adapters.format.encoding.parquet import open_file
from eventide_adapters.format.encoding.parquet import output as parquet_output
from eventide_adapters.format.encoding.parquet.bloom_filter import (
    DEFAULT_PARAMETERS,
    BloomFilterBuilder,
    BloomParameters,
)
from eventide_adapters.format.encoding.parquet.inflated_pages import InflatedPages
from eventide_adapters.format.encoding.parquet.thrift_compact import fields
from eventide_adapters.format.slice.base_file.key_range import bloom_filter_in
from eventide_adapters.format.slice.base_file.parquet import (
    BaseFileWriter,
    BaseFooter,
    read_base,
    read_footer,
)
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import (
    ConfigError,
    CorruptBaseFileError,
    MachineResourcesError,
    MissingFileError,
    UnsupportedTableError,
)
from eventide_core.table.schema.avro_schema import META_FIELDS, AvroSchema
from support.files.logs import table_schema

pytestmark = pytest.mark.slow

BLOOM = BloomParameters.for_entries(10, 0.001)
PATH = "part=a/base.parquet"


def avro(**fields: object) -> str:
    listed = [{"name": name, "type": ["null", kind], "default": None} for name, kind in fields.items()]
    return json.dumps({"type": "record", "name": "trip", "namespace": "lake", "fields": listed})


SCHEMA = AvroSchema.of(
    avro(
        id="string",
        price={"type": "fixed", "name": "price", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2},
        at={"type": "long", "logicalType": "timestamp-micros"},
        at_local={"type": "long", "logicalType": "local-timestamp-micros"},
        day={"type": "int", "logicalType": "date"},
        tags={"type": "array", "items": ["null", "string"]},
        counts={"type": "map", "values": ["null", "int"]},
        place={"type": "record", "name": "place", "fields": [{"name": "x", "type": ["null", "int"], "default": None}]},
    )
)


def rows(keys: list[str], schema: str = SCHEMA.text) -> pa.Table:
    values = {
        "_hoodie_commit_time": "20260101000000000",
        "price": Decimal("12.34"),
        "at": datetime(2026, 1, 1, tzinfo=UTC),
        "at_local": datetime(2026, 1, 1),  # noqa: DTZ001  a local timestamp has no zone
        "day": datetime(2026, 1, 1, tzinfo=UTC).date(),
        "tags": ["p", None],
        "counts": [("k", 1)],
        "place": {"x": 1},
    }
    listed = [{**values, "_hoodie_record_key": key, "id": key} for key in keys]
    return pa.Table.from_pylist(listed, schema=arrow_schema(AvroSchema.of(schema).with_meta_fields()))


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> MemoryStorage:
    return MemoryStorage.from_dump(request.node.name, {})


def write(
    storage: MemoryStorage,
    tables: list[pa.Table],
    *,
    codec: str = "gzip",
    bloom: BloomParameters = BLOOM,
    schema: str = SCHEMA.text,
    marks_local_times: bool = True,
) -> int:
    output = storage.open_output(PATH)
    filled = BloomFilterBuilder(bloom)
    writer = BaseFileWriter(
        output, AvroSchema.of(schema), codec=codec, bloom=filled, marks_local_times=marks_local_times
    )
    for table in tables:
        writer.write(table)
    size = writer.close({"eventide.note": "ours"})
    assert output.commit()
    return size


def read_all(storage: MemoryStorage, schema: str = SCHEMA.text) -> list[dict[str, Any]]:
    arrow = arrow_schema(AvroSchema.of(schema).with_meta_fields())
    batches = list(read_base(storage, PATH, table_fields(AvroSchema.of(schema))))
    return pa.Table.from_batches(batches, arrow).to_pylist()


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "uncompressed"])
def test_what_was_written_is_read_again(storage: MemoryStorage, codec: str) -> None:
    table = rows(["b", "a", "c"])
    size = write(storage, [table, rows(["d"])], codec=codec)
    assert size == len(storage.read(PATH))
    assert read_all(storage) == [*table.to_pylist(), *rows(["d"]).to_pylist()]
    column = pq.ParquetFile(io.BytesIO(storage.read(PATH))).metadata.row_group(0).column(0)
    assert column.compression == codec.upper()


def test_an_unknown_codec_is_refused(storage: MemoryStorage) -> None:
    with pytest.raises(ConfigError, match=r"hoodie\.parquet\.compression\.codec='lzo'"):
        BaseFileWriter(storage.open_output(PATH), SCHEMA, codec="lzo", bloom=None)


def test_a_local_timestamp_without_a_mark_is_a_number_as_in_hudi_before_11(storage: MemoryStorage) -> None:
    kind = {"type": "long", "logicalType": "local-timestamp-millis"}
    within = {"type": "record", "name": "within", "fields": [{"name": "all", "type": {"type": "array", "items": kind}}]}
    schema = avro(id="string", ms=kind, times={"type": "map", "values": within})
    moment = datetime(1969, 12, 31, 23, 59, 59, 999_000)  # noqa: DTZ001
    listed: list[dict[str, Any]] = [
        {"_hoodie_record_key": "a", "id": "a", "ms": moment, "times": [("k", {"all": [moment]})]},
        {"_hoodie_record_key": "b", "id": "b"},
    ]
    table = pa.Table.from_pylist(listed, schema=arrow_schema(AvroSchema.of(schema).with_meta_fields()))
    for marks in (True, False):
        storage = MemoryStorage.from_dump(f"local {marks}", {})
        write(storage, [table], schema=schema, marks_local_times=marks)
        assert BaseFooter.read(storage, PATH).marks_local_times(AvroSchema.of(schema)) == marks
        stored = pq.read_table(io.BytesIO(storage.read(PATH)))
        assert pa.types.is_int64(stored.schema.field("ms").type) != marks
        if not marks:
            assert stored.select(["ms", "times"]).to_pylist()[0] == {"ms": -1, "times": [("k", {"all": [-1]})]}
        assert read_all(storage, schema) == table.to_pylist()


def test_columns_have_the_parquet_types_of_hudis_writers(storage: MemoryStorage) -> None:
    write(storage, [rows(["a"])])
    schema = str(pq.ParquetFile(io.BytesIO(storage.read(PATH))).schema)
    assert "optional fixed_len_byte_array(4) field_id=-1 price (Decimal(precision=9, scale=2))" in schema
    assert "optional int64 field_id=-1 at (Timestamp(isAdjustedToUTC=true, timeUnit=microseconds" in schema
    assert "optional int64 field_id=-1 at_local (Timestamp(isAdjustedToUTC=false, timeUnit=micros" in schema
    assert "optional int32 field_id=-1 day (Date)" in schema
    for piece in (
        "tags (List) {\n    repeated group field_id=-1 list {\n      optional binary field_id=-1 element (String)",
        "counts (Map) {\n    repeated group field_id=-1 key_value {\n      required binary field_id=-1 key (String)",
        "optional group field_id=-1 place {\n    optional int32 field_id=-1 x;",
    ):
        assert piece in schema


def test_the_footer_holds_what_an_index_of_hudi_looks_for(storage: MemoryStorage) -> None:
    write(storage, [rows(["k5", "k1"]), rows(["k3"])])
    footer = read_footer(storage, PATH)
    bloom = BloomFilterBuilder(BLOOM)
    bloom.add(pa.array(["k5", "k1", "k3"]))
    assert footer == {
        "org.apache.hudi.bloomfilter": bloom.text().decode(),
        "hoodie_bloom_filter_type_code": "DYNAMIC_V0",
        "hoodie_min_record_key": "k1",
        "hoodie_max_record_key": "k5",
        "parquet.avro.schema": SCHEMA.with_meta_fields().text,
        "writer.model.name": "avro",
        "org.apache.spark.version": "3.3.0",
        "eventide.note": "ours",
    }
    earlier = bloom_filter_in(BaseFooter.read(storage, PATH).pairs, PATH)
    assert earlier is not None
    assert (earlier.parameters, earlier.key_count) == (BLOOM, 3)


def test_a_simple_filter_has_no_type_code_as_hudi_leaves_it(storage: MemoryStorage) -> None:
    simple = BloomParameters.for_entries(100, 0.001, "SIMPLE")
    write(storage, [rows(["k"])], bloom=simple)
    footer = BaseFooter.read(storage, PATH)
    assert b"hoodie_bloom_filter_type_code" not in footer.pairs
    bloom = bloom_filter_in(footer.pairs, PATH)
    assert bloom is not None
    assert (bloom.parameters.type_code, bloom.key_count) == ("SIMPLE", None)


def test_a_column_whose_values_hardly_repeat_has_no_dictionary(storage: MemoryStorage) -> None:
    price = {"name": "price", "type": ["null", "double"], "default": None}
    item = {"type": "record", "name": "item", "fields": [{"name": "sku", "type": ["null", "string"]}, price]}
    schema = avro(
        id="string", city="string", items={"type": "array", "items": item}, tags={"type": "map", "values": "long"}
    )
    listed = [
        {
            "_hoodie_commit_time": "1",
            "_hoodie_record_key": str(number),
            "id": str(number),
            "city": f"city {number % 50}",
            "items": [{"sku": f"sku {number % 9}", "price": float(number)}],
            "tags": [("a", number), ("b", 0 if number % 3 else 1), ("c", 2)],
        }
        for number in range(3000)
    ]
    write(
        storage,
        [pa.Table.from_pylist(listed, schema=arrow_schema(AvroSchema.of(schema).with_meta_fields()))],
        schema=schema,
    )
    group = pq.ParquetFile(io.BytesIO(storage.read(PATH))).metadata.row_group(0)
    columns = [group.column(place) for place in range(group.num_columns)]
    plain = {column.path_in_schema for column in columns if not column.has_dictionary_page}
    assert plain == {"_hoodie_record_key", "_hoodie_commit_seqno", "id", "items.list.element.price"}
    assert sorted(read_all(storage, schema), key=lambda row: int(row["id"])) == [
        {**dict.fromkeys(row), **row} | {name: None for name in META_FIELDS if name not in row} for row in listed
    ]


def test_a_file_without_records_is_whole_and_has_no_key_range(storage: MemoryStorage) -> None:
    write(storage, [rows([])])
    assert read_all(storage) == []
    assert not {"hoodie_min_record_key", "hoodie_max_record_key"} & set(read_footer(storage, PATH))


def test_the_key_range_is_in_javas_order_of_strings(storage: MemoryStorage) -> None:
    """In UTF-16 a character beyond 16 bits begins with 0xD8 to 0xDB, below U+FFFD; in UTF-8 it is the greater."""
    write(storage, [rows(["\U0001f600"]), rows(["\ufffd", "z"])])
    footer = read_footer(storage, PATH)
    assert (footer["hoodie_min_record_key"], footer["hoodie_max_record_key"]) == ("z", "\ufffd")


def test_row_groups_end_at_a_million_records(storage: MemoryStorage) -> None:
    schema = avro(id="string")
    keys = pa.array([f"{i:07}" for i in range(700_000)])
    nulls = pa.nulls(len(keys), pa.string())
    table = pa.Table.from_arrays(
        [nulls, nulls, keys, nulls, nulls, keys], schema=arrow_schema(AvroSchema.of(schema).with_meta_fields())
    )
    write(storage, [table, table, table], codec="snappy", bloom=DEFAULT_PARAMETERS, schema=schema)
    metadata = pq.ParquetFile(io.BytesIO(storage.read(PATH))).metadata
    groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    assert sum(groups) == 2_100_000
    assert max(groups) <= 1 << 20


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_one_large_table_becomes_several_row_groups(
    codec: str, storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rows([f"{number:05}" for number in range(20_000)])
    monkeypatch.setattr(parquet_output, "ROW_GROUP_BYTES", table.nbytes // 6)
    write(storage, [table], codec=codec, bloom=DEFAULT_PARAMETERS)
    metadata = pq.ParquetFile(io.BytesIO(storage.read(PATH))).metadata
    assert [metadata.row_group(place).num_rows for place in range(metadata.num_row_groups)] == [4000] * 5
    assert [row["_hoodie_record_key"] for row in read_all(storage)] == table.column("_hoodie_record_key").to_pylist()


def test_wide_rows_come_in_smaller_batches(storage: MemoryStorage) -> None:
    """A row group of 60 MB, as Hudi's writers make them."""
    schema, count, width = avro(id="string", note="string"), 12_000, 5000
    columns: dict[str, Any] = {
        "_hoodie_record_key": [str(number) for number in range(count)],
        "note": [f"{number:0{width}}" for number in range(count)],
    }
    fields = arrow_schema(AvroSchema.of(schema).with_meta_fields())
    arrays = [pa.array(columns.get(field.name, [None] * count), field.type) for field in fields]
    file = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=fields), file, use_dictionary=False, store_schema=False)
    storage.put(PATH, file.getvalue())
    sizes = [len(batch) for batch in read_base(storage, PATH, table_fields(AvroSchema.of(schema)))]
    assert sum(sizes) == count
    assert 20 << 20 < max(sizes) * width <= 28 << 20


def test_only_the_asked_columns_are_read(storage: MemoryStorage) -> None:
    write(storage, [rows(["a"])])
    (batch,) = read_base(storage, PATH, table_fields(SCHEMA, ("id",)))
    assert batch.schema == pa.schema([("id", pa.string())])


def test_a_column_that_the_file_lacks_is_null_and_a_narrower_one_is_widened(storage: MemoryStorage) -> None:
    old = avro(id="string", n="int", r={"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}]})
    new = avro(
        id="string",
        n="long",
        r={
            "type": "record",
            "name": "r",
            "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": ["null", "int"]}],
        },
        extra={"type": "array", "items": "string"},
    )
    arrow = arrow_schema(AvroSchema.of(old).with_meta_fields())
    table = pa.Table.from_pylist([{"_hoodie_record_key": "a", "id": "a", "n": 1, "r": {"x": 2}}], schema=arrow)
    write(storage, [table], schema=old)
    (row,) = read_all(storage, new)
    assert (row["n"], row["r"], row["extra"]) == (1, {"x": 2, "y": None}, None)


@pytest.mark.parametrize("codec", ["gzip", "zstd", "snappy", "brotli", "lz4", "none"])
def test_every_codec_of_parquet_is_read_and_one_that_we_write_is_kept(
    storage: MemoryStorage, codec: Literal["gzip", "zstd", "snappy", "brotli", "lz4", "none"]
) -> None:
    sink = io.BytesIO()
    pq.write_table(rows(["a", "b"]), sink, compression=codec)
    storage.put(PATH, sink.getvalue())
    assert [row["id"] for row in read_all(storage)] == ["a", "b"]
    kept = {"none": "uncompressed", "brotli": "gzip", "lz4": "gzip"}
    assert BaseFooter.read(storage, PATH).codec == kept.get(codec, codec)


@pytest.mark.parametrize("element", ["array", "element", "bag"])
def test_lists_are_read_under_any_name_of_their_element(storage: MemoryStorage, element: str) -> None:
    kind = pa.list_(pa.field(element, pa.string()))
    table = pa.table({"_hoodie_record_key": ["a"], "tags": pa.array([["p", None]], kind)})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_compliant_nested_type=False, store_schema=False)
    storage.put(PATH, sink.getvalue())
    assert read_all(storage, avro(tags={"type": "array", "items": ["null", "string"]}))[0]["tags"] == ["p", None]


def test_int96_timestamps_are_read(storage: MemoryStorage) -> None:
    far = datetime(2500, 1, 1, tzinfo=UTC)  # beyond what 64 bits of nanoseconds hold
    table = pa.table({"_hoodie_record_key": ["a"], "at": pa.array([far], pa.timestamp("us", "UTC"))})
    sink = io.BytesIO()
    pq.write_table(table, sink, use_deprecated_int96_timestamps=True, store_schema=False)
    storage.put(PATH, sink.getvalue())
    assert read_all(storage, avro(at={"type": "long", "logicalType": "timestamp-micros"}))[0]["at"] == far


def test_a_column_of_another_type_is_refused(storage: MemoryStorage) -> None:
    write(storage, [rows(["a"])])
    with pytest.raises(UnsupportedTableError, match=r"base file .*: field tags was written as list.*int64"):
        read_all(storage, avro(tags="long"))


def test_a_null_where_the_schema_has_none_is_refused(storage: MemoryStorage) -> None:
    write(storage, [rows(["a"])])
    never_null = table_schema({"name": "_hoodie_file_name", "type": "string"})
    with pytest.raises(CorruptBaseFileError, match="field _hoodie_file_name is null"):
        list(read_base(storage, PATH, record_fields(AvroSchema.of(never_null))))


@pytest.mark.parametrize("keep", [0, 3, 100, -1])
def test_a_torn_file_is_distinguished_from_a_missing_one(storage: MemoryStorage, keep: int) -> None:
    write(storage, [rows(["a"])])
    storage.put(PATH, storage.read(PATH)[:keep])
    with pytest.raises(CorruptBaseFileError, match=PATH):
        read_all(storage)
    with pytest.raises(MissingFileError):
        list(read_base(storage, "part=a/other.parquet", table_fields(SCHEMA)))


def test_a_torn_page_is_corrupt_too(storage: MemoryStorage) -> None:
    write(storage, [rows([f"{i}" for i in range(1000)])])
    data = bytearray(storage.read(PATH))
    data[4:400] = bytes(396)
    storage.put(PATH, bytes(data))
    with pytest.raises(CorruptBaseFileError, match=PATH):
        read_all(storage)


def test_a_row_group_torn_behind_a_whole_one_is_reported_when_its_rows_are_asked_for(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_output, "ROW_GROUP_ROWS_MAX", 1)
    write(storage, [rows(["a"]), rows(["b"])])
    data = bytearray(storage.read(PATH))
    metadata = pq.ParquetFile(io.BytesIO(data)).metadata
    assert metadata.num_row_groups == 2
    start = metadata.row_group(1).column(0).dictionary_page_offset
    assert start is not None
    data[start : start + 40] = bytes(40)
    storage.put(PATH, bytes(data))
    batches = read_base(storage, PATH, table_fields(SCHEMA, ("_hoodie_commit_time", "id")))
    assert next(batches).column("id").to_pylist() == ["a"]
    with pytest.raises(CorruptBaseFileError, match=PATH):
        next(batches)


@pytest.mark.parametrize(
    "lack",
    [
        pa.ArrowMemoryError("malloc of size 64 failed"),
        OSError(errno.EMFILE, "Too many open files"),
        OSError("Resource temporarily unavailable"),
        RuntimeError("can't start new thread"),
    ],
    ids=["memory", "open files", "threads of Arrow", "threads of Python"],
)
def test_a_machine_without_resources_is_no_damage_of_the_file(
    lack: Exception, storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(storage, [rows(["k"])])

    def fail(*_: object, **__: object) -> None:
        raise lack

    with monkeypatch.context() as patched:
        patched.setattr(open_file, "OpenBaseFile", fail)
        with pytest.raises(MachineResourcesError, match="run the same command again") as raised:
            list(read_base(storage, PATH, table_fields(SCHEMA)))
    assert raised.value.exit_code == 5
    assert len(list(read_base(storage, PATH, table_fields(SCHEMA)))) == 1


def test_a_flipped_bit_in_a_page_is_refused_by_its_checksum(storage: MemoryStorage) -> None:
    write(storage, [rows(["one", "two"])], codec="uncompressed")
    data, refused = storage.read(PATH), 0
    sound = list(read_base(storage, PATH, table_fields(SCHEMA)))
    for match in re.finditer(
        b"one", data
    ):  # in pages, and in the statistics of their headers, which no checksum covers
        changed = bytearray(data)
        changed[match.start()] ^= 1  # `nne`, as good a text
        storage.put(PATH, bytes(changed))
        try:
            assert list(read_base(storage, PATH, table_fields(SCHEMA))) == sound
        except CorruptBaseFileError as error:
            refused += "CRC" in str(error)
    assert refused == 2, "the record key, and the column that it is made of"


@pytest.mark.parametrize("codec", ["gzip", "snappy"])
@pytest.mark.parametrize("columns", [("_hoodie_record_key",), ("tags",), ("_hoodie_record_key", "id")], ids=str)
def test_a_page_of_unknown_type_is_corrupt(
    storage: MemoryStorage, codec: str, columns: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow skips it, and says nothing of the rows that are missing: not even where a header of one page is damaged."""
    monkeypatch.setattr(InflatedPages, "of", partial(InflatedPages.of, bytes_min=0))
    write(storage, [rows([f"{i}" for i in range(100)])], codec=codec)
    data = storage.read(PATH)
    group = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0)
    chunks = (group.column(place) for place in range(group.num_columns))
    (at,) = (c.data_page_offset for c in chunks if c.path_in_schema.split(".")[0] == columns[0])
    header, _ = fields(data, at)
    begin, end = header[1]
    storage.put(PATH, data[:begin] + b"\x20" + data[end:])  # type 16
    with pytest.raises(CorruptBaseFileError, match=f"base file {PATH} cannot be read: it has 0 rows.* states 100"):
        list(read_base(storage, PATH, table_fields(SCHEMA, columns)))


def test_a_footer_with_other_numbers_of_rows_is_corrupt(storage: MemoryStorage) -> None:
    write(storage, [rows([f"{i}" for i in range(10)])])
    data = storage.read(PATH)
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    begin, end = fields(data, start)[0][3]
    storage.put(PATH, data[:begin] + b"\x16" + data[end:])  # 11 rows
    with pytest.raises(CorruptBaseFileError, match="it has 10 rows, and its footer states 11"):
        list(read_base(storage, PATH, table_fields(SCHEMA)))


@pytest.mark.parametrize("name", ["tags", "place"])
def test_a_column_that_only_the_footers_avro_schema_has_is_damage(storage: MemoryStorage, name: str) -> None:
    """One flipped bit gives it another name. It would be null in every row, as a column that is newer than the file."""
    write(storage, [rows(["a"])])
    data = storage.read(PATH)
    at = data.index(name.encode(), len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    storage.put(PATH, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert list(read_base(storage, PATH, table_fields(SCHEMA, ["id"])))
    with pytest.raises(
        CorruptBaseFileError, match=f"base file {PATH} .* states the column {name}, which it does not have"
    ):
        list(read_base(storage, PATH, table_fields(SCHEMA)))

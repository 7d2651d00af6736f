"""Avro data blocks: fastavro's values for every type, vectorised or not, and an error for bytes that do not fit."""

import io
import json
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.decode import avro_record_bounds, iter_avro_block
from eventide_adapters.format.encoding.avro.records import decode_records
from eventide_adapters.format.encoding.avro.schema import AvroField, arrow_schema, record_fields
from eventide_adapters.format.encoding.avro.vectors import decode_vectors
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.logs import avro_content, table_schema
from support.values.avro_types import DECIMALS, FLAT, TEXT, TypedValues, avro_types, logical

pytestmark = pytest.mark.slow

_NESTED: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "array": ({"type": "array", "items": ["null", "long"]}, st.lists(st.none() | st.integers(-9, 1 << 40), max_size=4)),
    "map": ({"type": "map", "values": "string"}, st.dictionaries(TEXT, TEXT, max_size=3)),
    "record": (
        {
            "type": "record",
            "name": "Place",
            "fields": [{"name": "name", "type": ["null", "string"]}, {"name": "day", "type": logical("int", "date")}],
        },
        st.fixed_dictionaries({"name": st.none() | TEXT, "day": st.dates()}),
    ),
    "arrays": (
        {"type": "array", "items": {"type": "array", "items": logical("bytes", "decimal", precision=10, scale=2)}},
        st.lists(st.lists(DECIMALS, max_size=3), max_size=3),
    ),
    "widened": (["int", "long"], st.integers(-(1 << 40), 1 << 40)),
}


def _column(schema: str, records: list[Any]) -> list[Any]:
    """The column `x` as fastavro reads it."""
    content = avro_content(schema, records)
    parsed, position, values = fastavro.parse_schema(json.loads(schema)), 8, []
    for _ in records:
        (length,) = struct.unpack_from(">i", content, position)
        record: Any = fastavro.schemaless_reader(
            io.BytesIO(content[position + 4 : position + 4 + length]), parsed, None
        )
        values.append(str(record["x"]) if "uuid" in schema and record["x"] is not None else record["x"])
        position += 4 + length
    return values


def _batches(content: bytes, schema: str, target: Sequence[AvroField], place: str) -> Iterator[pa.RecordBatch]:
    return iter_avro_block(
        lambda offset, length: content[offset : offset + length], len(content), AvroSchema.of(schema), target, place
    )


def _read(content: bytes, schema: str, target: Sequence[AvroField], place: str) -> pa.Table:
    return pa.Table.from_batches(_batches(content, schema, target, place)).combine_chunks()


def _decode(schema: str, records: list[Any]) -> pa.Table:
    return _read(avro_content(schema, records), schema, record_fields(AvroSchema.of(schema)), "block")


def _pylist(column: Any) -> list[Any]:
    if isinstance(column.type, pa.MapType):
        return [None if value is None else dict(value) for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


@pytest.mark.parametrize("name", [*FLAT, *_NESTED])
@settings(max_examples=30)
@given(data=st.data())
def test_every_type_reads_as_fastavro_reads_it(name: str, data: st.DataObject) -> None:
    avro, values = {**FLAT, **_NESTED}[name]
    branches = avro if isinstance(avro, list) else [avro]
    nullable = data.draw(st.sampled_from(["never null", "null first", "null last"]))
    if nullable != "never null" and name != "null":
        avro = ["null", *branches] if nullable == "null first" else [*branches, "null"]
        values = st.none() | values
    # Neighbours on both sides: a cursor that stops in the wrong place reads them wrongly.
    schema = table_schema(
        {"name": "a", "type": "long"}, {"name": "x", "type": avro}, {"name": "z", "type": ["null", "string"]}
    )
    rows = data.draw(st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), values, st.none() | TEXT), max_size=12))
    records = [{"a": a, "x": x, "z": z} for a, x, z in rows]
    batch = _decode(schema, records)
    batch.validate(full=True)
    assert batch.schema == arrow_schema(AvroSchema.of(schema))
    assert _pylist(batch.column("x")) == _column(schema, records)
    assert batch.column("a").to_pylist() == [a for a, _, _ in rows]
    assert batch.column("z").to_pylist() == [z for _, _, z in rows]


@settings(max_examples=150)
@given(typed=avro_types(), data=st.data())
def test_types_of_any_depth_come_out_of_both_decoders_alike(typed: TypedValues, data: st.DataObject) -> None:
    schema = table_schema({"name": "x", "type": typed.avro}, {"name": "z", "type": "int"})
    records = [{"x": x, "z": 7} for x in data.draw(st.lists(typed.values, max_size=12))]
    content = avro_content(schema, records)
    begins, ends = avro_record_bounds(content, "block")
    fields = record_fields(AvroSchema.of(schema))
    columns = decode_vectors(content, begins, ends, fields, {"x", "z"})
    for column in columns.values():
        column.validate(full=True)
    assert columns == decode_records(content, begins, ends, fields, {"x", "z"})
    assert set(decode_vectors(content, begins, ends, fields, {"z"})) == {"z"}


def test_a_value_of_a_wide_union_stands_in_the_member_of_its_branch() -> None:
    schema = table_schema({"name": "x", "type": ["int", "null", "string", {"type": "array", "items": "long"}]})
    batch = _decode(schema, [{"x": 1}, {"x": "one"}, {"x": None}, {"x": [1, 2]}])
    empty = dict.fromkeys(("member0", "member1", "member2"))
    assert batch.column("x").to_pylist() == [
        {**empty, "member0": 1},
        {**empty, "member1": "one"},
        None,
        {**empty, "member2": [1, 2]},
    ]


def test_a_union_of_one_type_still_has_the_number_of_its_branch() -> None:
    schema = table_schema({"name": "x", "type": ["string"]}, {"name": "y", "type": "long"})
    assert _decode(schema, [{"x": "a", "y": 5}]).to_pylist() == [{"x": "a", "y": 5}]


def test_records_go_over_the_border_of_a_chunk() -> None:
    schema = table_schema({"name": "x", "type": ["null", "long"]}, {"name": "s", "type": "string"})
    records = [{"x": None if n % 7 == 0 else n * 977, "s": "é" * (n % 90)} for n in range(20_000)]
    assert _decode(schema, records).to_pylist() == records


def test_only_the_wanted_columns_come_out_in_the_wanted_order() -> None:
    schema = table_schema(*({"name": name, "type": "long"} for name in "abc"))
    target = record_fields(AvroSchema.of(table_schema(*({"name": name, "type": "long"} for name in "ca"))))
    batch = _read(avro_content(schema, [{"a": 1, "b": 2, "c": 3}]), schema, target, "block")
    assert batch.to_pydict() == {"c": [3], "a": [1]}


def test_equal_strings_of_two_columns_are_in_memory_once() -> None:
    names = ["_hoodie_record_key", "id", "other", "number"]
    schema = table_schema(
        *({"name": name, "type": ["null", "string"]} for name in names[:3]), {"name": "number", "type": "int"}
    )
    records = [dict.fromkeys(names[:2], f"k{n}") | {"other": f"k{n - n % 2}", "number": n} for n in range(20)]
    (batch,) = _batches(avro_content(schema, records), schema, record_fields(AvroSchema.of(schema)), "block")
    assert batch.to_pylist() == records
    buffers: list[Any] = [batch.column(name).buffers()[2] for name in names[:3]]
    key, field, other = buffers
    assert key.address == field.address != other.address


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_three_versions_are_written_alike(version: int) -> None:
    schema = table_schema({"name": "x", "type": "long"})
    content = avro_content(schema, [{"x": 5}], version=version)
    assert _read(content, schema, record_fields(AvroSchema.of(schema)), "block").to_pylist() == [{"x": 5}]


@pytest.mark.parametrize("version", [0, 4, -1])
def test_other_versions_are_refused(version: int) -> None:
    schema = table_schema({"name": "x", "type": "long"})
    with pytest.raises(UnsupportedLogFormatError, match=f"version {version}"):
        _read(avro_content(schema, [], version=version), schema, record_fields(AvroSchema.of(schema)), "block")


class TestBytesThatDoNotFit:
    SCHEMA = table_schema(
        {"name": "flag", "type": "boolean"},
        {"name": "n", "type": ["null", "int"]},
        {"name": "s", "type": "string"},
        {"name": "e", "type": {"type": "enum", "name": "e", "symbols": ["A"]}},
        {"name": "f", "type": ["null", "double"]},
    )

    def _block(self, *records: bytes) -> bytes:
        return struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(r)) + r for r in records)

    def _refuses(self, content: bytes, schema: str | None = None) -> None:
        schema = schema or self.SCHEMA
        with pytest.raises(RecordDecodeError, match="block 7"):
            _read(content, schema, record_fields(AvroSchema.of(schema)), "block 7")

    def test_the_record_that_the_others_spoil_is_right(self) -> None:
        good = self._block(b"\x01\x02\x08\x02a\x00\x00")
        assert _read(good, self.SCHEMA, record_fields(AvroSchema.of(self.SCHEMA)), "block").to_pylist() == [
            {"flag": True, "n": 4, "s": "a", "e": "A", "f": None}
        ]

    @pytest.mark.parametrize(
        "record",
        [
            pytest.param(b"\x01\x02\x08\x02a\x00\x00\x00", id="a byte too many"),
            pytest.param(b"\x01\x02\x08\x02a\x00", id="a byte too few"),
            pytest.param(b"\x01\x02\x08\x02a\x00\x02\x00\x00", id="a double cut short"),
            pytest.param(b"\x02\x02\x08\x02a\x00\x00", id="a boolean of 2"),
            pytest.param(b"\x01\x04\x08\x02a\x00\x00", id="a third branch of two"),
            pytest.param(b"\x01\x01\x08\x02a\x00\x00", id="a negative branch"),
            pytest.param(b"\x01\x02\x80\x80\x80\x80\x20\x02a\x00\x00", id="an int of 33 bits"),
            pytest.param(b"\x01\x02\x08\x01\x00\x00", id="a text of negative length"),
            pytest.param(b"\x01\x02\x08\x04a\x00\x00", id="a text over the end of its record"),
            pytest.param(
                b"\x01\x02\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01a\x00\x00", id="a text of 2^63 - 1 bytes"
            ),
            pytest.param(b"\x01\x02\x08" + b"\xff" * 10 + b"\x01a\x00\x00", id="a number of 71 bits"),
            pytest.param(b"\x01\x02\x08\x02\xff\x00\x00", id="a text that isn't UTF-8"),
            pytest.param(b"\x01\x02\x08\x02a\x02\x00", id="an enum without that symbol"),
            pytest.param(b"", id="nothing"),
        ],
    )
    def test_a_record_that_does_not_fit_the_schema_is_reported(self, record: bytes) -> None:
        good = b"\x01\x02\x08\x02a\x00\x00"
        self._refuses(self._block(record))
        self._refuses(self._block(good, record, good))

    @pytest.mark.parametrize(
        "content",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(struct.pack(">ii", 3, 1), id="a record missing"),
            pytest.param(struct.pack(">ii", 3, -1), id="a negative count"),
            pytest.param(struct.pack(">ii", 3, 2**31 - 1) + b"\x00" * 64, id="a count of two thousand millions"),
            pytest.param(struct.pack(">iii", 3, 1, -5), id="a negative length"),
            pytest.param(struct.pack(">iii", 3, 1, 2**31 - 1) + b"\x00" * 9, id="a length over the end"),
            pytest.param(struct.pack(">ii", 3, 0) + b"\x00", id="a byte after the last record"),
        ],
    )
    def test_lengths_that_do_not_add_up_are_reported(self, content: bytes) -> None:
        self._refuses(content)

    @settings(max_examples=200)
    @given(st.lists(st.binary(max_size=24), max_size=5))
    def test_no_bytes_lead_to_anything_but_rows_or_the_error(self, records: list[bytes]) -> None:
        try:
            batch = _read(self._block(*records), self.SCHEMA, record_fields(AvroSchema.of(self.SCHEMA)), "block")
        except RecordDecodeError:
            return
        batch.validate(full=True)
        assert batch.num_rows == len(records)

    def test_a_decimal_over_its_precision_is_reported(self) -> None:
        schema = table_schema({"name": "x", "type": logical("bytes", "decimal", precision=3, scale=1)})
        self._refuses(self._block(b"\x04\x27\x10"), schema)

    def test_a_nested_record_that_does_not_fit_is_reported(self) -> None:
        schema = table_schema({"name": "x", "type": {"type": "array", "items": "long"}})
        for record in (b"\x02\x02", b"\x02\x02\x00\x00", b"\xfe\xff\xff\xff\x0f\x02\x00"):
            self._refuses(self._block(record), schema)


class TestCollectionsThatStepsDoNotSuit:
    SCHEMA = table_schema({"name": "x", "type": {"type": "array", "items": "long"}}, {"name": "z", "type": "string"})

    def _rows(self, *records: bytes) -> list[Any]:
        content = struct.pack(">ii", 3, len(records)) + b"".join(struct.pack(">i", len(r)) + r for r in records)
        return _read(content, self.SCHEMA, record_fields(AvroSchema.of(self.SCHEMA)), "block 7").to_pylist()

    @pytest.mark.parametrize(
        "items",
        [
            pytest.param(b"\x04\x02\x04\x02\x06\x00", id="two and one"),
            pytest.param(b"\x03\x04\x02\x04\x02\x06\x00", id="two with their size in bytes, and one"),
            pytest.param(b"\x05\x06\x02\x04\x06\x00", id="three with their size in bytes"),
        ],
    )
    def test_an_array_in_several_blocks_has_the_items_of_all(self, items: bytes) -> None:
        assert self._rows(b"\x00\x02a", items + b"\x02b") == [{"x": [], "z": "a"}, {"x": [1, 2, 3], "z": "b"}]

    def test_one_array_may_be_far_longer_than_the_others(self) -> None:
        records = [{"x": list(range(n)), "z": "z"} for n in (0, 3, 5000, 1)]
        assert _decode(self.SCHEMA, records).to_pylist() == records

    def test_long_arrays_in_all_records_keep_their_order(self) -> None:
        records = [{"x": list(range(n, n + 100 + n % 3)), "z": "z"} for n in range(50)]
        assert _decode(self.SCHEMA, records).to_pylist() == records

    @pytest.mark.parametrize("count", [b"\x80\x01", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x02"])
    def test_a_count_over_the_end_of_its_record_is_reported(self, count: bytes) -> None:
        with pytest.raises(RecordDecodeError, match="block 7"):
            self._rows(count + b"\x02\x00")


@pytest.mark.parametrize("items", [{"type": "record", "name": "r", "fields": [{"name": "n", "type": "null"}]}, "null"])
def test_items_that_take_no_bytes_are_refused(items: Any) -> None:
    with pytest.raises(UnsupportedTableError, match="an Avro array of nulls"):
        record_fields(AvroSchema.of(table_schema({"name": "x", "type": {"type": "array", "items": items}})))

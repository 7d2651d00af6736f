"""Avro data blocks: fastavro's values for every type, vectorised or not, and an error for bytes that do not fit."""

from __future__ import annotations

import datetime as dt
import io
import json
import struct
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.avro_decode import decode_avro_block
from eventide_adapters.format.avro_records import decode_records
from eventide_adapters.format.avro_schema import arrow_schema, record_fields
from eventide_adapters.format.avro_vectors import decode_vectors, is_flat
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError
from support.log_files import avro_content, table_schema

_UTC = dt.UTC


def _timestamps(step: str) -> st.SearchStrategy[dt.datetime]:
    least = dt.timedelta(**{step: 1})
    epoch = dt.datetime(1970, 1, 1, tzinfo=_UTC)
    return st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30)).map(  # noqa: DTZ001
        lambda moment: epoch + ((moment.replace(tzinfo=_UTC) - epoch) // least) * least
    )


def _local(step: str) -> st.SearchStrategy[dt.datetime]:
    return _timestamps(step).map(lambda moment: moment.replace(tzinfo=None))


def _logical(plain: str, logical: str, **more: Any) -> dict[str, Any]:
    return {"type": plain, "logicalType": logical, **more}


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_DECIMALS = st.decimals(min_value=-(10**7), max_value=10**7, places=2)
_WIDE_DECIMALS = st.integers(-(10**38) + 1, 10**38 - 1).map(
    lambda digits: Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -18))
)
_TYPES: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "null": ("null", st.none()),
    "boolean": ("boolean", st.booleans()),
    "int": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": ("long", st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-100, 100))),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "string": ("string", _TEXT),
    "bytes": ("bytes", st.binary(max_size=200)),
    "fixed": ({"type": "fixed", "name": "f", "size": 37}, st.binary(min_size=37, max_size=37)),
    "enum": ({"type": "enum", "name": "e", "symbols": ["RED", "GREEN"]}, st.sampled_from(["RED", "GREEN"])),
    "date": (_logical("int", "date"), st.dates()),
    "time_millis": (
        _logical("int", "time-millis"),
        st.times().map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    ),
    "time_micros": (_logical("long", "time-micros"), st.times()),
    "timestamp_millis": (_logical("long", "timestamp-millis"), _timestamps("milliseconds")),
    "timestamp_micros": (_logical("long", "timestamp-micros"), _timestamps("microseconds")),
    "local_millis": (_logical("long", "local-timestamp-millis"), _local("milliseconds")),
    "local_micros": (_logical("long", "local-timestamp-micros"), _local("microseconds")),
    "decimal_bytes": (_logical("bytes", "decimal", precision=10, scale=2), _DECIMALS),
    "decimal_fixed": (_logical("fixed", "decimal", precision=10, scale=2, name="d", size=5), _DECIMALS),
    "decimal_wide": (_logical("fixed", "decimal", precision=38, scale=18, name="w", size=16), _WIDE_DECIMALS),
    "uuid": (_logical("string", "uuid"), st.uuids().map(str)),
}
_NESTED: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "array": ({"type": "array", "items": ["null", "long"]}, st.lists(st.none() | st.integers(-9, 1 << 40), max_size=4)),
    "map": ({"type": "map", "values": "string"}, st.dictionaries(_TEXT, _TEXT, max_size=3)),
    "record": (
        {
            "type": "record",
            "name": "Place",
            "fields": [{"name": "name", "type": ["null", "string"]}, {"name": "day", "type": _logical("int", "date")}],
        },
        st.fixed_dictionaries({"name": st.none() | _TEXT, "day": st.dates()}),
    ),
    "arrays": (
        {"type": "array", "items": {"type": "array", "items": _logical("bytes", "decimal", precision=10, scale=2)}},
        st.lists(st.lists(_DECIMALS, max_size=3), max_size=3),
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


def _decode(schema: str, records: list[Any]) -> pa.RecordBatch:
    return decode_avro_block(avro_content(schema, records), schema, arrow_schema(schema), "block")


def _pylist(column: Any) -> list[Any]:
    if isinstance(column.type, pa.MapType):
        return [None if value is None else dict(value) for value in column.to_pylist()]
    values: list[Any] = column.to_pylist()
    return values


@pytest.mark.parametrize("name", [*_TYPES, *_NESTED])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_every_type_reads_as_fastavro_reads_it(name: str, data: st.DataObject) -> None:
    avro, values = {**_TYPES, **_NESTED}[name]
    branches = avro if isinstance(avro, list) else [avro]
    nullable = data.draw(st.sampled_from(["never null", "null first", "null last"]))
    if nullable != "never null" and name != "null":
        avro = ["null", *branches] if nullable == "null first" else [*branches, "null"]
        values = st.none() | values
    # Neighbours on both sides: a cursor that stops in the wrong place reads them wrongly.
    schema = table_schema(
        {"name": "a", "type": "long"}, {"name": "x", "type": avro}, {"name": "z", "type": ["null", "string"]}
    )
    rows = data.draw(st.lists(st.tuples(st.integers(-(1 << 40), 1 << 40), values, st.none() | _TEXT), max_size=12))
    records = [{"a": a, "x": x, "z": z} for a, x, z in rows]
    batch = _decode(schema, records)
    batch.validate(full=True)
    assert batch.schema == arrow_schema(schema)
    assert _pylist(batch.column("x")) == _column(schema, records)
    assert batch.column("a").to_pylist() == [a for a, _, _ in rows]
    assert batch.column("z").to_pylist() == [z for _, _, z in rows]


@pytest.mark.parametrize("name", _TYPES)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_both_decoders_give_the_same_columns(name: str, data: st.DataObject) -> None:
    avro, values = _TYPES[name]
    schema = table_schema(
        {"name": "x", "type": avro if name == "null" else [avro, "null"]}, {"name": "z", "type": "int"}
    )
    records = [{"x": x, "z": 7} for x in data.draw(st.lists(st.none() | values, max_size=12))]
    content = avro_content(schema, records)
    starts, position = [], 8
    for _ in records:
        (length,) = struct.unpack_from(">i", content, position)
        starts.append((position + 4, position + 4 + length))
        position += 4 + length
    begins, ends = np.array(starts, np.int64).reshape(-1, 2).T
    fields = record_fields(schema)
    assert is_flat(fields)
    assert decode_vectors(content, begins, ends, fields, {"x"}) == decode_records(content, begins, ends, fields, {"x"})


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


def test_a_union_of_one_type_still_bears_the_number_of_its_branch() -> None:
    schema = table_schema({"name": "x", "type": ["string"]}, {"name": "y", "type": "long"})
    assert _decode(schema, [{"x": "a", "y": 5}]).to_pylist() == [{"x": "a", "y": 5}]


def test_records_go_over_the_border_of_a_chunk() -> None:
    schema = table_schema({"name": "x", "type": ["null", "long"]}, {"name": "s", "type": "string"})
    records = [{"x": None if n % 7 == 0 else n * 977, "s": "é" * (n % 90)} for n in range(20_000)]
    assert _decode(schema, records).to_pylist() == records


def test_only_the_wanted_columns_come_out_in_the_wanted_order() -> None:
    schema = table_schema(*({"name": name, "type": "long"} for name in "abc"))
    target = pa.schema([pa.field("c", pa.int64(), nullable=False), pa.field("a", pa.int64(), nullable=False)])
    batch = decode_avro_block(avro_content(schema, [{"a": 1, "b": 2, "c": 3}]), schema, target, "block")
    assert batch.to_pydict() == {"c": [3], "a": [1]}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_three_versions_are_written_alike(version: int) -> None:
    schema = table_schema({"name": "x", "type": "long"})
    content = avro_content(schema, [{"x": 5}], version=version)
    assert decode_avro_block(content, schema, arrow_schema(schema), "block").to_pylist() == [{"x": 5}]


@pytest.mark.parametrize("version", [0, 4, -1])
def test_other_versions_are_refused(version: int) -> None:
    schema = table_schema({"name": "x", "type": "long"})
    with pytest.raises(UnsupportedLogFormatError, match=f"version {version}"):
        decode_avro_block(avro_content(schema, [], version=version), schema, arrow_schema(schema), "block")


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
            decode_avro_block(content, schema, arrow_schema(schema), "block 7")

    def test_the_record_that_the_others_spoil_is_right(self) -> None:
        good = self._block(b"\x01\x02\x08\x02a\x00\x00")
        assert decode_avro_block(good, self.SCHEMA, arrow_schema(self.SCHEMA), "block").to_pylist() == [
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
            pytest.param(b"\x01\x02\x08\x02\xff\x00\x00", id="a text that is no UTF-8"),
            pytest.param(b"\x01\x02\x08\x02a\x02\x00", id="an enum without that symbol"),
            pytest.param(b"", id="nothing"),
        ],
    )
    def test_a_record_that_does_not_fit_the_schema_is_told(self, record: bytes) -> None:
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
    def test_lengths_that_do_not_add_up_are_told(self, content: bytes) -> None:
        self._refuses(content)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.binary(max_size=24), max_size=5))
    def test_no_bytes_lead_to_anything_but_rows_or_the_error(self, records: list[bytes]) -> None:
        try:
            batch = decode_avro_block(self._block(*records), self.SCHEMA, arrow_schema(self.SCHEMA), "block")
        except RecordDecodeError:
            return
        batch.validate(full=True)
        assert batch.num_rows == len(records)

    def test_a_decimal_over_its_precision_is_told(self) -> None:
        schema = table_schema({"name": "x", "type": _logical("bytes", "decimal", precision=3, scale=1)})
        self._refuses(self._block(b"\x04\x27\x10"), schema)

    def test_a_nested_record_that_does_not_fit_is_told(self) -> None:
        schema = table_schema({"name": "x", "type": {"type": "array", "items": "long"}})
        for record in (b"\x02\x02", b"\x02\x02\x00\x00", b"\xfe\xff\xff\xff\x0f\x02\x00"):
            self._refuses(self._block(record), schema)


class TestAWriterWithAnotherSchema:
    FIELDS: tuple[Any, ...] = (
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("new", pa.string()),
    )
    TABLE = pa.schema(FIELDS)

    def _decode(self, schema: str, record: Any, *, defaults: frozenset[str] = frozenset()) -> list[Any]:
        return decode_avro_block(
            avro_content(schema, [record]), schema, self.TABLE, "block 7", defaults=defaults
        ).to_pylist()

    def test_fields_are_found_by_name_promoted_or_null(self) -> None:
        schema = table_schema(
            {"name": "x", "type": "float"},
            {"name": "old", "type": "long"},
            {"name": "n", "type": "int"},
            {"name": "id", "type": "string"},
        )
        assert self._decode(schema, {"x": 1.5, "old": 9, "n": 3, "id": "a"}) == [
            {"id": "a", "n": 3, "x": 1.5, "new": None}
        ]

    def test_a_type_that_does_not_fit_is_refused_by_name_and_both_types(self) -> None:
        schema = table_schema({"name": "id", "type": "string"}, {"name": "n", "type": "string"})
        with pytest.raises(UnsupportedTableError, match=r"block 7: field n was written as string.*int64"):
            self._decode(schema, {"id": "a", "n": "3"})

    def test_a_field_that_may_not_be_null_has_to_be_there(self) -> None:
        with pytest.raises(UnsupportedTableError, match="field id"):
            self._decode(table_schema({"name": "n", "type": "long"}), {"n": 3})

    def test_a_field_with_a_default_of_its_own_has_to_be_there(self) -> None:
        with pytest.raises(UnsupportedTableError, match="field new"):
            self._decode(table_schema({"name": "id", "type": "string"}), {"id": "a"}, defaults=frozenset({"new"}))

    def test_a_null_where_the_table_has_none_is_told(self) -> None:
        with pytest.raises(RecordDecodeError, match="field id is null"):
            self._decode(table_schema({"name": "id", "type": ["null", "string"]}), {"id": None})

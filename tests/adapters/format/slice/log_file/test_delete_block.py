"""DELETE blocks: keys and ordering values of every wrapper, and back to the bytes that Hudi reads."""

import datetime as dt
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eventide_adapters.format.slice.log_file.delete_block import decode_delete_block, encode_delete_block
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError, UnsupportedTableError
from support.files.logs import block, delete_block, delete_content, parse_blocks

_MOMENT = dt.datetime(2026, 11, 21, 10, 30, 0, 123456, tzinfo=dt.UTC)
_MICROS = 1795257000123456


@pytest.mark.parametrize(
    ("wrapper", "written", "column", "read"),
    [
        ("IntWrapper", 7, pa.int32(), 7),
        ("LongWrapper", 0, pa.int64(), 0),
        ("LongWrapper", -(1 << 63), pa.int64(), -(1 << 63)),
        ("IntWrapper", 7, pa.int64(), 7),
        ("FloatWrapper", 1.5, pa.float32(), 1.5),
        ("DoubleWrapper", 0.1, pa.float64(), 0.1),
        ("StringWrapper", "a", pa.string(), "a"),
        ("BytesWrapper", b"\x01", pa.binary(), b"\x01"),
        ("BooleanWrapper", True, pa.bool_(), True),
        ("DateWrapper", 1, pa.date32(), dt.date(1970, 1, 2)),
        ("DecimalWrapper", Decimal("12.50"), pa.decimal128(10, 2), Decimal("12.50")),
        ("LongWrapper", _MICROS, pa.timestamp("us", "UTC"), _MOMENT),
        ("TimestampMicrosWrapper", _MICROS, pa.timestamp("us", "UTC"), _MOMENT),
        ("TimestampMicrosWrapper", _MICROS, pa.timestamp("ms", "UTC"), _MOMENT.replace(microsecond=123000)),
        ("LongWrapper", _MICROS // 1000, pa.timestamp("ms"), _MOMENT.replace(microsecond=123000, tzinfo=None)),
    ],
)
def test_an_ordering_value_comes_in_the_columns_type(
    wrapper: str, written: Any, column: pa.DataType, read: Any
) -> None:
    keys, orderings = decode_delete_block(delete_content([("k", (wrapper, written))]), column, "block")
    assert keys.to_pylist() == ["k"]
    assert orderings.type == column
    assert orderings.to_pylist() == [read]


@pytest.mark.parametrize("column", [pa.int32(), pa.int64(), pa.string(), pa.timestamp("us", "UTC"), pa.null()])
@pytest.mark.parametrize("natural", [None, ("IntWrapper", 0)])
def test_null_and_the_int_zero_are_deletes_in_natural_order(column: pa.DataType, natural: Any) -> None:
    keys, orderings = decode_delete_block(delete_content([("k1", natural), ("k2", natural)]), column, "block")
    assert keys.to_pylist() == ["k1", "k2"]
    assert orderings.type == column
    assert orderings.null_count == 2


def test_a_table_without_an_ordering_column_has_natural_deletes_only() -> None:
    _, orderings = decode_delete_block(delete_content([("k", ("LongWrapper", 5))]), pa.null(), "block")
    assert orderings.to_pylist() == [None]


@pytest.mark.parametrize(
    ("ordering", "column"),
    [
        (("StringWrapper", "5"), pa.int64()),
        (("LongWrapper", 5), pa.string()),
        (("LongWrapper", 1 << 40), pa.int32()),
        (("DecimalWrapper", Decimal("1.23")), pa.decimal128(10, 1)),
        (("ArrayWrapper", []), pa.int64()),
        (("LongWrapper", 5), pa.list_(pa.int64())),
    ],
)
def test_an_ordering_value_of_another_type_is_refused(ordering: Any, column: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match="block 7"):
        decode_delete_block(delete_content([("k", ordering)]), column, "block 7")


@pytest.mark.parametrize("version", [0, 4])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(UnsupportedLogFormatError, match=f"block 7: a DELETE block of version {version}"):
        decode_delete_block(struct.pack(">ii", version, 3) + b"\xac\xed\x00", pa.int64(), "block 7")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        struct.pack(">ii", 3, 9),
        struct.pack(">ii", 3, 2) + b"\x02\x00",
        struct.pack(">ii", 3, 2) + b"\x00\x00",
        struct.pack(">ii", 3, 5) + b"\xfe\xff\xff\xff\x0f",
        delete_content([("k", None)])[:-1],
        delete_content([("k", None)]) + b"\x00",
    ],
)
def test_bytes_that_are_no_delete_block_are_reported(content: bytes) -> None:
    with pytest.raises(RecordDecodeError, match="block 7"):
        decode_delete_block(content, pa.int64(), "block 7")


@pytest.mark.parametrize(
    ("column", "values", "wrapped"),
    [
        (pa.int64(), [5, None], [("LongWrapper", 5), ("IntWrapper", 0)]),
        (pa.int32(), [5], [("IntWrapper", 5)]),
        (pa.float32(), [0.5], [("FloatWrapper", 0.5)]),
        (pa.float64(), [0.5], [("DoubleWrapper", 0.5)]),
        (pa.string(), ["é"], [("StringWrapper", "é")]),
        (pa.bool_(), [False], [("BooleanWrapper", False)]),
        (pa.binary(), [b"\x00"], [("BytesWrapper", b"\x00")]),
        (pa.date32(), [dt.date(1970, 1, 3)], [("IntWrapper", 2)]),
        (pa.decimal128(10, 2), [Decimal("-1.25")], [("DecimalWrapper", Decimal("-1.25"))]),
        (pa.timestamp("us", "UTC"), [_MOMENT], [("LongWrapper", _MICROS)]),
        (pa.null(), [None], [("IntWrapper", 0)]),
    ],
)
def test_a_carried_block_has_the_bytes_that_hudi_would_write(column: pa.DataType, values: Any, wrapped: Any) -> None:
    keys = [f"k{number}" for number in range(len(values))]
    ours = encode_delete_block("20261121060413861", "part=a", keys, pa.array(values, column))
    assert ours == delete_block("20261121060413861", list(zip(keys, wrapped, strict=True)))


_FIELDS = pa.struct([("ts", pa.int64()), ("name", pa.string()), ("day", pa.date32())])


def _array(*values: tuple[str, Any] | None) -> Any:
    wrapped = [v and (f"org.apache.hudi.avro.model.{v[0]}", {"value": v[1]}) for v in values]
    return ("ArrayWrapper", wrapped)


def test_several_ordering_fields_are_a_struct_of_their_values() -> None:
    deletes = [
        ("k1", _array(("LongWrapper", 5), ("StringWrapper", "a"), ("LocalDateWrapper", 1))),
        ("k2", ("IntWrapper", 0)),
        ("k3", _array(("IntWrapper", 0), ("IntWrapper", 0), None)),
    ]
    _, orderings = decode_delete_block(delete_content(deletes), _FIELDS, "block")
    assert orderings.type == _FIELDS
    assert orderings.to_pylist() == [
        {"ts": 5, "name": "a", "day": dt.date(1970, 1, 2)},
        None,
        {"ts": 0, "name": None, "day": None},
    ]


@pytest.mark.parametrize(
    "ordering",
    [
        ("LongWrapper", 5),
        _array(("LongWrapper", 5), ("StringWrapper", "a")),
        _array(("StringWrapper", "a"), ("LongWrapper", 5), ("DateWrapper", 1)),
    ],
)
def test_ordering_values_of_other_fields_are_refused(ordering: Any) -> None:
    with pytest.raises(UnsupportedTableError, match="block 7"):
        decode_delete_block(delete_content([("k", ordering)]), _FIELDS, "block 7")


def test_a_carried_block_of_several_ordering_fields_has_the_bytes_that_hudi_writes() -> None:
    values = [{"ts": 5, "name": "a", "day": dt.date(1970, 1, 2)}, None]
    ours = encode_delete_block("20261121060413861", "part=a", ["k1", "k2"], pa.array(values, _FIELDS))
    wrapped = _array(("LongWrapper", 5), ("StringWrapper", "a"), ("LocalDateWrapper", 1))
    assert ours == delete_block("20261121060413861", [("k1", wrapped), ("k2", ("IntWrapper", 0))])


def test_a_carried_block_without_deletes_is_still_a_block() -> None:
    ours = encode_delete_block("20261121060413861", "part=a", [], pa.array([], pa.int64()))
    assert ours == block(1, {0: "20261121060413861"}, delete_content([]))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.decimal128(38, 10), "-12345678901234567890.5"),
        (pa.decimal128(38, 18), "1.500000000000000000"),
        (pa.decimal128(9, 2), "-1.05"),
    ],
)
def test_a_long_decimal_is_read_back_as_it_was(kind: "pa.Decimal128Type[Any, Any]", value: str) -> None:
    values = pa.array([Decimal(value), None], kind)
    (block,) = parse_blocks(encode_delete_block("20260101000000000", "p", ["a", "b"], values))
    assert decode_delete_block(block[2], kind, "block")[1].to_pylist() == [Decimal(value), None]


@pytest.mark.parametrize("value", ["1.123456789012345678", "12345678901234567890.123456789012345"])
def test_a_decimal_with_more_digits_than_hudis_deletes_have_is_refused(value: str) -> None:
    number = Decimal(value)
    kind = pa.decimal128(38, -int(number.as_tuple().exponent))
    with pytest.raises(UnsupportedTableError, match="a delete cannot store its ordering value of type decimal128"):
        encode_delete_block("20260101000000000", "p", ["a"], pa.array([number], kind))

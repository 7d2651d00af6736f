"""Thrift's compact protocol, as thriftpy2 writes it."""

import io
from typing import Any

import pytest
import thriftpy2
from hypothesis import given
from hypothesis import strategies as st
from thriftpy2.protocol import TCompactProtocol
from thriftpy2.transport import TMemoryBuffer

from eventide_adapters.format.encoding.parquet.thrift_compact import elements, encoded, fields, integer, with_integers

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)


THRIFT: Any = thriftpy2.load_fp(
    io.StringIO(
        """
        struct Inner { 1: optional i64 number; 40: optional string text }
        struct Outer {
            1: optional bool flag; 2: optional byte tiny; 3: optional i16 short; 5: optional double real;
            6: optional Inner inner; 7: optional list<bool> flags; 8: optional list<Inner> structs;
            9: optional set<double> doubles; 10: optional list<list<i32>> lists; 300: optional i64 far
        }
        """
    ),
    "thrift_compact_thrift",
)
INNERS = st.fixed_dictionaries({"number": INTEGERS, "text": st.text(max_size=200)})
OUTERS = st.fixed_dictionaries(
    {"far": INTEGERS},
    optional={
        "flag": st.booleans(),
        "tiny": st.integers(-128, 127),
        "short": st.integers(-(1 << 15), (1 << 15) - 1),
        "real": st.floats(),
        "inner": INNERS,
        "flags": st.lists(st.booleans(), max_size=20),
        "structs": st.lists(INNERS, max_size=20),
        "doubles": st.sets(st.floats(allow_nan=False), max_size=20),
        "lists": st.lists(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20), max_size=3),
    },
)


def written(values: dict[str, Any]) -> bytes:
    values = dict(values)
    if "inner" in values:
        values["inner"] = THRIFT.Inner(**values["inner"])
    if "structs" in values:
        values["structs"] = [THRIFT.Inner(**inner) for inner in values["structs"]]
    buffer: Any = TMemoryBuffer()  # type: ignore[no-untyped-call]
    protocol: Any = TCompactProtocol(buffer)  # type: ignore[no-untyped-call]
    protocol.write_struct(THRIFT.Outer(**values))
    return bytes(buffer.getvalue())


@given(INTEGERS)
def test_an_integer_is_encoded_as_it_is_decoded(value: int) -> None:
    data = encoded(value)
    assert integer(data, 0) == (value, len(data))


@given(OUTERS, INTEGERS)
def test_a_replaced_integer_changes_nothing_else(values: dict[str, Any], new: int) -> None:
    data = written(values)
    struct, end = fields(data, 0)
    assert end == len(data)
    assert integer(data, struct[300][0])[0] == values["far"]
    changes = {struct[300]: new}
    expected = {**values, "far": new}
    if values.get("structs"):
        second = fields(data, elements(data, struct[8][0])[-1][0])[0]
        changes[second[1]] = new
        expected["structs"] = [*values["structs"][:-1], {**values["structs"][-1], "number": new}]
    assert with_integers(data, 0, end, changes) == written(expected)


@given(OUTERS, st.data())
def test_a_struct_that_is_not_all_there_is_an_index_error(values: dict[str, Any], data: st.DataObject) -> None:
    whole = written(values)
    with pytest.raises(IndexError):
        fields(whole[: data.draw(st.integers(0, len(whole) - 1))], 0)


def test_a_type_that_parquet_does_not_have_is_an_error() -> None:
    with pytest.raises(ValueError, match="Thrift type 11"):
        fields(b"\x1b\x00\x00", 0)


@pytest.mark.parametrize("kind", [1, 3, 7, 12], ids=["booleans", "bytes", "doubles", "structs"])
def test_a_list_that_claims_more_elements_than_the_data_has_bytes_is_refused_at_once(kind: int) -> None:
    """To step over the booleans that one flipped byte claims could take years."""
    data = bytes([0x19, 0xF0 | kind]) + b"\xff" * 8 + b"\x7f" + bytes(20)
    with pytest.raises(IndexError, match="9223372036854775807 elements at 11 of 31 bytes"):
        fields(data, 0)
    with pytest.raises(IndexError, match="elements"):
        elements(data, 1)

"""DELETE blocks of versions 1 and 2: what Hudi's own Kryo wrote is read, and no bytes are believed further than they reach.

data/kryo_deletes.json is what data/KryoDeletes.java prints; Hudi 1.1.1 and 1.2.0 print the same.
"""

import contextlib
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.slice.log_file.delete_block import decode_delete_block
from eventide_adapters.format.slice.log_file.delete_block_kryo import read_kryo_deletes
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError

WRITTEN = {
    name: bytes.fromhex(text)
    for name, text in json.loads((Path(__file__).parent / "data" / "kryo_deletes.json").read_text()).items()
}
LONG_MS = 1_700_000_000_123


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("keys", ["k1", "k2", "k1"]),
        ("keysutf", ["ké", "日😀", "x" * 70]),
        ("sameobj", ["k1", "k1"]),
        ("nullkey", ["k1", "a"]),
        ("empty", []),
    ],
)
def test_a_block_of_version_1_holds_keys_that_are_deleted_in_natural_order(name: str, keys: list[str]) -> None:
    assert read_kryo_deletes(WRITTEN[name], 1, "block 7") == [(key, None) for key in keys]


@pytest.mark.parametrize(
    ("name", "wrapper", "values"),
    [
        ("default", "IntWrapper", [0]),
        ("int", "IntWrapper", [1, -1, 0, 300]),
        ("long", "LongWrapper", [5, 1_700_000_000_000, -3]),
        ("float", "FloatWrapper", [1.5]),
        ("double", "DoubleWrapper", [0.1]),
        ("string", "StringWrapper", ["abc", "é", "a", ""]),
        ("bool", "BooleanWrapper", [True, False]),
        ("bigdec", "DecimalWrapper", [Decimal("12.50"), Decimal("-1.5")]),
        ("sqlts", "TimestampMicrosWrapper", [LONG_MS * 1000]),
        ("instant", "TimestampMicrosWrapper", [LONG_MS * 1000]),
        ("localdate", "DateWrapper", [20454]),
        ("refs", "StringWrapper", ["dup", "dup"]),
    ],
)
def test_a_block_of_version_2_holds_keys_with_ordering_values(name: str, wrapper: str, values: list[Any]) -> None:
    expected = [(f"k{number}", (wrapper, value)) for number, value in enumerate(values)]
    assert read_kryo_deletes(WRITTEN[name], 2, "block 7") == expected


def test_version_2_deletes_have_the_columns_type_and_the_int_zero_is_natural_order() -> None:
    keys, orderings = decode_delete_block(_content(2, WRITTEN["mixed"]), pa.int64(), "block 7")
    assert keys.to_pylist() == ["k0", "k1", "k2", "k3"]
    assert orderings.to_pylist() == [5, None, 6, None]


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("sqldate", "java.sql.Date"),
        ("utf8", "registered with Kryo as 28"),
        ("bytebuffer", "java.nio.HeapByteBuffer"),
        ("keys", "[Lorg.apache.hudi.common.model.HoodieKey;"),
    ],
)
def test_an_object_of_another_class_is_refused_by_its_name(name: str, unknown: str) -> None:
    with pytest.raises(UnsupportedLogFormatError) as refusal:
        read_kryo_deletes(WRITTEN[name], 2, "block 7")
    assert unknown in str(refusal.value)
    assert "block 7" in str(refusal.value)


@pytest.mark.parametrize("name", ["keys", "keysutf", "mixed", "bigdec", "string"])
def test_deletes_that_break_off_or_go_on_are_reported(name: str) -> None:
    version = 1 if name.startswith("keys") else 2
    for end in range(len(WRITTEN[name])):
        with pytest.raises(RecordDecodeError):
            read_kryo_deletes(WRITTEN[name][:end], version, "block 7")
    with pytest.raises(RecordDecodeError):
        read_kryo_deletes(WRITTEN[name] + b"\x00", version, "block 7")


@given(
    name=st.sampled_from(["keys", "mixed", "string", "bigdec", "localdate"]),
    place=st.integers(0, 400),
    byte=st.integers(0, 255),
)
def test_no_damage_does_more_than_raise_a_typed_error(name: str, place: int, byte: int) -> None:
    data = bytearray(WRITTEN[name])
    data[place % len(data)] = byte
    with contextlib.suppress(RecordDecodeError, UnsupportedLogFormatError):
        deletes = read_kryo_deletes(bytes(data), 1 if name == "keys" else 2, "block 7")
        assert len(deletes) <= len(data)


def _content(version: int, data: bytes) -> bytes:
    return struct.pack(">ii", version, len(data)) + data

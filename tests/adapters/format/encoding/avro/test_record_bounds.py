"""Where the records of an Avro block are, and damaged lengths."""

import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.decode import avro_record_bounds
from eventide_core.errors import RecordDecodeError

_BEGIN = b"\x02\x2220260101000000000"
_HEAD_BYTES = 8


def _block(bodies: list[bytes], count: int | None = None) -> bytes:
    head = struct.pack(">ii", 3, len(bodies) if count is None else count)
    return head + b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def _one_by_one(content: bytes) -> list[tuple[int, int]]:
    """The bounds of the records. Raises RecordDecodeError."""
    (count,) = struct.unpack_from(">i", content, 4)
    position, spans = _HEAD_BYTES, list[tuple[int, int]]()
    for _ in range(count):
        if position + 4 > len(content):
            raise RecordDecodeError("ends")
        (length,) = struct.unpack_from(">i", content, position)
        if length < 0 or position + 4 + length > len(content):
            raise RecordDecodeError("a length")
        spans.append((position + 4, position + 4 + length))
        position += 4 + length
    if position != len(content):
        raise RecordDecodeError("goes on")
    return spans


def _bodies(draw: random.Random, other_begins: float, repeated_begins: float) -> list[bytes]:
    """Bodies of 300 KiB or more. Such shares of them begin differently, or contain what looks like a begin."""
    bodies, size = list[bytes](), 0
    while size < 300 * 1024:
        begin = b"\x02\x2220260101999999999" if draw.random() < other_begins else _BEGIN
        middle = _BEGIN if draw.random() < repeated_begins else b""
        bodies.append(begin + draw.randbytes(draw.randrange(200)) + middle + draw.randbytes(draw.randrange(200)))
        size += 4 + len(bodies[-1])
    return bodies


def _same_as_one_by_one(content: bytes) -> None:
    try:
        expected = _one_by_one(content)
    except RecordDecodeError:
        with pytest.raises(RecordDecodeError):
            avro_record_bounds(content, "block")
        return
    starts, ends = avro_record_bounds(content, "block")
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == expected


@settings(max_examples=60)
@given(
    seed=st.integers(0, 1 << 30),
    other_begins=st.sampled_from([0.0, 0.3, 0.99]),
    repeated_begins=st.sampled_from([0.0, 0.01, 0.5]),
    lost=st.integers(-2, 2),
)
def test_records_are_those_that_are_found_one_by_one(
    seed: int, other_begins: float, repeated_begins: float, lost: int
) -> None:
    bodies = _bodies(random.Random(seed), other_begins, repeated_begins)
    _same_as_one_by_one(_block(bodies))
    _same_as_one_by_one(_block(bodies, len(bodies) - lost))


@settings(max_examples=60)
@given(seed=st.integers(0, 1 << 30))
def test_damaged_lengths_are_found_as_one_by_one(seed: int) -> None:
    draw = random.Random(seed)
    bodies = _bodies(draw, 0.0, 0.0)
    content = bytearray(_block(bodies))
    places = [start - 4 for start, _ in _one_by_one(bytes(content))]
    for _ in range(draw.randrange(1, 4)):
        damaged = draw.choice(places) + draw.randrange(4)
        content[damaged] = draw.randrange(256)
    _same_as_one_by_one(bytes(content))

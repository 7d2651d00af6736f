"""Targeted damage of bytes: replaced lengths and counts, flipped bits, and removed, repeated, or moved pieces."""

import json
from contextlib import suppress

from hypothesis import strategies as st

from eventide_core.errors import EventideError
from eventide_core.table.files.log_block import read_blocks

NUMBERS = (0, 1, -1, 7, 64, 127, 128, 255, 65_536, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, 2**62, -(2**63), 2**63 - 1)
DEEP = "[" * 50_000 + "]" * 50_000
JSON_VALUES = (
    DEEP,
    "null",
    "-1",
    "1e999",
    '"x"',
    "[]",
    "{}",
    "[[[[[[[[[[]]]]]]]]]]",
    "99999999999999999999",
    '"../../../etc/passwd"',
)


def offsets_of(data: bytes) -> tuple[int, ...]:
    """The positions of lengths and counts in a log file. In other files, the beginning and the end."""
    found: list[int] = []
    with suppress(EventideError):
        for block in read_blocks(lambda at, size: data[at : at + size], len(data), "log", is_strict=True):
            begin, end = block.offset, block.end
            inside = range(block.content_offset, min(block.content_offset + 24, end), 4)
            found += [begin, begin + 6, begin + 14, begin + 18, begin + 22, begin + 30, *inside, end - 12, end - 8]
    return tuple(found) or (*range(0, 64, 4), *range(max(0, len(data) - 64), len(data), 4))


Edit = tuple[str, float, int, int]

EDITS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "number", "number", "varint", "cut", "remove", "repeat", "swap", "json"]),
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 63),
        st.integers(0, 10_000),
    ),
    min_size=1,
    max_size=4,
)


def edited(data: bytes, edits: list[Edit]) -> bytes:
    """The bytes after all edits in order."""
    for kind, place, choice, amount in edits:
        if not data:
            return data
        offsets = offsets_of(data) if choice % 2 else ()
        at = offsets[int(place * len(offsets))] if offsets else int(place * len(data))
        at = min(at, len(data) - 1)
        data = _edit(data, kind, at, choice, amount)
    return data


def _edit(data: bytes, kind: str, at: int, choice: int, amount: int) -> bytes:
    number = NUMBERS[choice % len(NUMBERS)]
    match kind:
        case "flip":
            return data[:at] + bytes([data[at] ^ (1 << choice % 8)]) + data[at + 1 :]
        case "number":
            width = (4, 8)[amount % 2]
            wrapped = number & ((1 << 8 * width) - 1)
            replaced = wrapped.to_bytes(width, "little") if amount % 3 == 0 else wrapped.to_bytes(width, "big")
            return data[:at] + replaced + data[at + width :]
        case "varint":
            zigzag, out = (number << 1) ^ (number >> 63), bytearray()
            zigzag &= 2**64 - 1
            while zigzag > 127:
                out.append(zigzag & 127 | 128)
                zigzag >>= 7
            return data[:at] + bytes([*out, zigzag]) + data[at + 1 :]
        case "cut":
            return data[:at]
        case "remove":
            return data[:at] + data[at + 1 + amount % 64 :]
        case "repeat":
            return data[: at + 1 + amount % 512] + data[at:]
        case "swap":
            other = amount % len(data)
            low, high = sorted((at, other))
            return data[:low] + data[high : high + 32] + data[low : low + 32] + data[high + 32 :]
        case _:
            return _with_json_value(data, choice, amount)


def _with_json_value(data: bytes, choice: int, amount: int) -> bytes:
    """Replaces one value of a JSON document. Leaves other bytes unchanged."""
    try:
        text = data.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return data
    colons = [i for i, character in enumerate(text) if character == ":" and text[i - 1] in '" ']
    if not colons:
        return data
    at = colons[amount % len(colons)] + 1
    skipped = len(text[at:]) - len(text[at:].lstrip())
    try:
        _, end = json.JSONDecoder().raw_decode(text[at:].lstrip())
    except (ValueError, RecursionError):  # a colon within a string; a value that is nested too deeply
        return data
    return (text[:at] + JSON_VALUES[choice % len(JSON_VALUES)] + text[at + skipped + end :]).encode()

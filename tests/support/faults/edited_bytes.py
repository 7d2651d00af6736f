"""Bytes with a few random edits, as in a damaged file."""

import random


def edited(chance: random.Random, whole: bytes, *, longest: int = 20) -> bytes:
    """Makes one to four edits: replaces a byte, removes up to `longest` bytes, or inserts as many."""
    data = bytearray(whole)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data))
        match chance.randrange(3):
            case 0:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, longest)]
            case _:
                data[at:at] = chance.randbytes(chance.randint(1, longest))
    return bytes(data)

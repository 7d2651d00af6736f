"""The file group of a key under Hudi's bucket index.

A partition has a fixed number of buckets, and each bucket has a file group, whose file ID begins with the bucket's
number in 8 digits. A key's bucket is Java's `List.hashCode` of the values of its key fields, without its sign, modulo
the number of buckets.
"""

import re
from collections.abc import Iterable
from typing import Final

BUCKET_DIGITS = 8
BUCKETS_MAX = 100_000  # a smaller 8-digit number at the start of a file ID counts as a bucket
INT_MAX = 0x7FFF_FFFF
BUCKET_INDEX_DIRECTORY: Final = ".hoodie/.bucket_index"
"""Where Hudi keeps what consistent hashing and numbers of buckets by partition need; a plain bucket index needs nothing."""
PURE_LOG_INDEXES: Final = ("BUCKET", "FLINK_STATE")
"""The types of index under which writers find keys without base files, and write inserts as logs."""

_PLAIN_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def bucket_of(values: Iterable[str], buckets: int) -> int:
    """The bucket of a record key whose fields have these values."""
    code = 1
    for value in values:
        code = (31 * code + java_hash(value)) & 0xFFFF_FFFF
    return (code & INT_MAX) % buckets


def bucket_of_file_id(file_id: str) -> int | None:
    """The bucket of a file ID; None for a file ID of no bucket."""
    digits = file_id[:BUCKET_DIGITS]
    if len(digits) < BUCKET_DIGITS or not (digits.isascii() and digits.isdecimal()):
        return None
    return int(digits) if int(digits) < BUCKETS_MAX else None


def is_flink_file_id(file_id: str) -> bool:
    """Whether the file ID is of Flink's state index: a UUID alone. Other writers append a number."""
    return _PLAIN_UUID.fullmatch(file_id) is not None


def bucket_name(bucket: int) -> str:
    """The prefix of a bucket's file IDs."""
    return f"{bucket:0{BUCKET_DIGITS}d}"


def new_file_id(bucket: int, uuid: str) -> str:
    """A new file ID of the bucket: its number replaces the first digits of a UUID."""
    return f"{bucket_name(bucket)}{uuid[BUCKET_DIGITS:]}-0"


def java_hash(text: str) -> int:
    """Java's `String.hashCode` as an unsigned 32-bit number."""
    result = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        result = (31 * result + unit) & 0xFFFF_FFFF
    return result

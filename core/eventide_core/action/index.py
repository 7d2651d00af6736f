"""Which file group a key belongs to: Hudi's bucket index.

A partition has a fixed number of buckets, and a file group a bucket: its file id begins with the bucket's number in 8
digits. A key's bucket is the hash that Java's `List.hashCode` gives the list of its key fields' values (here of one),
without its sign, modulo the number of buckets.
"""

_INT_MAX = 0x7FFF_FFFF
_BUCKET_DIGITS = 8


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of a record key that has one field."""
    return ((31 + _java_hash(key)) & _INT_MAX) % buckets


def bucket_of_file_id(file_id: str) -> int:
    """The bucket whose file group bears that file id. Raises ValueError where it is no bucket's."""
    return int(file_id[:_BUCKET_DIGITS])


def new_file_id(bucket: int, uuid: str) -> str:
    """A file id for the bucket: its number, in place of the first digits of a UUID."""
    return f"{bucket:0{_BUCKET_DIGITS}d}{uuid[_BUCKET_DIGITS:]}-0"


def _java_hash(text: str) -> int:
    result = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        result = (31 * result + int.from_bytes(units[position : position + 2], "big")) & 0xFFFF_FFFF
    return result

"""Writes HFiles: base files of the metadata table, and the contents of HFILE log blocks; `hfile` describes the layout."""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from eventide_adapters.format.encoding.parquet.thrift_compact import varint
from eventide_adapters.format.metadata_table.records.hfile import (
    BLOCK_HEADER_LENGTH,
    DATA_MAGIC,
    GZIP,
    INDEX_MAGIC,
    INFO_MAGIC,
    INFO_PREFIX,
    TRAILER_LENGTH,
    TRAILER_MAGIC,
)
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.layout import Layout

_BLOCK_BYTES: Final = 64 * 1024  # HBase's default
_CHECKSUM_CHUNK: Final = 16 * 1024  # HBase's default; no checksums are made, but their space is reserved
_CHECKSUM_LENGTH: Final = 4
_NO_CHECKSUMS: Final = 0
_COMPARATOR: Final = b"org.apache.hudi.io.storage.HoodieHBaseKVComparator"
_COLUMN_AND_TIME: Final = b"\0" + struct.pack(">q", 2**63 - 1) + b"\4"  # no family, the latest time, a put
_ENTRY_HEAD: Final = struct.Struct(">iih")  # lengths of the cell, the value and the row
_CELL_LENGTH_MORE: Final = 2 + len(_COLUMN_AND_TIME)  # how much longer a cell is than its row


class HFileStyle(Enum):
    """The reader that the file is for, as the last four bytes of the file: Hudi 1's reader, or HBase's."""

    NATIVE = 3
    HBASE = 0x03000003

    @classmethod
    def of(cls, layout: Layout) -> "HFileStyle":
        """The style of a metadata table: HBase's if Hudi 0.x reads it, too."""
        return cls.NATIVE if layout.needs_hudi_1 else cls.HBASE


def encode_hfile(
    entries: Sequence[tuple[bytes, bytes]], schema: AvroSchema, style: HFileStyle, *, block_bytes: int = _BLOCK_BYTES
) -> bytes:
    """The bytes of an HFile. `entries` are keys and values in the order of the keys, at least one.

    `schema` is the values' Avro schema. A data block ends as soon as it has `block_bytes`. The same input makes the same
    bytes.
    """
    file = bytearray()
    write_hfile(file.extend, entries, schema, style, block_bytes=block_bytes)
    return bytes(file)


def write_hfile(
    write: Callable[[bytes], object],
    entries: Iterable[tuple[bytes, bytes]],
    schema: AvroSchema,
    style: HFileStyle,
    *,
    block_bytes: int = _BLOCK_BYTES,
    has_key_range: bool = False,
) -> int:
    """Writes an HFile as `encode_hfile` does, block by block through `write`. Returns the number of entries.

    If `has_key_range`, the file's info names the first and the last key, as in Hudi's base files.
    """
    index = bytearray()
    totals = _Totals()
    previous = -1
    end = offset = size = 0
    for first_key, data in _data_blocks(entries, totals, block_bytes):
        offset, block = end, _block(DATA_MAGIC, data, previous)
        write(block)
        end += len(block)
        key = _index_key(first_key, style)
        index += struct.pack(">qi", offset, len(block)) + _vint(len(key)) + key
        previous = offset if style is HFileStyle.HBASE else -1
        size += 1
    assert totals.count
    index_offset = end
    # The second index is for meta blocks. It is empty because there are none.
    indexes = _block(INDEX_MAGIC, bytes(index)) + _block(INDEX_MAGIC, b"")
    info_offset = index_offset + len(indexes)
    info = _block(INFO_MAGIC, _info(totals, schema, style, has_key_range=has_key_range))
    numbers = {
        1: info_offset,
        2: index_offset,
        3: len(index),
        4: info_offset + len(info),
        5: size,
        6: 0,  # meta blocks
        7: totals.count,
        8: 1,  # levels of the index
        9: 0,  # the first data block
        10: offset,
    }
    trailer = b"".join(varint(field << 3) + varint(number) for field, number in numbers.items())
    trailer += _delimited(11, _COMPARATOR) + varint(12 << 3) + varint(GZIP)
    head = TRAILER_MAGIC + varint(len(trailer)) + trailer
    write(indexes + info + head.ljust(TRAILER_LENGTH - 4, b"\0") + struct.pack(">i", style.value))
    return totals.count


@dataclass(slots=True)
class _Totals:
    """The totals over the entries of a file. Lengths are in bytes; key lengths exclude the bytes that a cell adds."""

    count: int = 0
    key_length: int = 0
    value_length: int = 0
    first_key: bytes = b""
    last_key: bytes = b""


def _data_blocks(
    entries: Iterable[tuple[bytes, bytes]], totals: _Totals, block_bytes: int
) -> Iterator[tuple[bytes, bytes]]:
    """The first key and the data of each block."""
    data = bytearray()
    first = b""
    for key, value in entries:
        if not totals.count:
            totals.first_key = key
        else:
            assert key > totals.last_key, f"{key!r} after {totals.last_key!r}"
        if not data:
            first = key
        totals.count += 1
        totals.key_length += len(key)
        totals.value_length += len(value)
        totals.last_key = key
        data += _ENTRY_HEAD.pack(len(key) + _CELL_LENGTH_MORE, len(value), len(key))
        data += key
        data += _COLUMN_AND_TIME
        data += value
        data.append(0)
        if len(data) >= block_bytes:
            yield first, bytes(data)
            data.clear()
    if data:
        yield first, bytes(data)


def _block(magic: bytes, data: bytes, previous: int = -1) -> bytes:
    compressor = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    compressed = compressor.compress(data) + compressor.flush()
    with_header = BLOCK_HEADER_LENGTH + len(compressed)
    checksums = bytes(_CHECKSUM_LENGTH * -(-with_header // _CHECKSUM_CHUNK))
    sizes = struct.pack(">iiq", len(compressed) + len(checksums), len(data), previous)
    return magic + sizes + struct.pack(">bii", _NO_CHECKSUMS, _CHECKSUM_CHUNK, with_header) + compressed + checksums


def _info(totals: _Totals, schema: AvroSchema, style: HFileStyle, *, has_key_range: bool) -> bytes:
    more = _CELL_LENGTH_MORE * totals.count if style is HFileStyle.HBASE else 0
    pairs = {
        b"KEY_VALUE_VERSION": struct.pack(">i", 1),
        b"MAX_MEMSTORE_TS_KEY": struct.pack(">q", 0),
        b"hfile.AVG_KEY_LEN": struct.pack(">i", (totals.key_length + more) // totals.count),
        b"hfile.AVG_VALUE_LEN": struct.pack(">i", totals.value_length // totals.count),
        b"hfile.CREATE_TIME_TS": struct.pack(">q", 0),
        b"hfile.LASTKEY": _index_key(totals.last_key, style),
        **({b"maxRecordKey": totals.last_key, b"minRecordKey": totals.first_key} if has_key_range else {}),
        b"schema": schema.text.encode(),
    }
    message = b"".join(_delimited(1, _delimited(1, key) + _delimited(2, value)) for key, value in pairs.items())
    return INFO_PREFIX + varint(len(message)) + message


def _index_key(key: bytes, style: HFileStyle) -> bytes:
    return _cell(key) if style is HFileStyle.HBASE else _row(key)


def _row(key: bytes) -> bytes:
    return struct.pack(">h", len(key)) + key


def _cell(key: bytes) -> bytes:
    return _row(key) + _COLUMN_AND_TIME


def _delimited(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def _vint(number: int) -> bytes:
    if number <= 127:
        return bytes([number])
    data = number.to_bytes((number.bit_length() + 7) // 8, "big")
    return struct.pack("b", -112 - len(data)) + data

"""Decodes the content of an Avro data block.

    content := i32 version  i32 n  n x (i32 length  record)

Numbers are big-endian; a record is Avro without a schema, which stands in the block's header. The versions 1, 2 and 3 are
written alike; version 0 has no count and is older than any table that eventide reads.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from eventide_adapters.format.avro_records import decode_records
from eventide_adapters.format.avro_schema import record_fields
from eventide_adapters.format.avro_vectors import decode_vectors, is_flat
from eventide_adapters.format.column_resolution import check_columns, resolve_columns
from eventide_core.errors import RecordDecodeError, UnsupportedLogFormatError

_VERSIONS = (1, 2, 3)
_CONTENT_BYTES_MAX = (1 << 31) - 1  # Hudi holds a content in one Java array


def decode_avro_block(
    content: bytes,
    writer_schema: str,
    target: pa.Schema,
    place: str,
    *,
    defaults: frozenset[str] = frozenset(),
) -> pa.RecordBatch:
    """The records in the columns and types of `target`; `place` names the block in errors.

    `defaults` as in `check_columns`. Raises RecordDecodeError where the content does not fit the writer's schema,
    UnsupportedTableError where that does not fit the target, UnsupportedLogFormatError for an unknown version.
    """
    fields = record_fields(writer_schema)
    check_columns({field.name: field.type.arrow for field in fields}, target, place, defaults=defaults)
    starts, ends = avro_record_bounds(content, place)
    decode = decode_vectors if is_flat(fields) else decode_records
    try:
        columns: dict[str, pa.Array[Any]] = decode(content, starts, ends, fields, frozenset(target.names))
    except RecordDecodeError as error:
        raise RecordDecodeError(
            f"{place}: {error}; the block does not fit its own schema: restore the file, or roll back its write"
        ) from error
    return resolve_columns(columns, len(starts), target, place)


def count_avro_records(head: bytes, place: str) -> int:
    """How many records a content says it holds; `head` is its first 8 bytes or more."""
    if len(head) < 8:
        raise RecordDecodeError(f"{place}: {len(head)} bytes are no Avro block")
    version, count = struct.unpack_from(">ii", head)
    if version not in _VERSIONS:
        raise UnsupportedLogFormatError(f"{place}: an Avro block of version {version}; known are 1 to 3")
    return int(count)


def avro_record_bounds(content: bytes, place: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where each record begins and ends."""
    count, size = count_avro_records(content, place), len(content)
    if size > _CONTENT_BYTES_MAX:
        raise UnsupportedLogFormatError(f"{place}: an Avro block of {size} bytes; Hudi writes less than 2 GiB")
    if not 0 <= count <= (size - 8) // 4:
        raise RecordDecodeError(f"{place}: {count} records in {size} bytes")
    read_length = struct.Struct(">i").unpack_from
    starts = [0] * count
    position, number = 8, 0
    try:
        for number in range(count):
            starts[number] = position = position + 4
            (length,) = read_length(content, position - 4)
            if length < 0:
                raise RecordDecodeError(f"{place}: record {number} of {count} has a length of {length}")
            position += length
    except struct.error as error:
        raise RecordDecodeError(f"{place}: ends before record {number} of {count}") from error
    if position != size:
        raise RecordDecodeError(f"{place}: its {count} records end at byte {position} of {size}")
    begins = np.array(starts, np.int64)
    ends = np.append(begins[1:] - 4, position) if count else begins
    return begins, ends

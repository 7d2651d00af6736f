"""Footers with one flipped bit: an error or the same columns, and never the end of the process."""

import io
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.parquet.footer_columns import Footer, codec_of, require_sound_columns
from eventide_core.errors import CorruptBaseFileError
from support.run.child_processes import environment
from support.values.columns import schema_of

pytestmark = pytest.mark.slow

SCHEMA = schema_of(key=pa.string(), ms=pa.int64())


def written(codec: Any = "gzip", rows: int = 20) -> bytes:
    table = pa.table({"key": [f"k{n}" for n in range(rows)], "ms": range(rows)}, schema=SCHEMA)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression=codec, row_group_size=10)
    return sink.getvalue()


def opened(data: bytes) -> tuple[pq.FileMetaData, Footer]:
    return pq.ParquetFile(io.BytesIO(data)).metadata, Footer(io.BytesIO(data), len(data))


def flipped(data: bytes) -> Iterator[bytes]:
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for offset in range(start, len(data) - 8):
        changed = bytearray(data)
        changed[offset] ^= 1 << offset % 8
        yield bytes(changed)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "zstd"])
def test_the_codec_is_that_of_the_columns(codec: str) -> None:
    none: Any = "none" if codec == "uncompressed" else codec
    assert codec_of(opened(written(none))[1]) == codec


def test_a_file_without_row_groups_has_no_codec() -> None:
    sink = io.BytesIO()
    pq.ParquetWriter(sink, SCHEMA).close()
    require_sound_columns(*opened(sink.getvalue()), "empty")
    assert codec_of(opened(sink.getvalue())[1]) is None


def test_a_sound_footer_passes() -> None:
    require_sound_columns(*opened(written()), "sound")


def test_columns_are_asked_for_only_if_arrow_survives_it() -> None:
    """In a process of its own, which a footer that was not refused would end."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from adapters.format.encoding.parquet import test_footer_columns as t; print(t.survived())",
        ],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    refused, read = map(int, done.stdout.split())
    assert refused >= 3
    assert read > 100


def survived() -> str:
    """How many damaged footers were refused, and how many columns could be asked for."""
    refused = read = 0
    for data in flipped(written()):
        try:
            metadata, footer = opened(data)
        except (pa.ArrowException, OSError):
            continue
        try:
            require_sound_columns(metadata, footer, "flipped")
        except CorruptBaseFileError:
            refused += 1
            continue
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                read += column.total_compressed_size is not None
    return f"{refused} {read}"

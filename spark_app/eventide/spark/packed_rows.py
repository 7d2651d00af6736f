"""Keyed records with their places, packed: Spark moves their bytes, and never sees a row.

1. A task gathers records up to a few megabytes, sorts them by partition and place, and encodes the records of each place as
   one message of Arrow's IPC format.
2. A message is cut into chunks. Spark passes them to Python some ten thousand at a time, whatever their size, so they are
   small enough for that.
3. Chunks that are sorted by `ORDER` are a place's records in their own order, because a chunk has the numbers of its task,
   its message and itself. The first chunk of a message has the counts of the whole message.

A task that runs again on the same records packs the same chunks.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from eventide_adapters.format.write.keyed_records import IS_DELETE
from eventide_core.table.schema.avro_schema import PARTITION_PATH

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PACKED: Final = (
    "partition string, place string, upserts long, deletes long, size int, task int, number int, chunk binary"
)
_COLUMNS: Final = [column.split()[0] for column in PACKED.split(", ")]
ORDER: Final = ("partition", "place", "task", "number")
GATHERED_BYTES: Final = 4 << 20  # of rows that come from Spark, before they are packed
_BATCH_BYTES: Final = 16 << 20  # of the chunks that Spark passes to a task at once
_HEAD: Final = ("partition", "place", "upserts", "deletes")
_CHUNK_BYTES_MIN: Final = 1 << 10
_BATCH_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
RecordBatches = Iterable[pa.RecordBatch]


def chunk_bytes(spark: "SparkSession") -> int:
    """The size of a chunk with which a batch of the session's number of rows is not too large."""
    rows = int(spark.conf.get(_BATCH_ROWS, "10000") or 0)
    return max(_CHUNK_BYTES_MIN, _BATCH_BYTES // rows) if rows > 0 else _BATCH_BYTES


def gathered(batches: RecordBatches) -> Iterator[pa.Table]:
    """The rows in tables of at least GATHERED_BYTES, except for the last one."""
    waiting, size = list[pa.RecordBatch](), 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= GATHERED_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting)


@dataclass(frozen=True, slots=True)
class Message:
    """Records of one place of a partition, as one task packed them.

    `place` is as in Placement: a bucket, a file ID, or empty for new keys. `upserts` and `deletes` count the records.
    `encoded` is a message of Arrow's IPC format.
    """

    partition: str
    place: str
    upserts: int
    deletes: int
    encoded: bytes

    def rows(self, schema: pa.Schema) -> pa.Table:
        """The keyed records, with the columns of the schema."""
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(self.encoded), schema)], schema)


@dataclass(slots=True)
class Packer:
    """Packs the keyed records of one task, with the columns of the schema.

    `chunk_bytes` is the most that a chunk has of a message. `task` is the number of Spark's partition: the same for a
    repeated attempt, so that this packs the same chunks.
    """

    schema: pa.Schema
    chunk_bytes: int
    task: int
    _chunks: int = 0

    def pack(self, keyed: pa.Table, places: Any) -> Iterator[pa.RecordBatch]:
        """The chunks of these records. `places` are their places."""
        if not len(keyed):
            return
        rows = keyed.select(self.schema.names).cast(self.schema)
        coded: list[Any] = [
            rows.column(PARTITION_PATH).combine_chunks().dictionary_encode(),
            places.dictionary_encode(),
        ]
        partitions, names = (column.dictionary.to_pylist() for column in coded)
        codes, place_codes = (column.indices.to_numpy().astype(np.int64) for column in coded)
        codes = codes * max(len(names), 1) + place_codes
        order = np.argsort(codes, kind="stable")
        sorted_rows, sorted_codes = rows.take(order).combine_chunks(), codes[order]
        is_delete = sorted_rows.column(IS_DELETE).to_numpy()
        begins = np.flatnonzero(np.append(1, np.diff(sorted_codes)))
        for begin, end in zip(begins, [*begins[1:], len(codes)], strict=True):
            (batch,) = sorted_rows.slice(int(begin), int(end - begin)).to_batches()
            partition, place = divmod(int(sorted_codes[begin]), len(names))
            deletes = int(is_delete[begin:end].sum())
            yield self.chunks(
                partitions[partition], names[place], int(end - begin) - deletes, deletes, batch.serialize()
            )

    def chunks(self, partition: str, place: str, upserts: int, deletes: int, encoded: Any) -> pa.RecordBatch:
        """The chunks of a message."""
        ends = np.minimum(np.arange(0, len(encoded) + self.chunk_bytes, self.chunk_bytes), len(encoded))
        count = len(ends) - 1
        first = np.arange(count) == 0
        numbers = np.arange(self._chunks, self._chunks + count, dtype=np.int32)
        self._chunks += count
        columns: list[Any] = [
            pa.repeat(partition, count),
            pa.repeat(place, count),
            pa.array(first * upserts, pa.int64()),
            pa.array(first * deletes, pa.int64()),
            pa.array(first * len(encoded), pa.int32()),
            pa.array(np.full(count, self.task, np.int32)),
            pa.array(numbers),
            pa.Array.from_buffers(
                pa.binary(), count, [None, pa.py_buffer(ends.astype(np.int32).tobytes()), pa.py_buffer(encoded)]
            ),
        ]
        return pa.RecordBatch.from_arrays(columns, names=_COLUMNS)


def messages(batches: RecordBatches) -> Iterator[Message]:
    """The messages of chunks that are in ORDER, or as a task packed them."""
    size, head, parts = 0, dict[str, Any](), list[bytes]()
    for batch in batches:
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        chunks = columns["chunk"].cast(pa.binary())
        offsets = np.frombuffer(chunks.buffers()[1], np.int32)[chunks.offset : chunks.offset + len(chunks) + 1]
        sizes = columns["size"].to_numpy()
        for begin, end in itertools.pairwise(sorted({0, *np.flatnonzero(sizes).tolist(), len(sizes)})):
            if sizes[begin]:
                assert not parts, "a message without its end"
                size = int(sizes[begin])
                head = {name: columns[name][begin].as_py() for name in _HEAD}
            parts.append(chunks.buffers()[2][int(offsets[begin]) : int(offsets[end])])
            if sum(map(len, parts)) == size:
                yield Message(**head, encoded=b"".join(parts))
                parts = []
    assert not parts, "a message without its end"

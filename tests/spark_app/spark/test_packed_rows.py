"""Packed rows come back as they were, however Spark divides their chunks into batches."""

from collections import Counter
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventide.spark.packed_rows import GATHERED_BYTES, ORDER, Packer, gathered, messages
from eventide_adapters.format.write.keyed_records import IS_DELETE
from eventide_core.table.schema.avro_schema import PARTITION_PATH

COLUMNS: "list[pa.Field[Any]]" = [
    pa.field(PARTITION_PATH, pa.string()),
    pa.field(IS_DELETE, pa.bool_()),
    pa.field("number", pa.int64()),
    pa.field("at", pa.time32("ms")),  # a type that Spark doesn't have
    pa.field("words", pa.list_(pa.struct([pa.field("word", pa.string())]))),
]
SCHEMA = pa.schema(COLUMNS)
ROWS = st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["", "0"]), st.booleans()), max_size=12)


@given(
    tasks=st.lists(st.lists(ROWS, max_size=3), max_size=3),
    chunk_bytes=st.integers(50, 3000),
    batch_rows=st.integers(1, 40),
    is_sliced=st.booleans(),
)
def test_messages_are_the_records_of_each_place_in_their_own_order(
    tasks: list[list[list[tuple[str, str, bool]]]], chunk_bytes: int, batch_rows: int, *, is_sliced: bool
) -> None:
    expected: dict[tuple[str, str], list[dict[str, Any]]] = {}
    counts: Counter[tuple[str, str, bool]] = Counter()
    chunks: list[pa.RecordBatch] = []
    for task, tables in enumerate(tasks):
        packer = Packer(SCHEMA, chunk_bytes, task)
        for table in tables:
            records: list[dict[str, Any]] = []
            for number, (partition, place, is_delete) in enumerate(table):
                words = [{"word": f"word {at}"} for at in range(number % 3)]
                values = (partition, is_delete, number, None, None if is_delete else words)
                records.append(dict(zip(SCHEMA.names, values, strict=True)))
                expected.setdefault((partition, place), []).append(records[-1])
                counts[partition, place, is_delete] += 1
            places: Any = pa.array([place for _, place, _ in table], pa.string())
            chunks += packer.pack(pa.Table.from_pylist(records, SCHEMA), places)
    if not chunks:
        assert not expected
        return
    shuffled = pa.Table.from_batches(chunks).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()
    batches = shuffled.to_batches(max_chunksize=batch_rows)
    if not is_sliced:  # as they come from Spark
        batches = [pa.ipc.read_record_batch(batch.serialize(), batch.schema) for batch in batches]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    told: Counter[tuple[str, str, bool]] = Counter()
    for message in messages(batches):
        pair = message.partition, message.place
        found.setdefault(pair, []).extend(message.rows(SCHEMA).to_pylist())
        told += Counter({(*pair, False): message.upserts, (*pair, True): message.deletes})
    assert found == expected
    assert told == counts


def test_rows_are_gathered_to_tables_of_some_megabytes() -> None:
    batch = pa.RecordBatch.from_pydict({"text": ["x" * (GATHERED_BYTES // 4)]})
    assert [len(table) for table in gathered([batch] * 9)] == [4, 4, 1]
    assert list(gathered([])) == []

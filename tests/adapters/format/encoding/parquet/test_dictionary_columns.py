"""Texts of few values, which stay numbers of a dictionary from one base file to the next."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.schema import query_schema, table_fields
from eventide_adapters.format.encoding.parquet import dictionary_columns
from eventide_adapters.format.encoding.parquet.dictionary_columns import dictionary_fields
from eventide_adapters.format.encoding.parquet.output import ParquetOutput
from eventide_adapters.format.slice.base_file import parquet as base_parquet
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptBaseFileError
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.one_slice import compactor, logged, task
from support.files.slices import SCHEMA, base_file, data_block, delete_block, row

D0, D1, C = (f"2026010100000000{i}" for i in (0, 1, 9))
BASE = f"part=a/f-0_0-1-0_{D0}.parquet"
LOG = f"part=a/.f-0_{D0}.log.1_0-1-0"
NEW_BASE = f"part=a/f-0_9-9-9_{C}.parquet"
SHAPE = RecordShape(AvroSchema.of(SCHEMA), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
FIELDS = table_fields(AvroSchema.of(SCHEMA))
BLOCKS = BlockFilter(frozenset({D0, D1}), D0)
FEW = {"_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_file_name", "val"}
COUNT = 5000


def a_row(number: int, ts: int, val: str | None, instant: str, file: str) -> dict[str, Any]:
    return {**row(f"k{number:05}", ts, "", instant, file), "val": val}


# Sorted, so that each row group has a dictionary of its own.
OLD = [a_row(n, 10, None if n % 7 == 0 else f"city {n // 1000}", D0, "old") for n in range(COUNT)]
CHANGED = [a_row(n, 20, None if n % 4 == 0 else f"town {n // 30 % 3}", D1, "f-0") for n in range(2, COUNT + 90, 30)]
GONE = range(5, COUNT, 400)
LOG_BYTES = data_block(D1, CHANGED) + delete_block(D1, [(f"k{n:05}", 30) for n in GONE])


def expected(file: str | None = None) -> list[dict[str, Any]]:
    rows = {each["id"]: each for each in OLD} | {each["id"]: each for each in CHANGED}
    for number in GONE:
        del rows[f"k{number:05}"]
    return [each if file is None else {**each, "_hoodie_file_name": file} for each in rows.values()]


@pytest.fixture
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MemoryStorage:
    monkeypatch.setattr(base_parquet, "_BATCH_ROWS", 1100)
    storage = MemoryStorage.from_dump(request.node.name, {})
    sink = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(base_file(OLD))), sink, row_group_size=2500, store_schema=False)
    storage.put(BASE, sink.getvalue())
    storage.put(LOG, LOG_BYTES)
    return storage


def compact(storage: MemoryStorage) -> bytes:
    merged = (logged(LOG, len(LOG_BYTES)),)
    compactor(storage)(task(compacted=merged, left_overs=(), carried_name=None, shape=SHAPE, blocks=BLOCKS))
    return storage.read(NEW_BASE)


def dictionaries(batch: pa.RecordBatch | pa.Table) -> set[str]:
    return {field.name for field in batch.schema if pa.types.is_dictionary(field.type)}


def dictionaries_written(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """Which columns come to be written as dictionaries, once for each call."""
    seen: list[set[str]] = []
    write = ParquetOutput.write

    def noted(self: ParquetOutput, records: pa.Table) -> None:
        seen.append(dictionaries(records))
        write(self, records)

    monkeypatch.setattr(ParquetOutput, "write", noted)
    return seen


def test_strings_of_few_values_come_as_dictionaries_on_request(storage: MemoryStorage) -> None:
    """Not keys and ordering values, nor texts of many values."""
    batches = list(read_base(storage, BASE, FIELDS, dictionary_candidates=dictionary_fields(FIELDS, SHAPE)))
    assert [dictionaries(batch) for batch in batches] == [FEW] * len(batches)
    assert [each for batch in batches for each in batch.to_pylist()] == OLD
    assert dictionary_fields(FIELDS, RecordShape(AvroSchema.of(SCHEMA), SHAPE.merge_rule, ("val",), None)).isdisjoint(
        {"val", "ts"}
    )
    assert not any(map(dictionaries, read_base(storage, BASE, FIELDS)))


def test_a_compaction_hands_them_on(storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = dictionaries_written(monkeypatch)
    file = pq.ParquetFile(io.BytesIO(compact(storage)))
    assert seen == [FEW]
    assert file.read().to_pylist() == expected(NEW_BASE.rpartition("/")[2])
    assert dictionaries(file.schema_arrow.empty_table()) == set()
    assert str(file.schema.column(file.schema.names.index("val")).logical_type) == "String"
    val = file.metadata.row_group(0).column(file.schema.names.index("val"))
    assert (val.physical_type, val.encodings) == ("BYTE_ARRAY", ("PLAIN", "RLE", "RLE_DICTIONARY"))
    told: Any = val.statistics
    nulls = sum(each["val"] is None for each in expected())
    assert (told.min, told.max, told.null_count) == ("city 0", "town 2", nulls)
    # Arrow's writer would have continued with the texts themselves where a second dictionary came.
    assert {*map(frozenset, map(dictionaries, read_base(storage, NEW_BASE, FIELDS, dictionary_candidates=FEW)))} == {
        frozenset(FEW)
    }


def test_where_the_logs_have_many_values_they_become_texts(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dictionary_columns, "_VALUES_MAX", 2)
    seen = dictionaries_written(monkeypatch)
    assert pq.read_table(io.BytesIO(compact(storage))).to_pylist() == expected(NEW_BASE.rpartition("/")[2])
    assert seen == [FEW - {"val"}]


@pytest.mark.parametrize("commits", [None, frozenset({D1})], ids=["all", "of one commit"])
def test_a_query_shows_texts(storage: MemoryStorage, commits: frozenset[str] | None) -> None:
    asked = SliceRead("part=a", "f-0", BASE, ((LOG, len(LOG_BYTES)),), BLOCKS, commits)
    batches = list(ArrowSliceReader(storage).read(asked, SHAPE, None))
    table = pa.Table.from_batches(batches, query_schema(SHAPE))
    rows = [each for each in expected() if commits is None or each["_hoodie_commit_time"] in commits]
    assert table.to_pylist() == rows


@pytest.mark.parametrize(
    ("text", "count"), [("", 7), ("Köln", 7), ("Köln" * (1 << 18), 70)], ids=["empty", "short", "too long to repeat"]
)
def test_one_string_in_every_row_becomes_text(text: str, count: int) -> None:
    numbers: Any = pa.array([0] * (count + 2), pa.int32())
    batch = pa.record_batch({"city": pa.DictionaryArray.from_arrays(numbers, pa.array([text]))})
    decoded = dictionary_columns.in_columns(batch.slice(1, count), pa.schema({"city": pa.string()}))
    decoded.validate(full=True)
    assert decoded.to_pydict() == {"city": [text] * count}


def test_a_number_beyond_its_dictionary_is_refused(storage: MemoryStorage) -> None:
    """Arrow checks no number that it doesn't look up."""
    sink = io.BytesIO()
    rows = pa.Table.from_pylist([{"val": f"city {number % 5}"} for number in range(2 * COUNT)])
    pq.write_table(rows, sink, compression="none", store_schema=False)
    data = bytearray(sink.getvalue())
    start = pq.ParquetFile(sink).metadata.row_group(0).column(0).data_page_offset
    data[start + 150 : start + 200] = b"\xff" * 50
    storage.put(NEW_BASE, bytes(data))
    fields = table_fields(AvroSchema.of(SCHEMA), ["val"])
    with pytest.raises(CorruptBaseFileError, match=r"column val has value number 7 of a dictionary of 5"):
        list(read_base(storage, NEW_BASE, fields, dictionary_candidates={"val"}))

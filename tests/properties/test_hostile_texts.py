"""JSON that a table holds in all kinds of places, and that anyone may have put there: an answer or a typed error, always."""

import io
from collections.abc import Callable
from pathlib import Path
from time import time_ns

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.testing.histories import ManualClock, NoLock
from eventide_adapters.format.encoding.avro.event_time_properties import event_times_of_schema
from eventide_adapters.format.slice.merge.slice_merger import ArrowSliceMerger
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.lock.file_system_based import FileSystemBasedLock
from eventide_adapters.lock.processes import is_dead
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.config import LOCK_EXPIRE_MINUTES, LOCK_WAIT_MS, Options, ParquetCodec
from eventide_core.errors import EventideError, ResourceLimitError
from eventide_core.ports import MergeTask
from eventide_core.service.common.metadata_table.drop import drop_metadata_table
from eventide_core.service.common.state.markers_and_heartbeats import marked_paths, remove_markers_and_heartbeat
from eventide_core.service.common.transaction.outcome import Outcome, claim_outcome
from eventide_core.service.compaction.compact_slice import RESULT_FOOTER_KEY, SliceCompactor
from eventide_core.table.catalog.catalog_columns import TableColumns
from eventide_core.table.files.file_group_write import MARKERS
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.internal_schema import parse_version, parse_versions
from eventide_core.table.settings.stream_batch import BATCH_KEY, batches_of
from eventide_core.table.timeline.contents.plans import LinkMode, PlannedOperation
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY
from support.pasts import golden

INSTANT = "20261121000000000"
TEXTS = (
    "",
    "{",
    "null",
    "7",
    '"text"',
    "[]",
    "{}",
    "[[]]",
    '{"a": null}',
    '{"fields": 7}',
    '{"schemas": {"a": 1}}',
    '{"completion_time": ["../x"]}',
    '{"completion_time": "../../x"}',
    '{"lockThreadName": 7, "eventide": {"place": []}}',
    '{"eventide.event_time.field": 7}',
    '{"instant": {}, "result": 7}',
    "1e999",
    "NaN",
    "[" * 50_000 + "]" * 50_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
)


def outcome(text: str) -> object:
    storage = MemoryStorage.from_dump("texts", {})
    storage.put(f"{OUTCOME_DIRECTORY}/{INSTANT}.outcome", text.encode())
    decided = claim_outcome(storage, Outcome(INSTANT, INSTANT)).completion_time
    assert decided is None or decided.isdecimal()
    return decided


def finished(text: str) -> object:
    storage = MemoryStorage.from_dump("texts", {})
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({RESULT_FOOTER_KEY: text}), sink)
    storage.put("base.parquet", sink.getvalue())
    shape = RecordShape(AvroSchema.of("{}"), MergeRule.COMMIT_TIME_ORDERING, (), None)
    blocks = BlockFilter(frozenset(), "0")
    op = PlannedOperation("", "f", INSTANT, None, 0, (), "base.parquet", "")
    task = MergeTask(INSTANT, op, LinkMode.COPY, shape, blocks, ParquetCodec.GZIP)
    return SliceCompactor(storage, ArrowSliceMerger(storage), time_ns).finished(task)


def lock(text: str) -> object:
    storage = MemoryStorage.from_dump("texts", {})
    storage.put(".hoodie/lock", text.encode())
    options = Options({LOCK_EXPIRE_MINUTES: "0", LOCK_WAIT_MS: "0"})
    return FileSystemBasedLock(storage, options, ManualClock(0), "owner").acquire()


def catalog(text: str) -> object:
    return TableColumns.of(AvroSchema.of(text), has_meta_fields=True, supports_timestamp=True)


READERS: dict[str, Callable[[str], object]] = {
    "a commit": lambda text: HudiMetadataCodec().decode_commit(text.encode(), "t.commit"),
    "the columns of a schema": lambda text: AvroSchema.of(text).field_names,
    "a column of a schema": lambda text: (
        AvroSchema.of(text).is_nullable("a", "option"),
        AvroSchema.of(text).is_time("a"),
    ),
    "the columns of a catalog": catalog,
    "an internal schema": lambda text: parse_version(text, "t.commit"),
    "a history of schemas": lambda text: parse_versions(text, "t.schemacommit"),
    "the batch of a stream": lambda text: batches_of({BATCH_KEY: text}),
    "the event times of a block": lambda text: event_times_of_schema(AvroSchema.of(text), "ms"),
    "the event times of a block, named": lambda text: event_times_of_schema(
        AvroSchema.of(f"{text}eventide.event_time_field"), "ms"
    ),
    "the outcome of a compaction": outcome,
    "the result in a base file": finished,
    "a lock": lock,
    "the process in a lock": lambda text: is_dead(text.encode()),
}


@pytest.mark.parametrize("reader", READERS)
def test_whatever_text_stands_there_is_read_or_refused_with_a_typed_error(reader: str) -> None:
    refused = 0
    for text in TEXTS:
        try:
            READERS[reader](text)
        except EventideError:
            refused += 1
    assert refused or reader in ("the process in a lock", "the event times of a block")


def test_a_column_whose_type_is_too_complex_is_no_column_of_a_catalog() -> None:
    types = ['{"type":"record","name":"R0","fields":[{"name":"a","type":"int"}]}']
    for number in range(1, 60):
        fields = ",".join(f'{{"name":"{side}","type":"R{number - 1}"}}' for side in ("left", "right"))
        types.append(f'{{"type":"record","name":"R{number}","fields":[{fields}]}}')
    columns = ",".join(f'{{"name":"f{number}","type":{kind}}}' for number, kind in enumerate(types))
    with pytest.raises(ResourceLimitError, match="the column f"):
        catalog(f'{{"type":"record","name":"T","fields":[{columns}]}}')


def test_what_links_among_markers_lead_to_stays_when_markers_are_removed(tmp_path: Path) -> None:
    """A link to a partition, and one to a directory above it: neither is followed, and both go."""
    for directory in ("part=a", f"{MARKERS}/{INSTANT}/part=a"):
        (tmp_path / directory).mkdir(parents=True)
    data, markers = tmp_path / "part=a" / "data.parquet", tmp_path / MARKERS / INSTANT
    data.write_bytes(b"data")
    (markers / "inside").symlink_to(tmp_path / "part=a")
    (markers / "part=a" / "above").symlink_to(markers)
    (markers / "part=a" / "data.parquet.marker.CREATE").touch()
    storage = LocalStorage(tmp_path)
    assert marked_paths(storage, INSTANT) >= {"part=a/data.parquet"}
    remove_markers_and_heartbeat(storage, INSTANT)
    assert not markers.exists()
    assert data.read_bytes() == b"data"


def test_what_links_in_a_metadata_table_lead_to_stays_when_it_is_dropped(tmp_path: Path) -> None:
    table = golden.unpack("v6_mdt", tmp_path)
    partition = next(table.glob("part=*"))
    data = {path.name: path.read_bytes() for path in partition.iterdir()}
    (table / ".hoodie" / "metadata" / "link").symlink_to(partition)
    drop_metadata_table(LocalStorage(table), NoLock())
    assert not (table / ".hoodie" / "metadata").exists()
    assert {path.name: path.read_bytes() for path in partition.iterdir()} == data

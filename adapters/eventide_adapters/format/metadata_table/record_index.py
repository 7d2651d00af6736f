"""What a write changes in the record index of the metadata table: which file group each key of the table lives in.

Readers and writers of Hudi look a key up in it alone, so it has to be exact. Of the keys that the files of a write hold, in
records or deletes:

1. A key that its slice shows a row for, once the write has completed, lives there.
2. A key that no slice of the write shows has gone. A delete that a later row beats deletes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.schema import RECORD_KEY, table_fields
from eventide_adapters.format.base_file.parquet import read_base
from eventide_adapters.format.log_file.records import DataBlock, iter_log_records
from eventide_adapters.format.merge.slice_reader import ArrowSliceReader
from eventide_adapters.format.metadata_table.reader import MetadataTableReader
from eventide_adapters.format.metadata_table.records import RECORD_INDEX, Value, record_index_value
from eventide_core.errors import UnsupportedTableError
from eventide_core.ports import FileChanges, Storage, WrittenRows
from eventide_core.table.slice_read import SliceRead
from eventide_core.table.table_path import METADATA_DIRECTORY

_GLOBAL_FILE_ID: Final = re.compile(r"record-index-\d+-\d+")


def check_record_index(reader: MetadataTableReader) -> None:
    """Raises UnsupportedTableError for a record index that has file groups of its own for each partition."""
    for found in reader.slices(RECORD_INDEX):
        if not _GLOBAL_FILE_ID.fullmatch(found.file_id):
            raise UnsupportedTableError(
                f"{METADATA_DIRECTORY}/{RECORD_INDEX} has the file group {found.file_id}: a record index by "
                "partition is not supported; drop that index with Hudi, or let eventide drop the metadata table "
                "(eventide.metadata.table=drop): the next write of Hudi builds it again"
            )


def record_index_changes(
    reader: MetadataTableReader, instant: str, changes: FileChanges
) -> Iterator[tuple[str, Value | None]]:
    """Keys with where they live; None for those that have gone."""
    written = changes.written
    if written is None:
        return
    added = {file.path for file in changes.added}
    gone: set[str] = set()
    living: set[str] = set()
    instant_ms = _epoch_ms(instant, reader.has_utc_instants)
    for found in written.slices:
        changed = changed_keys(reader.storage, found, added, written)
        keys = changed if not found.log_paths else _living(reader.storage, found, changed, written)
        value = record_index_value(found.partition, found.file_id, instant_ms)
        texts: list[Any] = keys.to_pylist()
        yield from ((key, value) for key in texts)
        living.update(texts)
        gone.update(changed.to_pylist())
    yield from ((key, None) for key in sorted(gone - living))


def changed_keys(storage: Storage, found: SliceRead, added: set[str], written: WrittenRows) -> Any:
    """The keys in the files of the slice that the write added, each once."""
    parts: list[Any] = [pa.array([], pa.string())]
    if found.base_path in added:
        assert found.base_path is not None
        parts += [
            b.column(0) for b in read_base(storage, found.base_path, table_fields(written.shape.schema, [RECORD_KEY]))
        ]
    logs = [(path, size) for path, size in found.log_paths if path in added]
    for block in iter_log_records(storage, logs, written.shape, found.blocks, [RECORD_KEY], is_strict=True):
        parts.append(block.records.column(RECORD_KEY) if isinstance(block, DataBlock) else block.keys)
    return pc.unique(pa.concat_arrays(parts))


def _living(storage: Storage, found: SliceRead, keys: Any, written: WrittenRows) -> Any:
    """Those of the keys that the slice shows rows for."""
    shown: list[Any] = [pa.array([], pa.string())]
    for batch in ArrowSliceReader(storage).read(found, written.shape, [RECORD_KEY]):
        column: Any = batch.column(RECORD_KEY)
        shown.append(column.filter(pc.is_in(column, value_set=keys)))
    return pc.unique(pa.concat_arrays(shown))


def _epoch_ms(instant: str, is_utc: bool) -> int:
    """The moment that an instant names, in the time zone of the table's writers."""
    moment = datetime.strptime(instant[:17].ljust(17, "0") + "000", "%Y%m%d%H%M%S%f")  # noqa: DTZ007
    zoned = moment.replace(tzinfo=UTC) if is_utc else moment.astimezone()
    return int(zoned.timestamp() * 1000)

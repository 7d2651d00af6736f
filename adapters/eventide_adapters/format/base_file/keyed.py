"""Reads a base file's records with their record keys, also in tables without meta fields."""

from collections.abc import Callable, Collection, Iterator, Sequence

import pyarrow as pa

from eventide_adapters.format.avro.schema import AvroField, table_fields
from eventide_adapters.format.base_file.parquet import BaseFooter, read_base, read_base_and_footer
from eventide_adapters.format.base_file.virtual_key import with_record_keys
from eventide_adapters.format.parquet.open_file import OpenBaseFile
from eventide_adapters.format.parquet.row_pages import RowsOfGroups
from eventide_core.errors import CorruptBaseFileError
from eventide_core.ports import Storage
from eventide_core.table.files.slice_read import columns_in_base
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.records.schema import RECORD_KEY


def read_keyed_base(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    shape: RecordShape,
    dictionary_candidates: Collection[str] = (),
    choice: Callable[[OpenBaseFile], RowsOfGroups] | None = None,
    few_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """A base file's records as in `read_base`, with their record keys if `target` has the key column.

    Raises CorruptBaseFileError, too, for a record without key in a table with meta fields: as if the footer names the
    column differently, because no checksum covers a footer.
    """
    named = columns_in_base(shape, path)
    batches = read_base(storage, path, _with_key_fields(target, shape), dictionary_candidates, choice, named, few_rows)
    return _keyed(batches, path, target, shape)


def read_keyed_base_and_footer(
    storage: Storage,
    path: str,
    target: Sequence[AvroField],
    shape: RecordShape,
    dictionary_candidates: Collection[str] = (),
) -> tuple[BaseFooter, Iterator[pa.RecordBatch]]:
    """The footer of a base file, and its records as `read_keyed_base` has them. Opens the file immediately."""
    named = columns_in_base(shape, path)
    footer, batches = read_base_and_footer(storage, path, _with_key_fields(target, shape), dictionary_candidates, named)
    return footer, _keyed(batches, path, target, shape)


def _with_key_fields(target: Sequence[AvroField], shape: RecordShape) -> Sequence[AvroField]:
    """The columns to read for `target`."""
    names = {field.name for field in target}
    if not shape.key_fields or RECORD_KEY not in names:
        return target
    return table_fields(shape.schema, {*names, *shape.key_fields})


def _keyed(
    batches: Iterator[pa.RecordBatch], path: str, target: Sequence[AvroField], shape: RecordShape
) -> Iterator[pa.RecordBatch]:
    names = [field.name for field in target]
    for batch in batches:
        if shape.key_fields:
            yield with_record_keys(batch, shape.key_fields).select(names)
            continue
        if RECORD_KEY in names and batch.column(RECORD_KEY).null_count:
            raise CorruptBaseFileError(
                f"base file {path} has a record without key; restore it, or roll back the commit that wrote it"
            )
        yield batch

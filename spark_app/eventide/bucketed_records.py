"""The records of one commit, checked, and sorted into the partitions and buckets that they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from eventide.new_table import NewTable
from eventide_adapters.format.avro_schema import META_FIELDS, arrow_schema
from eventide_core.action.index import bucket_of
from eventide_core.errors import ConfigError, UnsupportedTableError


@dataclass(frozen=True, slots=True)
class BucketWrite:
    """What one commit writes into one bucket: upserts with the table's columns, deletes with their ordering values."""

    partition: str
    bucket: int
    upserts: pa.Table | None
    keys: tuple[str, ...]
    deletes: pa.Array[Any] | None
    deleted_keys: tuple[str, ...]

    @property
    def upsert_count(self) -> int:
        return len(self.keys)

    def path_of(self, name: str) -> str:
        return f"{self.partition}/{name}" if self.partition else name

    def with_meta_columns(self, instant: str, file_name: str) -> pa.Table:
        """The upserts with Hudi's meta columns in front."""
        assert self.upserts is not None
        count = self.upsert_count
        numbers = [f"{instant}_{self.bucket}_{row}" for row in range(count)]
        values = ([instant] * count, numbers, list(self.keys), [self.partition] * count, [file_name] * count)
        meta = [pa.array(column, pa.string()) for column in values]
        schema = pa.schema([*(pa.field(name, pa.string()) for name in META_FIELDS), *self.upserts.schema])
        return pa.table([*meta, *self.upserts.columns], schema=schema)


def bucket_writes(table: NewTable, upserts: pa.Table | None, deletes: pa.Table | None) -> tuple[BucketWrite, ...]:
    """What each bucket gets, by partition and bucket.

    Raises ConfigError for columns or values that do not fit and for a key that is there twice, UnsupportedTableError for
    a key that Hudi's index misreads.
    """
    changed = _route(table, _checked_upserts(table, upserts))
    deleted = _route(table, _checked_deletes(table, deletes))
    _require_single_keys([*changed.values(), *deleted.values()])
    writes: list[BucketWrite] = []
    for place in sorted(changed.keys() | deleted.keys()):
        upsert, delete = changed.get(place), deleted.get(place)
        writes.append(
            BucketWrite(
                *place,
                upserts=upsert.records if upsert else None,
                keys=upsert.keys if upsert else (),
                deletes=delete.records.column(table.ordering_field).combine_chunks() if delete else None,
                deleted_keys=delete.keys if delete else (),
            )
        )
    return tuple(writes)


@dataclass(frozen=True, slots=True)
class _Routed:
    """Records of one partition and bucket, and their keys."""

    partition: str
    records: pa.Table
    keys: tuple[str, ...]


def _checked_upserts(table: NewTable, upserts: pa.Table | None) -> pa.Table | None:
    if upserts is None:
        return None
    records = _conform(upserts, arrow_schema(table.schema))
    if records.column(table.ordering_field).null_count:
        raise ConfigError(
            f"ordering field {table.ordering_field!r} is null in a record, which no reader could order; give it a value"
        )
    return records


def _checked_deletes(table: NewTable, deletes: pa.Table | None) -> pa.Table | None:
    if deletes is None:
        return None
    columns = arrow_schema(table.schema)
    ordering = columns.field(table.ordering_field).with_nullable(True)
    if ordering.name not in deletes.column_names:
        deletes = deletes.append_column(ordering, pa.nulls(len(deletes), ordering.type))
    names = [name for name in (table.record_key_field, table.partition_field) if name is not None]
    return _conform(deletes, pa.schema([*(columns.field(name) for name in names), ordering]))


def _route(table: NewTable, records: pa.Table | None) -> dict[tuple[str, int], _Routed]:
    if records is None:
        return {}
    keys = [_key(value, table.record_key_field) for value in records.column(table.record_key_field).to_pylist()]
    folders = [""] * len(records)
    if table.partition_field is not None:
        values = records.column(table.partition_field).to_pylist()
        folders = [table.partition_path(_text(value, table.partition_field)) for value in values]
    rows: dict[tuple[str, int], list[int]] = {}
    for row, (folder, key) in enumerate(zip(folders, keys, strict=True)):
        rows.setdefault((folder, bucket_of(key, table.buckets)), []).append(row)
    return {
        place: _Routed(place[0], records.take(pa.array(chosen)), tuple(keys[row] for row in chosen))
        for place, chosen in rows.items()
    }


def _conform(records: pa.Table, schema: pa.Schema) -> pa.Table:
    missing = [name for name in schema.names if name not in records.column_names]
    if missing:
        raise ConfigError(f"records without the column {missing[0]!r}; they have {', '.join(records.column_names)}")
    try:
        return records.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise ConfigError(f"records do not fit the table's schema: {error}") from error


def _require_single_keys(routed: Sequence[_Routed]) -> None:
    seen: set[tuple[str, str]] = set()
    for part in routed:
        for key in part.keys:
            if (part.partition, key) in seen:
                raise ConfigError(f"record key {key!r} is twice in one commit; merge its versions first")
            seen.add((part.partition, key))


def _key(value: Any, field: str) -> str:
    key = _text(value, field)
    if ":" in key:
        raise UnsupportedTableError(f"record key {key!r}: Hudi's bucket index misreads a key with a colon")
    return key


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str | int) or value == "":
        raise ConfigError(f"{field} is {value!r} in a record: keys and partitions are texts or whole numbers")
    return str(value)

"""The change log of a compaction: what is different between a slice's old base file and the new one.

    .<file id>_<C>.log.1_<write token>.cdc := one block of type CDC_DATA, whose content is that of an Avro data block

The records have an `op` (i, u or d), and by mode of supplemental logging (table/change_log.py) the record key, the
compaction's instant, and the rows before and after without Hudi's meta fields. Hudi's own compactions write the same.

1. Of the old base file's rows and of the new one's, those are kept whose key is in the log files.
2. A row is identified by key, commit time and sequence number. Rows in both files are unchanged.
3. A new row of a key that has lost its old row is an update, any other new row is an insert, and an old row without a
   new one is a delete.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.avro.encode import Part, can_encode, encode_parts
from eventide_adapters.format.avro.schema import RECORD_KEY, arrow_schema, record_fields
from eventide_core.ports import MergeTask
from eventide_core.table.change_log import SupplementalLogging
from eventide_core.table.log_block import BlockType, HeaderKey, encode_block

_CONTENT_VERSION: Final = 3  # of an Avro data block
_VERSION: Final = ("_hoodie_commit_time", "_hoodie_commit_seqno")
_NULLABLE: Final = ["null", "string"]


@dataclass(slots=True)
class ChangeLog:
    """Collects the rows of a merge. `keys` are those of the log files, an Arrow array."""

    task: MergeTask
    keys: Any
    _before: list[pa.Table] = field(default_factory=list[pa.Table])
    _after: list[pa.Table] = field(default_factory=list[pa.Table])

    def reading(self, base: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches of the old base file, unchanged."""
        for batch in base:
            self._before.append(self._met(pa.Table.from_batches([batch])))
            yield batch

    def written(self, rows: pa.Table) -> None:
        """Rows of the new base file."""
        self._after.append(self._met(rows))

    def encoded(self) -> bytes:
        """The content of the change log file. The same rows give the same bytes."""
        before, after = self._joined(self._before), self._joined(self._after)
        before, after = _without(before, after), _without(after, before)
        place: Any = pc.index_in(after.column(RECORD_KEY), value_set=before.column(RECORD_KEY).combine_chunks())
        is_update = place.is_valid().to_numpy(zero_copy_only=False)
        is_gone = np.ones(len(before), np.bool_)
        old = place.combine_chunks().drop_null().to_numpy()
        is_gone[old] = False
        gone = np.flatnonzero(is_gone)
        ops = np.concatenate([np.where(is_update, "u", "i"), np.full(len(gone), "d")])
        # Of each record, its row before and after, -1 for none.
        was = np.full(len(ops), -1)
        was[: len(after)][is_update] = old
        was[len(after) :] = gone
        now = np.full(len(ops), -1)
        now[: len(after)] = np.arange(len(after))
        gone_rows = before.take(gone)
        keys: list[Any] = [*after.column(RECORD_KEY).to_pylist(), *gone_rows.column(RECORD_KEY).to_pylist()]
        return self._block(ops.tolist(), keys, (before, was), (after, now))

    def _block(self, ops: list[str], keys: list[str], before: _Image, after: _Image) -> bytes:
        schema = change_schema(self.task.shape.schema, self.task.logged)
        texts = {"op": ops, "ts_ms": [self.task.instant] * len(ops), "record_key": keys}
        columns: dict[str, Any] = {name: pa.array(found, pa.string()) for name, found in texts.items()}
        columns |= {"before": before, "after": after}
        parts = [columns[part["name"]] for part in schema["fields"]]
        content = struct.pack(">ii", _CONTENT_VERSION, len(ops)) + self._records(schema, parts, len(ops))
        header = {
            HeaderKey.INSTANT_TIME: self.task.instant,
            HeaderKey.SCHEMA: json.dumps(schema, separators=(",", ":")),
        }
        return encode_block(BlockType.CDC_DATA, header, content)

    def _records(self, schema: Any, parts: list[Any], count: int) -> bytes:
        fields = record_fields(self.task.shape.schema)
        if can_encode(fields):
            null_branch = schema["fields"][0]["type"].index("null")
            return encode_parts([_part(part, null_branch) for part in parts], fields, count)
        names, written = [part["name"] for part in schema["fields"]], fastavro.parse_schema(schema)
        values = [_values(part) for part in parts]
        found = bytearray()
        for record in zip(*values, strict=True):
            encoded = io.BytesIO()
            fastavro.schemaless_writer(encoded, written, dict(zip(names, record, strict=True)))
            found += struct.pack(">i", encoded.tell()) + encoded.getvalue()
        return bytes(found)

    def _met(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=self.keys))

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        columns = [*_VERSION, RECORD_KEY]
        wanted = pa.schema([*(pa.field(name, pa.string()) for name in columns), *arrow_schema(self.task.shape.schema)])
        return pa.concat_tables([wanted.empty_table(), *(table.select(wanted.names).cast(wanted) for table in tables)])


_Image: TypeAlias = tuple[pa.Table, Any]
"""Rows, and for each record of the change log the place of its row, -1 for none."""


def change_schema(table_schema: str, mode: SupplementalLogging) -> Any:
    """The Avro schema of a change log, as Hudi names its parts."""
    if mode is SupplementalLogging.OP_KEY_ONLY:
        fields = [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")]
        return {"type": "record", "name": "Record", "fields": fields}
    row = json.loads(table_schema)
    space = row.get("namespace")
    name = row["name"] if space is None or "." in row["name"] else f"{space}.{row['name']}"

    def nullable(name: str, kinds: list[Any]) -> dict[str, Any]:
        return {"name": name, "type": kinds, "doc": "", "default": None}

    before = nullable("before", ["null", row])
    if mode is SupplementalLogging.DATA_BEFORE:
        fields = [nullable("op", _NULLABLE), nullable("record_key", _NULLABLE), before]
    else:
        after = nullable("after", ["null", name])
        fields = [nullable("op", _NULLABLE), nullable("ts_ms", _NULLABLE), before, after]
    named = {} if space is None else {"namespace": space}
    return {"type": "record", "name": "CDC", **named, "doc": "", "fields": fields}


def _without(rows: pa.Table, others: pa.Table) -> pa.Table:
    """The rows whose version the others don't have."""
    return rows.filter(pc.invert(pc.is_in(_versions(rows), value_set=_versions(others).combine_chunks())))


def _versions(rows: pa.Table) -> Any:
    join: Any = pc.binary_join_element_wise
    return join(*(rows.column(name) for name in (RECORD_KEY, *_VERSION)), "\0", null_handling="replace")


def _part(part: Any, null_branch: int) -> Part:
    if isinstance(part, tuple):
        rows, places = part
        is_there = places >= 0
        return Part(rows.take(pa.array(places[is_there])), is_there, null_branch=0)
    return Part(pa.table({"": part}), np.ones(len(part), np.bool_), null_branch=null_branch)


def _values(part: Any) -> list[Any]:
    if not isinstance(part, tuple):
        texts: list[Any] = part.to_pylist()
        return texts
    rows, places = part
    found = rows.to_pylist(maps_as_pydicts="strict")
    return [None if place < 0 else found[place] for place in places.tolist()]

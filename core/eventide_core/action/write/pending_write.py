"""A write that has made its files, and its result once it has completed."""

from dataclasses import dataclass

from eventide_core.action.write.basis import ReadBasis
from eventide_core.action.write.conflict import WrittenGroups
from eventide_core.table.schema.avro_schema import AvroSchema, SchemaChanges
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Action


@dataclass(frozen=True, slots=True)
class WriteResult:
    """A completed write. `rows` counts upserts and deletes; a delete of a key that the table never had may not count.

    `upserts` and `deletes` count the records of each kind that were written, `files` the base and log files that it made,
    and `bytes_written` their sizes; a base file also has the older rows of its group. `dropped_indexes` are the ones of the
    metadata table that could not follow the write. `completion_time` is what an incremental query counts from: on version 6,
    which records no completion, it is the instant. `added_columns` and `widened_columns` are what the write changed of the
    table's schema. `rows_inserted`, `rows_updated` and `rows_deleted` count rows of the snapshot, for a write that has read
    them; otherwise, they are None.
    """

    instant: str
    rows: int
    upserts: int
    deletes: int
    files: int
    bytes_written: int
    dropped_indexes: tuple[str, ...] = ()
    completion_time: str | None = None
    added_columns: tuple[str, ...] = ()
    widened_columns: tuple[str, ...] = ()
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """A write whose files exist, but which has not completed: no reader sees it yet.

    `action` and `metadata` are its completed file's. `written` is what it is compared by with other writes, `seen`
    the state that it builds on, by requested time, with `config` and `schema_before`, the table's settings and schema.
    `schema_changes` are what it adds to that. `basis`, if it was computed from rows that were read before it began.
    """

    instant: str
    action: Action
    metadata: CommitMetadata
    written: WrittenGroups
    seen: frozenset[str]
    config: TableConfig
    schema_changes: SchemaChanges
    basis: ReadBasis | None = None
    schema_before: AvroSchema | None = None

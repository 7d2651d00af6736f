"""Changes a table's schema by a commit without files, as Hudi's ALTER TABLE does.

Order of writes, and what a crash after each leaves:

1. The change is checked against the table: nothing is written yet.
2. Under the lock: the heartbeat, `<instant>.deltacommit.requested` and `.inflight`. A crash leaves a pending write, which
   changes nothing, and which the next writer rolls back.
3. The table is read again, and the change is checked again.
4. Under the lock, as a write of records completes: if another write has changed the schema since step 3, this one
   conflicts; a write of records that completes later takes over the new schema (table_schema.py).
"""

from dataclasses import dataclass
from typing import Final

from eventide_core.action.write.conflict import WrittenGroups
from eventide_core.action.write.index import Index, IndexType
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.action.write.schema_alteration import SchemaAlteration, altered_schema
from eventide_core.errors import SchemaChangeError, UnsupportedTableError
from eventide_core.ports import RowChange
from eventide_core.service.state.table import TableState
from eventide_core.service.write.append import Append
from eventide_core.service.write.table_schema import internal_schema_after, refuse_revived
from eventide_core.table.records.schema import SchemaChanges, field_names, schema_changes
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.checksums import with_checksums
from eventide_core.table.timeline.commit_metadata import (
    ADDED_COLUMNS_KEY,
    ALTER_SCHEMA,
    DROPPED_COLUMNS_KEY,
    WIDENED_COLUMNS_KEY,
    CommitMetadata,
)
from eventide_core.table.timeline.instant import Action

_IS_DELETED: Final = "_hoodie_is_deleted"
_OVER_COLUMNS: Final = ("secondary_index_", "expr_index_")


@dataclass(frozen=True, slots=True)
class AlterResult:
    """A change of a table's schema. `schema` is the Avro schema after it.

    `instant` is None for a dry run, and if the table has that schema already.
    """

    schema: str
    changes: SchemaChanges
    instant: str | None = None
    completion_time: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns in their order."""
        return field_names(self.schema)


@dataclass(frozen=True, slots=True)
class Alter:
    append: Append

    def alter(self, alteration: SchemaAlteration, *, is_dry_run: bool = False) -> AlterResult:
        """Changes the schema.

        Raises SchemaChangeError, InvalidColumnNameError and UnsupportedTableError before anything is written; BusyError
        where something pending excludes a write; WriteConflictError if another writer changed the schema meanwhile.
        """
        files = self.append.files
        state = TableState.load(files)
        after = self._altered(state, alteration)
        found = AlterResult(after, schema_changes(state.schema, after))
        if is_dry_run or after == state.schema:
            return found
        self.append.metadata.check(state.config, RowChange.WRITTEN)
        instant = self.append.instants.request(Action.DELTA_COMMIT)
        try:
            state = TableState.load(files)
            pending = _pending(state, self._altered(state, alteration), instant)
        except BaseException as failure:
            self.append.instants.abort(instant, failure, list)
            raise
        written = self.append.complete(pending)
        assert pending.metadata.schema is not None
        return AlterResult(pending.metadata.schema, pending.schema_changes, instant, written.completion_time)

    def _altered(self, state: TableState, alteration: SchemaAlteration) -> str:
        root = self.append.files.storage.root
        if state.config.is_copy_on_write or state.config.captures_changes:
            kind = "COPY_ON_WRITE" if state.config.is_copy_on_write else "a table that captures changes"
            raise UnsupportedTableError(f"{root}: eventide does not write to {kind}; alter the table with Hudi")
        after = altered_schema(state.schema, alteration, _fixed_columns(state))
        _refuse_indexed(state.config, schema_changes(state.schema, after))
        refuse_revived(state, schema_changes(state.schema, after).added)
        internal_schema_after(state, after, "0")  # refuses a type that it cannot hold
        return after


def _fixed_columns(state: TableState) -> dict[str, str]:
    """The columns by which records are found and merged, with what each is."""
    config = state.config
    marker = state.delete_marker
    found = {_IS_DELETED: "the delete marker"} | ({} if marker is None else {marker.field: "the delete marker"})
    for names, what in (
        ((config.event_time_field,), "the event time"),
        (config.ordering_fields, "an ordering field"),
        (config.partition_fields, "a partition field"),
        (config.record_key_fields, "a record key field"),
    ):
        found |= {name.partition(".")[0]: what for name in names if name}
    return found


def _refuse_indexed(config: TableConfig, changes: SchemaChanges) -> None:
    """Raises SchemaChangeError for a dropped or widened column of a table with an index over values of columns."""
    named = [name for name in config.metadata_partitions if name.startswith(_OVER_COLUMNS)]
    changed = (*changes.dropped, *changes.widened)
    if named and changed:
        raise SchemaChangeError(
            f"column {changed[0]!r} cannot change: the metadata table has {named[0]}, which may be over it; drop that index "
            "with Hudi, then try again"
        )


def _pending(state: TableState, schema: str, instant: str) -> PendingWrite:
    before = state.schema
    changes = schema_changes(before, schema)
    named = (
        (ADDED_COLUMNS_KEY, changes.added),
        (WIDENED_COLUMNS_KEY, changes.widened),
        (DROPPED_COLUMNS_KEY, changes.dropped),
    )
    extra = {"schema": schema, **{key: ",".join(names) for key, names in named if names}}
    extra |= internal_schema_after(state, schema, instant)
    nothing = WrittenGroups(instant, Index(IndexType.SIMPLE), frozenset(), frozenset())
    return PendingWrite(
        instant,
        Action.DELTA_COMMIT,
        CommitMetadata({}, with_checksums(extra, (), state.config.identity_settings), ALTER_SCHEMA),
        nothing,
        frozenset(i.requested_time for i in (*state.timeline.completed, *state.timeline.pending_plans)),
        changes,
        None,
        before,
    )

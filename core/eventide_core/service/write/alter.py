"""Changes a table's schema by a commit without files, as Hudi's ALTER TABLE does.

Order of writes, and what a crash after each leaves:

1. The change is checked against the table: nothing is written yet.
2. Under the lock: the heartbeat, `<instant>.deltacommit.requested` and `.inflight`. A crash leaves a pending write, which
   changes nothing, and which the next writer rolls back.
3. The table is read again, and the change is checked again.
4. Under the lock, as a write of records completes: if another write has changed the schema since step 3, this one
   conflicts; a write of records that completes later takes over the new schema (table_schema.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core import config as keys
from eventide_core.action.write.conflict import WrittenGroups
from eventide_core.action.write.index import Index, IndexType
from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.action.write.schema_alteration import SchemaAlteration, altered_schema, rename_refused
from eventide_core.errors import SchemaChangeError, UnsupportedTableError
from eventide_core.service.common.state.table import TableState
from eventide_core.service.write.append import Append
from eventide_core.service.write.table_schema import internal_schema_after, refuse_revived
from eventide_core.table.schema.avro_schema import IS_DELETED, AvroSchema, SchemaChanges, schema_changes
from eventide_core.table.settings.metadata_table import EXPRESSION_INDEX_PREFIX, SECONDARY_INDEX_PREFIX, RowChange
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.checksums import with_checksums
from eventide_core.table.timeline.contents.commit_metadata import (
    ADDED_COLUMNS_KEY,
    ALTER_SCHEMA,
    DROPPED_COLUMNS_KEY,
    RENAMED_COLUMNS_KEY,
    SCHEMA_KEY,
    WIDENED_COLUMNS_KEY,
    CommitMetadata,
)
from eventide_core.table.timeline.instant import Action

_OVER_COLUMNS: Final = (SECONDARY_INDEX_PREFIX, EXPRESSION_INDEX_PREFIX)


@dataclass(frozen=True, slots=True)
class AlterResult:
    """A change of a table's schema. `schema` is the text of the Avro schema after it, without Hudi's meta fields.

    `changes` are what the schema differs in from the one before. `instant` is None for a dry run, and if the table has that
    schema already; so is `completion_time`, which on version 6, where none is recorded, is the instant.
    """

    schema: str
    changes: SchemaChanges
    instant: str | None = None
    completion_time: str | None = None

    @property
    def note(self) -> str | None:
        """What readers have to know of the change, if anything."""
        if not self.changes.renamed:
            return None
        names = ", ".join(f"{old} to {new}" for old, new in self.changes.renamed)
        return (
            f"renamed {names}: readers without hoodie.schema.on.read.enable=true, and hudi-rs, show null for older values "
            "until no file has the old name"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the table's columns in their order."""
        return AvroSchema.of(self.schema).field_names


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
        planned = AlterResult(after.text, schema_changes(state.schema, after, alteration.rename))
        if is_dry_run or after == state.schema:
            return planned
        self.append.metadata.check(state.config, RowChange.WRITTEN)
        requested = self.append.instants.request(Action.DELTA_COMMIT)
        instant = requested.instant
        try:
            state = requested.state(files, state)
            pending = _pending(state, self._altered(state, alteration), instant, alteration.rename)
        except BaseException as failure:
            self.append.instants.abort(instant, failure, list)
            raise
        written = self.append.complete(pending)
        assert pending.metadata.schema is not None
        return AlterResult(pending.metadata.schema.text, pending.schema_changes, instant, written.completion_time)

    def _altered(self, state: TableState, alteration: SchemaAlteration) -> AvroSchema:
        root = self.append.files.storage.root
        if state.config.is_copy_on_write or state.config.captures_changes:
            kind = "COPY_ON_WRITE" if state.config.is_copy_on_write else "a table that captures changes"
            raise UnsupportedTableError(f"{root}: eventide does not write to {kind}; alter the table with Hudi")
        renamed = alteration.rename
        after = altered_schema(state.schema, alteration, _fixed_columns(state))
        if state.internal_schema is None and not self.append.options.get(keys.SCHEMA_ON_READ):
            for old, new in renamed.items():
                raise rename_refused(old, new)
        changes = schema_changes(state.schema, after, renamed)
        _refuse_indexed(state.config, changes)
        _refuse_stated(state.config, renamed)
        refuse_revived(state, (*changes.added, *renamed.values()))
        internal_schema_after(state, after, "0", renamed)  # refuses a type that it cannot hold
        return after


def _fixed_columns(state: TableState) -> dict[str, str]:
    """The columns by which records are found and merged, with what each is."""
    config = state.config
    marker = state.delete_marker
    fixed = {IS_DELETED: "the delete marker"} | ({} if marker is None else {marker.field: "the delete marker"})
    for names, what in (
        ((config.event_time_field,), "the event time"),
        (config.ordering_fields, "an ordering field"),
        (config.partition_fields, "a partition field"),
        (config.record_key_fields, "a record key field"),
    ):
        fixed |= {name.partition(".")[0]: what for name in names if name}
    return fixed


def _refuse_indexed(config: TableConfig, changes: SchemaChanges) -> None:
    """Raises SchemaChangeError for a dropped, widened or renamed column of a table with an index over values of columns."""
    named = [name for name in config.metadata_partitions if name.startswith(_OVER_COLUMNS)]
    changed = (*changes.dropped, *changes.widened, *(old for old, _ in changes.renamed))
    if named and changed:
        raise SchemaChangeError(
            f"column {changed[0]!r} cannot change: the metadata table has {named[0]}, which may be over it; drop that index "
            "with Hudi, then try again"
        )


def _refuse_stated(config: TableConfig, renamed: Mapping[str, str]) -> None:
    """Raises SchemaChangeError for a renamed column that a setting of the table names: engines would look for that name."""
    for old, new in renamed.items():
        for key, value in config.properties.items():
            if old in value.replace(":", ",").split(","):
                raise SchemaChangeError(
                    f"column {old!r} cannot be renamed to {new!r}: the table's setting {key}={value} names it; add the "
                    f"column {new!r}, update it with the values of {old!r}, then drop {old!r}"
                )


def _pending(state: TableState, schema: AvroSchema, instant: str, renamed: Mapping[str, str]) -> PendingWrite:
    before = state.schema
    changes = schema_changes(before, schema, renamed)
    named = (
        (ADDED_COLUMNS_KEY, changes.added),
        (WIDENED_COLUMNS_KEY, changes.widened),
        (DROPPED_COLUMNS_KEY, changes.dropped),
        (RENAMED_COLUMNS_KEY, tuple(f"{old}={new}" for old, new in changes.renamed)),
    )
    extra = {SCHEMA_KEY: schema.text, **{key: ",".join(names) for key, names in named if names}}
    extra |= internal_schema_after(state, schema, instant, renamed)
    nothing = WrittenGroups(instant, Index(IndexType.SIMPLE), frozenset(), frozenset())
    return PendingWrite(
        instant,
        Action.DELTA_COMMIT,
        CommitMetadata({}, with_checksums(extra, (), state.config.recorded_settings), ALTER_SCHEMA),
        nothing,
        frozenset(i.requested_time for i in (*state.timeline.completed, *state.timeline.pending_plans)),
        state.config,
        changes,
        None,
        before,
    )

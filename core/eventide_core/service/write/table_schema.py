"""The table's schema in a write's commit: what others have made of it since the write began, and Hudi's internal schema.

A commit states the whole schema, so a write that began before another one changed the schema would change it back:
columns would disappear, with their values, or types become narrow again. So the later commit follows:

- A write that changes nothing of the schema repeats the one that the table has by now. Files are read by names, and
  their types are promoted, so what it wrote before remains readable.
- If both change the schema, the later one conflicts.

A table whose schema evolves on read (table/schema/internal_schema.py) has the internal schema of its last write. So each
write repeats it or evolves it, and puts a history file before its commit, as Hudi does: Hudi uses a history only if its
commit is on the active timeline, and without one reads renamed columns as null.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from eventide_core.action.write.pending_write import PendingWrite
from eventide_core.errors import SchemaChangeError, WriteConflictError
from eventide_core.ports import ArchivedTimeline
from eventide_core.service.common.state.table import TableState, archived_writes
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.schema.internal_schema import (
    LATEST_SCHEMA_KEY,
    evolved,
    extended_history,
    first_versions,
    parse_version,
    schema_commit_path,
    unstable_names,
)
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY, with_checksums
from eventide_core.table.timeline.contents.commit_metadata import SCHEMA_KEY, CommitMetadata
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.timeline import Timeline

_STATED: Final = (SCHEMA_KEY, LATEST_SCHEMA_KEY)


def internal_schema_after(
    state: TableState, schema: AvroSchema, instant: str, renamed: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The extra metadata with the internal schema of a write that leaves the table with `schema`; empty without one.

    With columns `renamed`, a table without an internal schema gets one.
    """
    internal, before = state.internal_schema, state.known_schema
    if internal is None and renamed:
        internal = next(iter(_first_versions(state.timeline, state.archive, state.commit)), None)
    if internal is None or before is None:
        return {}
    return {LATEST_SCHEMA_KEY: evolved(internal, before, schema, instant, renamed)}


def refuse_revived(state: TableState, added: Sequence[str]) -> None:
    """Raises SchemaChangeError for a new column with the name of one that was dropped.

    Files are read by names, so the values of the dropped column would come back. Instants in the names of files do not
    show whether one still has them: a left-over of a compaction has a new name.
    """
    if not added:
        return
    for write in chain(reversed(state.timeline.writes), state.archived_writes()):
        known = state.commit(write).schema
        revived = [] if known is None else [name for name in added if name in known.field_names]
        if revived:
            raise SchemaChangeError(
                f"a column {revived[0]!r} was dropped after {write.requested_time}, and its values in older files would "
                "come back; choose another name"
            )


def _first_versions(
    timeline: Timeline, archive: ArchivedTimeline, commit: Callable[[Instant], CommitMetadata | None]
) -> tuple[str, ...]:
    """The internal schemas that the writes so far had, newest first, of a table that has none yet."""
    writes = (*reversed([*archived_writes(archive, timeline)]), *timeline.writes)
    known = ((write.requested_time, commit(write)) for write in writes)
    return first_versions(
        (time, metadata.schema) for time, metadata in known if metadata is not None and metadata.schema is not None
    )


def following_schema(files: TableFiles, config: TableConfig, timeline: Timeline, pending: PendingWrite) -> PendingWrite:
    """The write with the schema that the table has by now.

    Raises WriteConflictError if both have changed it, and if readers would go by the schema of a later instant.
    """
    newest = next((i for i in reversed(timeline.writes) if files.commit(config, i).schema is not None), None)
    if newest is None:
        return pending
    current = files.commit(config, newest)
    own = pending.metadata.schema
    if own != pending.schema_before == current.schema and newest.requested_time > pending.instant:
        raise WriteConflictError(
            f"the write at {pending.instant} was not committed: it changes the table's schema, but readers go by "
            f"{newest.requested_time}, which began later and has completed; write again"
        )
    if newest.requested_time in pending.seen or current.schema in (pending.schema_before, own):
        return pending
    if own != pending.schema_before:
        raise WriteConflictError(
            f"the write at {pending.instant} was not committed: it changes the table's schema, which "
            f"{newest.requested_time} has changed in the meantime; write again"
        )
    if _names_differ(pending.metadata, current):
        raise WriteConflictError(
            f"the write at {pending.instant} was not committed: {newest.requested_time} has renamed columns in the "
            "meantime; write again"
        )
    stated = {key: current.extra_metadata[key] for key in _STATED if key in current.extra_metadata}
    own_keys = pending.metadata.extra_metadata.keys() - {*_STATED, CHECKSUMS_KEY}
    extra = {key: pending.metadata.extra_metadata[key] for key in own_keys} | stated
    checked = with_checksums(extra, pending.metadata.stats, config.recorded_settings)
    return replace(pending, metadata=replace(pending.metadata, extra_metadata=checked))


def _names_differ(own: CommitMetadata, current: CommitMetadata) -> bool:
    """Whether files with the own internal schema would be read with other names under the current one."""
    mine, now = (commit.extra_metadata.get(LATEST_SCHEMA_KEY) for commit in (own, current))
    if not mine or not now:
        return bool(now)  # the table had no numbers when the write began
    return bool(unstable_names(*(parse_version(text, f"{LATEST_SCHEMA_KEY} of a commit") for text in (mine, now))))


def put_history(
    files: TableFiles, config: TableConfig, timeline: Timeline, pending: PendingWrite, completion: str
) -> None:
    """Puts the history of the table's internal schemas beside a commit that is about to be put, if it states one."""
    latest = pending.metadata.extra_metadata.get(LATEST_SCHEMA_KEY)
    if latest is None:
        return
    history = files.schema_history({i.requested_time for i in timeline.writes})
    first: tuple[str, ...] = ()
    if history is None and not any(
        LATEST_SCHEMA_KEY in files.commit(config, i).extra_metadata for i in timeline.writes
    ):
        archive = files.archive(config)

        def commit(write: Instant) -> CommitMetadata | None:
            is_active = timeline.find(write.requested_time) is not None
            return files.commit(config, write) if is_active else archive.commit(write.requested_time)

        first = _first_versions(timeline, archive, commit)
    text = extended_history(None if history is None else history[1], latest, first)
    completed = config.layout.recorded_completion(completion)
    files.storage.put_if_absent(schema_commit_path(pending.instant, completed), text.encode())

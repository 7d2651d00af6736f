"""The files of Hudi's timeline <-> values: completed commits here, compaction plans in `compaction_plan`.

    version 6     a completed commit is JSON
    8 and later   it is an Avro object container of HoodieCommitMetadata or HoodieReplaceCommitMetadata

A reader distinguishes them by the bytes, never by the version, because an upgraded table has both. The module `write_stats`
handles their write stats.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType
from fastavro.types import Schema

from eventide_adapters.format.timeline import clean, compaction_plan, rollback
from eventide_adapters.format.timeline.container import (
    MAGIC,
    SCHEMA_REMEMBERED_MAX,
    ContainerSchema,
    check_size,
    checked_schema,
    read_datum,
    read_record,
    schema_definition,
    unwrapped,
    write_container,
)
from eventide_adapters.format.timeline.document import Document, corrupt
from eventide_adapters.format.timeline.write_stats import STATS_FIELD, avro_stat, json_stat, stats_of
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.layout import layout_of

_COMMIT = schema_definition("commit_metadata")
_REPLACED = schema_definition("replaced_file_ids")
_COMMIT_SCHEMA = ContainerSchema.of(_COMMIT)
_REPLACE_COMMIT_SCHEMA = ContainerSchema.of(
    _COMMIT | {"name": "HoodieReplaceCommitMetadata", "fields": [*_COMMIT["fields"], _REPLACED]}
)

_COLUMNS_BYTES_MIN = 64 * 1024  # a smaller commit, of about 200 stats, is read sooner than numpy is imported


class HudiMetadataCodec:
    """Implements `ports.MetadataCodec`. Stateless, so it can be shared and pickled."""

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        """The metadata of a completed commit, delta commit or replacecommit.

        Raises CorruptTimelineError for an empty or torn file, UnsupportedTableError for a file that is too large.
        """
        if not data:
            raise corrupt(path, "is empty, though its instant has completed")
        return avro_commit(data, path) if data.startswith(MAGIC) else commit_of(read_json(data, path))

    def decode_archived_commit(self, data: bytes, path: str) -> CommitMetadata:
        """The metadata of an archived commit. If Hudi 1.0 upgraded the table, it is a bare record without its schema."""
        if not data or data.startswith((MAGIC, b"{")):
            return self.decode_commit(data, path)
        return commit_of(read_datum(_COMMIT_SCHEMA, data, path))

    def encode_commit(self, metadata: CommitMetadata, table_version: int) -> bytes:
        """The bytes of a completed commit, as Hudi writes them for a table of that version."""
        if not layout_of(table_version).needs_hudi_1:
            return json.dumps(_record(metadata, json_stat)).encode()
        record = _record(metadata, avro_stat) | {"version": 1}
        schema = _REPLACE_COMMIT_SCHEMA if metadata.replaced_file_ids else _COMMIT_SCHEMA
        return write_container(schema, record)

    decode_plan = staticmethod(compaction_plan.decode_plan)
    encode_plan = staticmethod(compaction_plan.encode_plan)
    decode_rollback_plan = staticmethod(rollback.decode_rollback_plan)
    encode_rollback_plan = staticmethod(rollback.encode_rollback_plan)
    decode_rollback = staticmethod(rollback.decode_rollback)
    encode_rollback = staticmethod(rollback.encode_rollback)
    decode_clean_plan = staticmethod(clean.decode_clean_plan)
    encode_clean_plan = staticmethod(clean.encode_clean_plan)
    decode_clean = staticmethod(clean.decode_clean)
    encode_clean = staticmethod(clean.encode_clean)
    decode_savepoint = staticmethod(rollback.decode_savepoint)
    encode_savepoint = staticmethod(rollback.encode_savepoint)
    decode_restore_plan = staticmethod(rollback.decode_restore_plan)
    encode_restore_plan = staticmethod(rollback.encode_restore_plan)
    encode_restore = staticmethod(rollback.encode_restore)


def read_json(data: bytes, path: str) -> Document:
    check_size(len(data), path)
    try:
        # RecursionError: brackets that are nested too deep.
        return Document.of(json.loads(data), path, "a JSON object")
    except (ValueError, RecursionError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise corrupt(path, "is neither an Avro container nor JSON") from error
        raise corrupt(path, f"is not a whole JSON document ({error})") from error


def avro_commit(data: bytes, path: str, columns_bytes_min: int = _COLUMNS_BYTES_MIN) -> CommitMetadata:
    """The metadata in a container. The stats of a record of at least so many bytes are read column by column."""
    record = unwrapped(data, path)
    if len(record.content) >= columns_bytes_min and len(record.schema.text) <= SCHEMA_REMEMBERED_MAX:
        # Not needed for a small table: it imports pyarrow.
        from eventide_adapters.format.timeline.stat_columns import read_stat_columns

        columns = read_stat_columns(record.content, record.schema)
        rest = None if columns is None else record.schema.derived(_without_stats)
        if columns is not None and rest is not None:
            after = read_record(record.content[columns.end :], rest, path)
            return replace(commit_of(after), write_stats=columns.write_stats)
    return commit_of(read_record(record.content, checked_schema(record.schema), path))


def _without_stats(schema: AvroSchema) -> Schema | None:
    """The schema of what follows the stats; None if it needs a type that the stats define."""
    definition = schema.parsed
    try:
        return fastavro.parse_schema(definition | {"fields": definition["fields"][1:]})
    except (SchemaParseException, UnknownType):
        return None


def commit_of(document: Document) -> CommitMetadata:
    """The values of a HoodieCommitMetadata or HoodieReplaceCommitMetadata, from JSON or Avro."""
    by_partition = document.document(STATS_FIELD)
    replaced = document.document("partitionToReplaceFileIds")
    extra = document.document("extraMetadata")
    texts = {key: extra.text(key) for key in extra.values}
    return CommitMetadata(
        write_stats={partition: tuple(stats_of(by_partition, partition)) for partition in by_partition.values},
        extra_metadata={key: text for key, text in texts.items() if text is not None},
        operation_type=document.text("operationType") or "UNKNOWN",
        is_compacted=document.boolean("compacted"),
        replaced_file_ids={partition: replaced.texts(partition) for partition in replaced.values},
    )


def _record(metadata: CommitMetadata, encode: Callable[[WriteStat], dict[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {
        "partitionToWriteStats": {
            partition: [encode(stat) for stat in stats] for partition, stats in metadata.write_stats.items()
        },
        "compacted": metadata.is_compacted,
        "extraMetadata": dict(metadata.extra_metadata),
        "operationType": metadata.operation_type,
    }
    if metadata.replaced_file_ids:
        record["partitionToReplaceFileIds"] = {
            partition: list(file_ids) for partition, file_ids in metadata.replaced_file_ids.items()
        }
    return record

"""Writes to a table: takes Arrow tables and Spark DataFrames, and returns a result. See `service/write/append`."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from eventide.bootstrap import Application
from eventide.options import new_tables as keys
from eventide.rows.own_place import require_own_place
from eventide.rows.pandas_rows import rows_of_pandas
from eventide.spark.types import arrow_schema_of
from eventide_adapters.format.encoding.avro.from_arrow import avro_schema_of
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.columns.plain_types import plain_table, plain_type
from eventide_adapters.format.encoding.columns.time_patterns import event_time_texts
from eventide_adapters.format.write.arrow_records import ArrowRecords
from eventide_adapters.format.write.incoming_schema import refuse_names_alike
from eventide_adapters.format.write.record_writer import RowWriter
from eventide_adapters.storage.open import open_storage
from eventide_core.action.write.index import IndexType, index_type
from eventide_core.action.write.refused_options import refuse_for_write
from eventide_core.config import (
    BUCKET_HASH_FIELDS,
    BUCKETS,
    EVENT_TIME_FIELD,
    EVENT_TIME_ZONE,
    INDEX_TYPE,
    PARTITION_TIMES,
    SANITIZE_NAMES,
    Options,
)
from eventide_core.errors import ConfigError, EventideError, InvalidRecordError
from eventide_core.ports import IncomingRecords, Storage
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE, EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_names import sanitized, sanitized_names
from eventide_core.table.schema.avro_schema import META_FIELDS, AvroSchema
from eventide_core.table.settings.key_format import KeyGenerator
from eventide_core.table.settings.new_table import NewTable
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.settings.write_shape import WriteOperation


def create_table(uri: str, schema: Any, options: Mapping[str, str], **settings: Any) -> None:
    """Creates an empty table. `settings` are as in `new_table`. Raises the errors of `new_table` and `create`."""
    made = new_table(uri, schema, options, **settings)
    require_own_place(uri, Options(options))
    create(open_storage(uri, Options(options)), made)


def new_table(
    uri: str,
    schema: Any,
    options: Mapping[str, str],
    *,
    record_key: str | Sequence[str],
    partition: str | Sequence[str] | None,
    ordering: str | None,
    event_time: str | None,
    version: int | None,
) -> NewTable:
    """The settings of a table to be created. Raises ConfigError, InvalidColumnNameError, UnsupportedTableError."""
    typed = Options(options)
    if typed.get(SANITIZE_NAMES):
        schema, record_key, partition = (
            _sanitized_schema(schema),
            _sanitized_fields(record_key),
            _sanitized_fields(partition),
        )
        ordering, event_time = (name and sanitized(name) for name in (ordering, event_time))
    for supported in (keys.TABLE_TYPE, keys.DROP_PARTITION_COLUMNS, keys.CAPTURES_CHANGES):
        typed.get(supported)  # refuses any other value
    name = typed.get(keys.TABLE_NAME) or re.sub(r"\W+", "_", uri.rstrip("/").rpartition("/")[2]) or "table"
    ordering = ordering or event_time
    rule = typed.get(keys.MERGE_MODE)
    if rule is None:
        rule = MergeRule.COMMIT_TIME_ORDERING if ordering is None else MergeRule.EVENT_TIME_ORDERING
    avro = _avro_schema(name, schema)
    # A text that orders versions need not be a time. Where it is named as the event time, each write has to give times.
    is_no_time = ordering is None or (avro.is_text(ordering) and event_time_texts(typed) == ISO_WITH_ZONE)
    default = None if is_no_time else ordering
    made = NewTable(
        name=name,
        schema=avro,
        version=typed.get(keys.TABLE_VERSION) if version is None else version,
        merge_rule=MergeRule(rule),
        record_key_fields=_names(record_key),
        partition_fields=tuple(name.partition(":")[0] for name in _names(partition)),
        ordering_field=ordering,
        is_hive_style=typed.get(keys.HIVE_STYLE),
        is_url_encoded=typed.get(keys.URL_ENCODE),
        writer_options=_writer_options(typed, event_time or default),
        partition_times=typed.below(PARTITION_TIMES),
        partition_kinds=_kinds(_names(partition)),
        wished_generator=_key_generator(typed),
    )
    refuse_for_write(typed, TableConfig.parse(made.properties(), uri), uri)
    known = arrow_schema(made.schema).names
    refuse_names_alike(known)
    _check_event_time(made, event_time, known)
    return made


def _check_event_time(made: NewTable, event_time: str | None, known: Sequence[str]) -> None:
    """Raises ConfigError for a field that can hold no event times, and if the zone of its times is unknown or not needed."""
    if event_time is not None and event_time not in known:
        raise ConfigError(f"event-time field {event_time!r} is not in the schema, which has {', '.join(known)}")
    if event_time is not None and not made.schema.may_hold_event_times(event_time):
        raise ConfigError(
            f"event-time field {event_time!r} has a type that cannot be an event time: name a field of times, dates, "
            "numbers or texts"
        )
    texts, field = EventTimeTexts.of(made.writer_options), made.writer_options.get(EVENT_TIME_FIELD)
    unused = None if texts == ISO_WITH_ZONE else texts.why_unused(field, made.schema)
    if unused is not None:
        raise ConfigError(f"option {texts}: {unused}")
    if texts.zone is None and field is not None and made.schema.is_local_time(field):
        raise ConfigError(
            f"event-time field {field!r} has times without a zone: set option {EVENT_TIME_ZONE} to their time "
            "zone, such as Europe/Berlin or UTC; the table keeps it"
        )


def create(storage: Storage, table: NewTable) -> None:
    """Creates the empty table. Raises ConfigError if a table exists."""
    if not storage.put_if_absent(PROPERTIES_PATH, table.properties().encode()):
        raise ConfigError(f"{storage.root} is already a Hudi table; write to it, or choose another path")


def arrow_records(application: Application, upserts: pa.Table | None, deletes: pa.Table | None) -> IncomingRecords:
    """Upserts and deletes of one write."""
    return ArrowRecords(upserts, deletes, application.engine, RowWriter(application.storage))


def incoming_records(application: Application, operation: WriteOperation, records: Any) -> IncomingRecords:
    """The records of a write, from Arrow or Spark; for a delete, the keys. Raises InvalidRecordError for other types."""
    is_delete = operation is WriteOperation.DELETE
    sanitizes = application.options.get(SANITIZE_NAMES)
    if hasattr(records, "mapInArrow") and hasattr(records, "sparkSession"):
        # Imported here: DataFrames exist only if PySpark is installed.
        from eventide.spark.records import SparkRecords
        from eventide.spark.types import with_names

        rows = with_names(records, lambda names: list(sanitized_names(names).values())) if sanitizes else records
        return SparkRecords(rows, RowWriter(application.storage), is_delete)
    table = sanitized_table(application, records)
    return arrow_records(application, None if is_delete else table, table if is_delete else None)


def sanitized_table(application: Application, records: Any) -> pa.Table:
    """The records as an Arrow table, with names that Avro accepts if the options say so. Raises InvalidRecordError."""
    table = arrow_table(records)
    if application.options.get(SANITIZE_NAMES):
        refuse_names_alike(table.column_names)
        schema = _sanitized_columns(table.schema)
        renamed: list[Any] = [
            pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
            for column, field in zip(table.columns, schema, strict=True)
        ]
        table = pa.table(renamed, schema=schema)
    return table


def named_apart(application: Application, records: Any) -> pa.Table:
    """The records as `sanitized_table` has them, each column with a name of its own.

    Raises what that raises, and InvalidColumnNameError for two columns of one name, or of names that differ only in case.
    """
    table = sanitized_table(application, records)
    refuse_names_alike(table.column_names)
    return table


def _writer_options(options: Options, event_time: str | None) -> dict[str, str]:
    index = (options.get(INDEX_TYPE) or IndexType.BUCKET).upper()
    index_type(index)  # refuses an unknown type before the table is created
    stated: dict[str, str] = {INDEX_TYPE: index}
    if index == IndexType.BUCKET:
        stated[BUCKETS] = str(options.get(BUCKETS))
        hashed = options.text(BUCKET_HASH_FIELDS)
        if hashed is not None:
            stated[BUCKET_HASH_FIELDS] = hashed
    if event_time is not None:
        stated[EVENT_TIME_FIELD] = event_time
    return {**stated, **event_time_texts(options).settings}


def _avro_schema(name: str, schema: Any) -> AvroSchema:
    if isinstance(schema, str):
        stated = AvroSchema.of(schema)
        arrow_schema(stated)  # refuses what no file can hold
        return stated
    own = [field for field in _columns(schema) if field.name not in META_FIELDS]
    return avro_schema_of(name, pa.schema(own))


def _columns(schema: Any) -> pa.Schema:
    if isinstance(schema, pa.Schema):
        return schema
    if not hasattr(schema, "fieldNames"):
        raise ConfigError(
            f"a {type(schema).__name__} isn't a schema: pass one of Arrow or Spark, or an Avro schema as JSON; "
            "pyarrow.Schema.from_pandas makes one of a DataFrame"
        )
    return arrow_schema_of(schema)


def _sanitized_schema(schema: Any) -> Any:
    """An Arrow schema with names that Avro accepts. An Avro schema is returned unchanged."""
    if isinstance(schema, str):
        return schema
    return _sanitized_columns(_columns(schema))


def _sanitized_columns(columns: pa.Schema) -> pa.Schema:
    kinds: list[Any] = [field.with_type(plain_type(field.type)) for field in columns]
    return pa.schema(_sanitized_each(kinds))


def _sanitized_each(fields: Sequence[Any]) -> list[Any]:
    names = sanitized_names([field.name for field in fields])
    return [field.with_name(names[field.name]).with_type(_sanitized_type(field.type)) for field in fields]


def _sanitized_type(kind: Any) -> Any:
    """The type with the names of nested fields that Avro accepts."""
    if pa.types.is_struct(kind):
        return pa.struct(_sanitized_each(list(kind)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_sanitized_type(kind.value_type)))
    if pa.types.is_map(kind):
        item: Any = kind.item_field.with_type(_sanitized_type(kind.item_type))
        return pa.map_(kind.key_type, item, kind.keys_sorted)
    return kind


def _sanitized_fields(fields: str | Sequence[str] | None) -> list[str]:
    """The fields of a key or partition path, each optionally followed by a colon and its kind."""
    pairs = (text.partition(":") for text in _names(fields))
    return [sanitized(name) + colon + kind for name, colon, kind in pairs]


def _names(fields: str | Sequence[str] | None) -> tuple[str, ...]:
    if fields is None:
        return ()
    names: object = fields.split(",") if isinstance(fields, str) else fields
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"a field's name must be a string, or a list of them, not {fields!r}")
    found = tuple(name.strip() for name in names if name.strip())
    twice = next((name for name in found if found.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"field {twice!r} is named twice in {','.join(found)!r}: name it once")
    return found


def _key_generator(options: Options) -> KeyGenerator | None:
    """The key generator that the user names; None if the fields determine it."""
    text = options.get(keys.KEY_GENERATOR)
    if text is None:
        return None
    key_generator = KeyGenerator.named(text)
    if key_generator is None:
        known = ", ".join(generator.class_name for generator in KeyGenerator)
        raise ConfigError(f"option {options.name(keys.KEY_GENERATOR)}={text!r} is not one of {known}")
    return key_generator


def _kinds(partition: Sequence[str]) -> dict[str, str]:
    """The kinds of the partition fields that name one: `field:SIMPLE`, `field:TIMESTAMP`."""
    pairs = (text.partition(":") for text in partition)
    return {name: kind.upper() for name, colon, kind in pairs if colon}


def arrow_table(records: Any) -> pa.Table:
    """The records as an Arrow table of plain types. Raises InvalidRecordError for a type that has none."""
    try:
        return plain_table(_arrow_table(records))
    except (pa.ArrowException, ValueError, TypeError) as error:
        if isinstance(error, EventideError):
            raise
        reason = ": ".join(map(str, error.args))
        raise InvalidRecordError(
            f"cannot write the {type(records).__name__}: {reason}; give each column a name of its own, and "
            "values of one type that Arrow has"
        ) from error


def _arrow_table(records: Any) -> pa.Table:
    if isinstance(records, pa.RecordBatch):
        return pa.Table.from_batches([records])
    if isinstance(records, pa.Table):
        return records
    if type(records).__module__.partition(".")[0] == "pandas" and hasattr(records, "columns"):
        return rows_of_pandas(records)
    if hasattr(records, "toArrow"):  # a DataFrame of Spark 4, whose rows the driver needs
        collected: pa.Table = records.toArrow()
        return collected
    if hasattr(records, "_collect_as_arrow"):  # of Spark 3.5
        from pyspark.sql.pandas.types import to_arrow_schema

        batches: list[pa.RecordBatch] = records._collect_as_arrow()
        return pa.Table.from_batches(batches, None if batches else to_arrow_schema(records.schema))
    if type(records).__module__.partition(".")[0] == "polars" and "Object" in map(str, getattr(records, "dtypes", ())):
        name = records.columns[[str(kind) for kind in records.dtypes].index("Object")]
        raise InvalidRecordError(
            f"column {name!r} of Polars holds objects of Python, which Arrow has no type for: cast it before, as "
            "map_elements(str, return_dtype=polars.String) does"
        )
    if hasattr(records, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(records).read_all()
    raise InvalidRecordError(
        f"cannot write records of type {type(records).__name__}: pass an Arrow table, a DataFrame of Spark, pandas or "
        "Polars, or anything else with Arrow's C stream; pyarrow.Table.from_pylist makes a table of dictionaries"
    )

"""What the user states of the table that `eventide ingest` writes to, compared with the table that exists."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from eventide import Table
from eventide.options import new_tables as keys
from eventide_core.config import BUCKET_HASH_FIELDS, BUCKETS, INDEX_TYPE, Option, Options
from eventide_core.errors import ConfigError
from eventide_core.table.property_keys import KEY_GENERATORS, TABLE_TYPE
from eventide_core.table.settings.key_format import KeyGenerator

if TYPE_CHECKING:
    from eventide_core.table.settings.table_config import TableConfig

_WIDER: Final = {(pa.int32(), pa.int64()), (pa.int32(), pa.float64()), (pa.float32(), pa.float64())}


def refuse_contradictions(table: Table, words: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Raises ConfigError for the first option that contradicts the table."""
    config = table._application.files.config()
    for name, stated, actual in _statements(config, words, Options(dict(options))):
        if stated.lower() != actual.lower():
            equals = "=" if name.startswith("--option") else " "
            raise ConfigError(
                f"{name}{equals}{stated}: the table exists, and has {actual or 'none'}; omit the option, or "
                "choose another path"
            )


def declared_types(table: Table | None, stated: pa.Schema | None, *, widens: bool) -> dict[str, Any]:
    """The types of columns that the table or the stated schema has.

    Raises ConfigError for a stated type that is not the table's, unless the write `widens` the column to it.
    """
    types = {} if table is None else {field.name: field.type for field in table.snapshot().schema}
    for field in stated or ():
        known = types.get(field.name, field.type)
        is_wider = (known, field.type) in _WIDER
        if known != field.type and not (widens and is_wider):
            cure = ", or widen the column with --add-columns" if is_wider else ""
            raise ConfigError(
                f"--schema: column {field.name!r} is {field.type}, and {known} in the table: state the table's type, omit "
                f"the column{cure}"
            )
        types[field.name] = field.type
    return types


def _statements(config: "TableConfig", words: Mapping[str, Any], options: Options) -> Iterator[tuple[str, str, str]]:
    """Each option that states something of the table: its name, what it states, and what the table has."""
    fields: tuple[tuple[str, Option[Any], tuple[str, ...]], ...] = (
        ("--record-key", keys.RECORD_KEY, config.record_key_fields),
        ("--partition", keys.PARTITION_PATH, _partition_fields(config)),
        ("--ordering", keys.ORDERING, config.ordering_fields),
    )
    for word, option, actual in fields:
        by_word = words[word.removeprefix("--").replace("-", "_")]
        for name, stated in ((word, by_word), (f"--option {option}", options.text(option))):
            if stated is not None:
                listed = [part.strip() for part in stated.split(",") if part.strip()]
                yield name, ",".join(listed), ",".join(_as_stated(actual, listed))
    if words["event_time"] is not None and config.event_time_field is not None:
        yield "--event-time", words["event_time"], config.event_time_field
    single: list[tuple[Option[Any], str | None]] = [
        (keys.TABLE_NAME, config.name),
        (keys.TABLE_VERSION, str(config.version)),
        (keys.TABLE_TYPE, config.properties.get(TABLE_TYPE)),
        (keys.MERGE_MODE, str(config.merge_rule)),
        *(
            (option, config.properties.get(str(option), "false"))
            for option in (keys.HIVE_STYLE, keys.URL_ENCODE, keys.DROP_PARTITION_COLUMNS, keys.CAPTURES_CHANGES)
        ),
        *((option, config.properties.get(str(option))) for option in (INDEX_TYPE, BUCKETS, BUCKET_HASH_FIELDS)),
    ]
    for option, known in single:
        text = options.text(option)
        if text is not None and known is not None:
            yield f"--option {option}", text, known
    yield from _key_generators(config, options)


def _key_generators(config: "TableConfig", options: Options) -> Iterator[tuple[str, str, str]]:
    stated = options.text(keys.KEY_GENERATOR)
    of_table = map(config.properties.get, KEY_GENERATORS)
    actual = next((generator for text in of_table if text and (generator := KeyGenerator.named(text))), None)
    if stated is not None and actual is not None:
        generator = KeyGenerator.named(stated)
        yield f"--option {keys.KEY_GENERATOR}", stated if generator is None else generator.value, actual.value


def _partition_fields(config: "TableConfig") -> tuple[str, ...]:
    kinds = config.partition_kinds
    return tuple(f"{name}:{kinds[name]}" if kinds.get(name) else name for name in config.partition_fields)


def _as_stated(actual: tuple[str, ...], stated: list[str]) -> list[str]:
    """The table's fields, without the kinds that the user does not state."""
    if any(":" in name for name in stated):
        return list(actual)
    return [name.partition(":")[0] for name in actual]

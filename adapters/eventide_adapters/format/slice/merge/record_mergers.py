"""Loads user-defined mergers, and calls them.

A merger is a Python class without arguments:

    class SumOfAmounts:
        deletes = "COMMIT_TIME_ORDERING"
        is_associative = True

        def merge(self, older: pa.Table, newer: pa.Table) -> pa.Table:
            amount = pc.add(older["amount"], newer["amount"])
            return newer.set_column(newer.schema.get_field_index("amount"), newer.schema.field("amount"), amount)

Row n of both tables is one key: its older and its newer record. Row n of the result is the record that both become. Only
records come here. Where one of the two is a delete, `deletes` decides (table/records/custom_merger.py).

The tables have the table's columns and Hudi's meta columns, and so must the result. `merge` depends on nothing but its
arguments: it runs in several threads and processes, and again if a task is retried.
"""

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from eventide_core.config import Options
from eventide_core.config.option import NAMES, optional
from eventide_core.errors import ConfigError, EventideError, RecordMergerError
from eventide_core.table.records.custom_merger import CustomMerger, CustomMergers
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.settings.merge_config import MERGERS_OPTION

# The option is declared here, and every run reads the options: Arrow is imported with the first record.
if TYPE_CHECKING:
    import pyarrow as pa

    from eventide_core.table.records.record_shape import RecordShape

RECORD_MERGERS = optional(
    MERGERS_OPTION,
    NAMES,
    "Python classes that merge as the Java mergers of the tables' owners do: `STRATEGY_ID=module:Class`, several with "
    "commas between. The strategy ID is the table's `hoodie.record.merge.strategy.id`.",
    otherwise="none",
)

_DELETE_RULES: Final = (MergeRule.COMMIT_TIME_ORDERING, MergeRule.EVENT_TIME_ORDERING)


class RecordMerger(Protocol):
    """What a merger is. `deletes` is COMMIT_TIME_ORDERING or EVENT_TIME_ORDERING; without `is_associative`, it is not."""

    deletes: str

    def merge(self, older: "pa.Table", newer: "pa.Table") -> "pa.Table": ...


def mergers_of(options: Options) -> CustomMergers:
    """The mergers that the options name, by strategy ID. Raises ConfigError for one that cannot be loaded."""
    known: dict[str, CustomMerger] = {}
    for pair in options.get(RECORD_MERGERS) or ():
        strategy, _, name = (part.strip() for part in pair.partition("="))
        module, _, class_name = name.partition(":")
        if not strategy or not module or not class_name:
            raise ConfigError(f"option {RECORD_MERGERS}: {pair!r} is not STRATEGY_ID=module:Class")
        if known.setdefault(strategy, described(name)).name != name:
            raise ConfigError(f"option {RECORD_MERGERS} maps {strategy} twice: to {known[strategy].name} and to {name}")
    return tuple(sorted(known.items()))


def check_merger(shape: "RecordShape") -> None:
    """Raises ConfigError if this process lacks the merger of such records. Imports no Arrow."""
    if shape.merger is not None:
        load(shape.merger.name)


def described(name: str) -> CustomMerger:
    """What the class `module:Class` declares. Raises ConfigError if it cannot be loaded or isn't a merger."""
    merger = load(name)
    deletes = getattr(merger, "deletes", None)
    if deletes not in _DELETE_RULES:
        raise ConfigError(
            f"option {RECORD_MERGERS}: {name} isn't a merger: its attribute `deletes` is {deletes!r}, which is neither "
            f"{' nor '.join(_DELETE_RULES)}; say how the Java merger decides between a delete and a record"
        )
    is_associative = getattr(merger, "is_associative", False)
    if not isinstance(is_associative, bool):
        raise ConfigError(
            f"option {RECORD_MERGERS}: {name} isn't a merger: its attribute `is_associative` is {is_associative!r}, which "
            "is neither True nor False"
        )
    return CustomMerger(name, is_associative, MergeRule(deletes))


@lru_cache(maxsize=64)
def load(name: str) -> RecordMerger:
    """The merger `module:Class`. Raises ConfigError if it cannot be loaded, or has no method `merge`."""
    module, _, class_name = name.partition(":")
    try:
        merger = getattr(import_module(module), class_name)()
    except Exception as error:
        raise ConfigError(
            f"option {RECORD_MERGERS}: {name} can't be loaded: {type(error).__name__}: {error}; install its module, or put "
            "its directory on PYTHONPATH, for this process and for Spark's executors (spark.submit.pyFiles)"
        ) from error
    if not callable(getattr(merger, "merge", None)):
        raise ConfigError(f"option {RECORD_MERGERS}: {name} isn't a merger: it has no method `merge`")
    return merger  # type: ignore[no-any-return]


def merge_rows(merger: CustomMerger, older: "pa.Table", newer: "pa.Table") -> "pa.Table":
    """The records that these pairs become. Raises RecordMergerError if the merger fails or its result doesn't fit."""
    import pyarrow as pa

    if not len(newer):
        return newer
    try:
        result: Any = load(merger.name).merge(older, newer)
    except EventideError:
        raise
    except Exception as error:
        raise RecordMergerError(
            f"the merger {merger.name} raised {type(error).__name__}: {error}; correct it, nothing was committed"
        ) from error
    why = _misfit(result, newer)
    if why is not None:
        raise RecordMergerError(f"the merger {merger.name} returned {why}; correct it, nothing was committed")
    return pa.Table.from_arrays(result.columns, schema=newer.schema)


def _misfit(result: Any, newer: "pa.Table") -> str | None:
    """Why a result is none for these records; None if it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from eventide_core.table.schema.avro_schema import RECORD_KEY

    if not isinstance(result, pa.Table):
        return f"{type(result).__name__}, not a pyarrow.Table"
    if len(result) != len(newer):
        return f"{len(result)} rows for {len(newer)} pairs of records"
    if result.column_names != newer.column_names:
        return f"the columns {', '.join(result.column_names)}, not {', '.join(newer.column_names)}"
    for field, column in zip(newer.schema, result.columns, strict=True):
        if column.type != field.type:
            return f"{column.type} in column {field.name}, which is {field.type}"
        if not field.nullable and column.null_count:
            return f"a null in column {field.name}, which has no nulls"
    keys: Any = pc.equal(result.column(RECORD_KEY), newer.column(RECORD_KEY))
    if not pc.all(keys.fill_null(False)).as_py():
        place = keys.fill_null(False).index(False).as_py()
        columns: list[Any] = [table.column(RECORD_KEY) for table in (result, newer)]
        returned, key = (column[place].as_py() for column in columns)
        return f"the record key {returned!r} for {key!r}"
    return None

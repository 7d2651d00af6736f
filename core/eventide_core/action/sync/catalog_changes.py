"""The minimal changes that bring a catalog's table up to date; none if it is up to date.

1. An object of that name that is not this table is never changed: RefusedError.
2. Properties of the catalog and of others stay. Of eventide's properties, outdated ones are removed.
3. Equivalent values stay: another spelling of the directory, or another layout of Spark's schema.
4. If the table states that it follows the last commit, its partitions are not checked. That statement is updated last.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventide_core.action.sync.catalog_tables import (
    FRESHNESS_KEYS,
    LAST_COMMIT_KEY,
    LAST_COMPLETION_KEY,
    PATH_KEY,
    PROVIDER_KEY,
    READ_OPTIMIZED_FORMAT,
    SCHEMA_PREFIX,
    SNAPSHOT_FORMAT,
)
from eventide_core.config import SYNC_TABLE
from eventide_core.errors import RefusedError
from eventide_core.table.catalog.catalog_table import EXTERNAL_TABLE, CatalogPartition, CatalogTable, is_same_place

TABLE_KINDS = (EXTERNAL_TABLE, "MANAGED_TABLE")  # Spark's SQL makes the latter
_TIMES = (LAST_COMMIT_KEY, LAST_COMPLETION_KEY)


@dataclass(frozen=True, slots=True)
class TableChange:
    """`table` is what the catalog's table becomes; `is_due` whether it differs from what exists.

    `is_more_than_time`: in more than how far the catalog follows. `follows`: it has followed the last commit already.
    """

    table: CatalogTable
    is_due: bool
    is_more_than_time: bool
    follows: bool


@dataclass(frozen=True, slots=True)
class PartitionChanges:
    """How a catalog's partitions, which are distinguished by their values, differ from the table's.

    `added` are missing in the catalog; `moved` have their values there and another directory. Both are as the catalog should
    have them, in the order of their paths. `dropped` are as the catalog has them, and have no live slice in the table any
    more.
    """

    added: tuple[CatalogPartition, ...]
    moved: tuple[CatalogPartition, ...]
    dropped: tuple[CatalogPartition, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.moved or self.dropped)


def new_table(wanted: CatalogTable) -> CatalogTable:
    """The table as it is created, without the commit that it follows: that is set once its partitions exist."""
    times = _TIMES if wanted.partition_columns else ()
    return replace(wanted, properties=_without(wanted.properties, times))


def require_ours(wanted: CatalogTable, existing: CatalogTable) -> None:
    """Raises RefusedError if the table found is not this Hudi table."""
    cure = f"drop it, or set another name as {SYNC_TABLE}"
    if existing.kind not in TABLE_KINDS:
        raise RefusedError(f"{existing} in the catalog is a {existing.kind}, not a table; {cure}")
    if not is_same_place(wanted.location, existing.location):
        raise RefusedError(
            f"{existing} in the catalog is the table at {existing.location}, not {wanted.location}; {cure}"
        )
    is_hudi = existing.input_format in (READ_OPTIMIZED_FORMAT, SNAPSHOT_FORMAT)
    if not is_hudi and existing.properties.get(PROVIDER_KEY, "").lower() != "hudi":
        raise RefusedError(
            f"{existing} in the catalog is not a Hudi table: its input format is {existing.input_format}; {cure}"
        )
    if existing.partition_columns != wanted.partition_columns:
        raise RefusedError(
            f"{existing} in the catalog is partitioned by {_names(existing)}, not {_names(wanted)}, and a catalog "
            "can't change that: drop it there, and the next sync creates it again"
        )


def table_change(wanted: CatalogTable, existing: CatalogTable) -> TableChange:
    """The change from the table found to the wanted one."""
    properties, serde = dict(existing.properties), {**existing.serde_properties, **wanted.serde_properties}
    path, path_there = wanted.serde_properties.get(PATH_KEY), existing.serde_properties.get(PATH_KEY)
    if path is not None and path_there is not None and is_same_place(path, path_there):
        serde[PATH_KEY] = path_there
    ours = dict(wanted.properties)
    if PROVIDER_KEY in ours and _spark_schema(existing.properties) == _spark_schema(ours):
        ours = {key: value for key, value in ours.items() if not key.startswith(f"{SCHEMA_PREFIX}part.")}
        ours[f"{SCHEMA_PREFIX}numParts"] = existing.properties[f"{SCHEMA_PREFIX}numParts"]
    elif PROVIDER_KEY in ours:
        properties = {key: value for key, value in properties.items() if not key.startswith(SCHEMA_PREFIX)}
    properties = {**_without(properties, (*FRESHNESS_KEYS, *_TIMES)), **ours}
    table = replace(
        existing,
        columns=wanted.columns,
        input_format=wanted.input_format,
        output_format=wanted.output_format,
        serde=wanted.serde,
        serde_properties=serde,
        properties=properties,
    )
    return TableChange(
        table,
        is_due=table != existing,
        is_more_than_time=_timeless(table) != _timeless(existing),
        follows=all(existing.properties.get(key) == wanted.properties.get(key) for key in _TIMES),
    )


def partition_changes(wanted: Iterable[CatalogPartition], existing: Iterable[CatalogPartition]) -> PartitionChanges:
    """The changes from the partitions found to the wanted ones."""
    here = {one.values: one for one in existing}
    kept = {one.values: one for one in wanted}
    return PartitionChanges(
        added=tuple(one for values, one in kept.items() if values not in here),
        moved=tuple(
            one
            for values, one in kept.items()
            if values in here and not is_same_place(one.location, here[values].location)
        ),
        dropped=tuple(one for values, one in here.items() if values not in kept),
    )


def _names(table: CatalogTable) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in table.partition_columns) or "nothing"


def _timeless(table: CatalogTable) -> CatalogTable:
    return replace(table, properties=_without(table.properties, _TIMES))


def _without(properties: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    gone = frozenset(keys)
    return {key: value for key, value in properties.items() if key not in gone}


def _spark_schema(properties: Mapping[str, str]) -> Any:
    """Spark's schema in the properties, with the partition columns; None if it is absent or damaged."""
    try:
        count = int(properties[f"{SCHEMA_PREFIX}numParts"])
        schema = json.loads("".join(properties[f"{SCHEMA_PREFIX}part.{number}"] for number in range(count)))
    except (KeyError, ValueError, RecursionError):
        return None
    return schema, [value for key, value in sorted(properties.items()) if key.startswith(f"{SCHEMA_PREFIX}partCol.")]

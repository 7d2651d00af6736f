"""Hudi's definitions of a table's indexes in `.hoodie/.index_defs/index.json`.

    partition of the metadata table     type             fields               function
    column_stats                        column_stats     all its columns
    secondary_index_<name>              secondary_index  one column           identity
    expr_index_<name>                   column_stats     one column           a function of Spark
    expr_index_<name>                   bloom_filters    one column           a function of Spark

Hudi 1.0 writes no version, which means the first version.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from eventide_adapters.format.timeline.codec import read_json
from eventide_core.errors import MissingFileError
from eventide_core.ports import Storage
from eventide_core.table.files.table_path import INDEX_DEFINITIONS
from eventide_core.table.settings.metadata_table import BLOOM_FILTERS

_ALL: Final = "indexDefinitions"


@dataclass(frozen=True, slots=True)
class IndexDefinition:
    """The definition of one index, as `index.json` has it.

    `type` is Hudi's `indexType`; empty if the index isn't defined. `fields` are the indexed columns; empty if the definition
    names none. `is_of_second_version`: the definition states version V2. The first version stores some values in another
    form.
    """

    type: str
    fields: tuple[str, ...]
    is_of_second_version: bool

    @property
    def is_of_bloom_filters(self) -> bool:
        return self.type == BLOOM_FILTERS


def index_definition(storage: Storage, partition: str) -> IndexDefinition:
    """The definition of an index by its partition of the metadata table; an empty one if there is none."""
    try:
        document = read_json(storage.read(INDEX_DEFINITIONS), INDEX_DEFINITIONS).document(_ALL).document(partition)
    except MissingFileError:
        return IndexDefinition("", (), is_of_second_version=False)
    return IndexDefinition(
        document.text("indexType") or "", tuple(document.texts("sourceFields")), document.text("version") == "V2"
    )


def with_definition(storage: Storage, partition: str, definition: IndexDefinition) -> bytes:
    """The definition of an index, as Hudi writes it, beside the definitions of other indexes."""
    document = _document(storage)
    entry: dict[str, object] = {
        "indexName": partition,
        "indexType": definition.type,
        "indexFunction": definition.type,
        "sourceFields": definition.fields,
        "indexOptions": {},
    }
    if definition.is_of_second_version:
        entry["version"] = "V2"
    document[_ALL] = {**document.get(_ALL, {}), partition: entry}
    return json.dumps(document, indent=2).encode()


def definitions_without(storage: Storage, partitions: Collection[str]) -> bytes | None:
    """The definitions without these partitions; None if none of them is defined."""
    document = _document(storage)
    defined = document.get(_ALL, {})
    if defined.keys().isdisjoint(partitions):
        return None
    document[_ALL] = {name: definition for name, definition in defined.items() if name not in partitions}
    return json.dumps(document, indent=2).encode()


def _document(storage: Storage) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(storage.read(INDEX_DEFINITIONS))
    except MissingFileError:
        return {}
    return document

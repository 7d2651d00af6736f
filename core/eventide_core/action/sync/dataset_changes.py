"""What a data catalog such as DataHub should contain about a table, and the smallest change that gets it there.

A dataset has the table's schema, the properties that Hudi's own sync to DataHub writes, and the freshness. Properties of
others stay.
"""

from collections.abc import Mapping
from typing import Any, Final

from eventide_core.action.sync.catalog_tables import FRESHNESS_KEYS, LAST_COMMIT_KEY, LAST_COMPLETION_KEY
from eventide_core.action.sync.options import DatasetOptions
from eventide_core.config import DATAHUB_TABLE
from eventide_core.errors import RefusedError
from eventide_core.table.catalog.catalog_dataset import CatalogDataset, DatasetChange
from eventide_core.table.catalog.catalog_table import is_same_place
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.table_config import TableConfig

BASE_PATH_KEY: Final = "hudi.base.path"
TYPE_KEY: Final = "hudi.table.type"
VERSION_KEY: Final = "hudi.table.version"
PARTITION_FIELDS_KEY: Final = "hudi.partition.fields"
_TIMES: Final = (LAST_COMMIT_KEY, LAST_COMPLETION_KEY)
_OURS: Final = (BASE_PATH_KEY, TYPE_KEY, VERSION_KEY, PARTITION_FIELDS_KEY, *FRESHNESS_KEYS, *_TIMES)
_VERSION_NAMES: Final = {6: "SIX", 8: "EIGHT", 9: "NINE"}  # of Hudi's enum


def wanted_properties(
    config: TableConfig, options: DatasetOptions, location: str, published: Mapping[str, str]
) -> dict[str, str]:
    """The properties of a table's dataset. `published` are those that change from commit to commit."""
    fields = ",".join(options.partition_fields)
    return {
        TYPE_KEY: "COPY_ON_WRITE" if config.is_copy_on_write else "MERGE_ON_READ",
        VERSION_KEY: _VERSION_NAMES[config.version],
        BASE_PATH_KEY: location,
        **({PARTITION_FIELDS_KEY: fields} if fields else {}),
        **options.table_properties,
        **published,
    }


def dataset_change(
    existing: CatalogDataset | None, schema: AvroSchema, properties: Mapping[str, str], options: DatasetOptions
) -> DatasetChange:
    """The change from `existing`, None if the catalog has none. Raises RefusedError if that is another table's."""
    there: Mapping[str, str] = {} if existing is None else existing.properties
    place = there.get(BASE_PATH_KEY)
    if place is not None and not is_same_place(place, properties[BASE_PATH_KEY]):
        raise RefusedError(
            f"the dataset {options.database}.{options.table} in the catalog is the table at {place}, not "
            f"{properties[BASE_PATH_KEY]}; delete it there, or set another name as {DATAHUB_TABLE}"
        )
    if place is not None:
        properties = {**properties, BASE_PATH_KEY: place}  # as it is spelled there
    is_new_schema = existing is None or _parsed(existing.schema) != _parsed(schema)
    change = DatasetChange(
        schema=schema if is_new_schema else None,
        properties={key: value for key, value in properties.items() if there.get(key) != value},
        removed_properties=tuple(key for key in _OURS if key in there and key not in properties),
        is_revived=existing is not None and existing.is_removed,
    )
    is_only_time = not (
        is_new_schema or change.is_revived or {*change.properties, *change.removed_properties} - {*_TIMES}
    )
    return DatasetChange(None, {}, (), is_revived=False) if is_only_time and options.is_conditional else change


def _parsed(schema: AvroSchema | None) -> Any:
    """A schema as a value, because others may write it in another layout. None if it is none."""
    try:
        return None if schema is None else schema.parsed
    except (ValueError, RecursionError):
        return None

"""A dataset in a data catalog that people search and no engine reads by, such as DataHub."""

from collections.abc import Mapping
from dataclasses import dataclass

from eventide_core.table.schema.avro_schema import AvroSchema


@dataclass(frozen=True, slots=True)
class CatalogDataset:
    """A dataset as the catalog has it. `schema` is an Avro schema, or None if there is none.

    `properties` may contain others'. `is_removed`: it was marked as deleted.
    """

    schema: AvroSchema | None
    properties: Mapping[str, str]
    is_removed: bool


@dataclass(frozen=True, slots=True)
class DatasetChange:
    """What is written to a dataset. `schema` is None if it stays.

    `properties` get these values, `removed_properties` go; those that are in neither field stay. `is_revived`: a dataset
    that was marked as deleted no longer is.
    """

    schema: AvroSchema | None
    properties: Mapping[str, str]
    removed_properties: tuple[str, ...]
    is_revived: bool

    def __bool__(self) -> bool:
        return bool(self.schema is not None or self.properties or self.removed_properties or self.is_revived)

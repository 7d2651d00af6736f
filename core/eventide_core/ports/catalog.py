"""Catalogs: the ones of Hive's kind, in which engines find tables by name, and data catalogs, in which people do."""

from collections.abc import Sequence
from typing import Protocol

from eventide_core.table.catalog.catalog_dataset import CatalogDataset, DatasetChange
from eventide_core.table.catalog.catalog_table import CatalogPartition, CatalogTable


class Catalog(Protocol):
    """Tables and partitions by name. No change touches the files that they name.

    Every method raises CatalogError where the catalog cannot be reached, or refuses; each change is made as a whole or not
    at all, and a request whose answer was lost may have been carried out or not.
    """

    def has_database(self, name: str) -> bool: ...

    def create_database(self, name: str) -> None:
        """Makes an empty database, where there is none."""
        ...

    def table_names(self, database: str) -> tuple[str, ...]:
        """The names of a database's tables and views, in any order."""
        ...

    def table(self, database: str, name: str) -> CatalogTable | None:
        """The table or view as the catalog has it; None if there is none."""
        ...

    def create_table(self, table: CatalogTable) -> None: ...

    def alter_table(self, table: CatalogTable) -> None:
        """Columns, formats and properties become the ones of `table`; the columns of its partitions, too."""
        ...

    def partitions(self, table: CatalogTable) -> tuple[CatalogPartition, ...]: ...

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Adds each that is not there yet."""
        ...

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Partitions that exist have these locations from now on."""
        ...

    def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        """Removes each that is still there; its files stay."""
        ...

    def close(self) -> None:
        """Ends the connection. Raises nothing."""
        ...


class DatasetCatalog(Protocol):
    """Datasets by database and name, each with a schema and properties. Raises CatalogError as `Catalog` does."""

    def dataset(self, database: str, name: str) -> CatalogDataset | None:
        """None if there is none."""
        ...

    def change(self, database: str, name: str, change: DatasetChange) -> None:
        """Changes the dataset, or creates it. Properties that others write meanwhile stay."""
        ...

    def close(self) -> None:
        """Ends the connection. Raises nothing."""
        ...

"""Catalogs that count or fail: one in memory, and the client of a real metastore."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_core.errors import CatalogError
from eventide_core.table.catalog.catalog_table import CatalogPartition, CatalogTable


@dataclass
class MemoryCatalog:
    """ports.Catalog over dictionaries. Fails at the write number `fails_at`, counted from 0, and at every later write."""

    fails_at: int | None = None
    writes: int = 0
    databases: set[str] = field(default_factory=set)
    tables: dict[tuple[str, str], CatalogTable] = field(default_factory=dict)
    found: dict[tuple[str, str], dict[tuple[str, ...], CatalogPartition]] = field(default_factory=dict)

    def has_database(self, name: str) -> bool:
        return name in self.databases

    def create_database(self, name: str) -> None:
        self._write()
        self.databases.add(name)

    def table_names(self, database: str) -> tuple[str, ...]:
        return tuple(name for within, name in self.tables if within == database)

    def table(self, database: str, name: str) -> CatalogTable | None:
        return self.tables.get((database, name))

    def create_table(self, table: CatalogTable) -> None:
        self._write()
        assert (table.database, table.name) not in self.tables
        self.tables[table.database, table.name] = table
        self.found[table.database, table.name] = {}

    def alter_table(self, table: CatalogTable) -> None:
        self._write()
        self.tables[table.database, table.name] = table

    def partitions(self, table: CatalogTable) -> tuple[CatalogPartition, ...]:
        return tuple(self.found[table.database, table.name].values())

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for one in partitions:  # One after another: some partitions may exist when it fails.
            self._write()
            self.found[table.database, table.name].setdefault(one.values, one)

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        self._write()
        self.found[table.database, table.name] |= {one.values: one for one in partitions}

    def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for one in partitions:
            self._write()
            self.found[table.database, table.name].pop(one.values, None)

    def close(self) -> None:
        pass

    def content(self) -> object:
        """The whole content."""
        return self.databases, self.tables, self.found

    def copy(self) -> "MemoryCatalog":
        return replace(
            self,
            databases=set(self.databases),
            tables=dict(self.tables),
            found={key: dict(value) for key, value in self.found.items()},
        )

    def _write(self) -> None:
        if self.fails_at is not None and self.writes >= self.fails_at:
            raise CatalogError("the catalog is gone")
        self.writes += 1


def counting(writes: list[str]) -> Callable[..., HiveMetastore]:
    """The client of a real metastore. Records each write in `writes` by its method and table."""

    class Counting(HiveMetastore):
        def create_database(self, name: str) -> None:
            writes.append(f"create {name}")
            super().create_database(name)

        def create_table(self, table: CatalogTable) -> None:
            writes.append(f"create {table.name}")
            super().create_table(table)

        def alter_table(self, table: CatalogTable) -> None:
            writes.append(f"alter {table.name}")
            super().alter_table(table)

        def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
            writes.append(f"add to {table.name}")
            super().add_partitions(table, partitions)

        def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
            writes.append(f"move in {table.name}")
            super().move_partitions(table, partitions)

        def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
            writes.append(f"drop from {table.name}")
            super().drop_partitions(table, partitions)

    return Counting

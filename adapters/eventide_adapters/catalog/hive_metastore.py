"""A Hive Metastore over Thrift: versions 2.3 and 3, without authentication."""

import getpass
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar, cast

from eventide_adapters.catalog.metastore_address import Address
from eventide_adapters.extras import install_command
from eventide_core.errors import CatalogError, ConfigError
from eventide_core.table.catalog.catalog_table import (
    EXTERNAL,
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    batches_of,
)

T = TypeVar("T")

TIMEOUT_MS = 120_000  # a metastore that adds a thousand partitions lists their directories
PARTITIONS_AT_ONCE = 1000  # Hudi's batch
ALL_PARTITIONS = -1
# Otherwise, the metastore lists every file of the table at each change.
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}


class HiveMetastore:
    """ports.Catalog over one connection, to the first address that answers."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        """Raises CatalogError if no address answers, ConfigError if the library is missing."""
        self._thrift = metastore_thrift()
        self._where = ", ".join(map(str, addresses))
        self._client = metastore_client(addresses)

    def has_database(self, name: str) -> bool:
        return self._if_there(lambda: self._client.get_database(name)) is not None

    def create_database(self, name: str) -> None:
        with self._asking(f"create the database {name}"), suppress(self._thrift.AlreadyExistsException):
            self._client.create_database(
                self._thrift.Database(name=name, description="created by eventide", parameters={})
            )

    def table_names(self, database: str) -> tuple[str, ...]:
        """The names of a database's tables and views."""
        return tuple(self._if_there(lambda: self._client.get_all_tables(database)) or ())

    def table(self, database: str, name: str) -> CatalogTable | None:
        raw = self._raw(database, name)
        return None if raw is None else _table_of(raw)

    def create_table(self, table: CatalogTable) -> None:
        now_seconds = int(time.time())
        raw = self._thrift.Table(
            tableName=table.name,
            dbName=table.database,
            owner=getpass.getuser(),
            createTime=now_seconds,
            lastAccessTime=now_seconds,
            retention=0,
            sd=self._described(table, table.location),
            partitionKeys=self._columns(table.partition_columns),
            parameters=table.parameters,
            tableType=table.kind,
        )
        with self._asking(f"create the table {table}"):
            self._client.create_table_with_environment_context(raw, self._context({}))

    def alter_table(self, table: CatalogTable) -> None:
        raw = self._raw(table.database, table.name)
        if raw is None:
            raise CatalogError(f"the table {table} has been dropped from {self._where}; the next sync creates it again")
        there = {(one.name.lower(), one.type.lower()): one for one in raw.sd.cols}  # with their comments
        cascades = bool(table.partition_columns) and table.columns != _columns_of(raw.sd.cols)
        raw.sd.cols = [there.get((one.name, one.type)) or self._column(one) for one in table.columns]
        raw.sd.inputFormat, raw.sd.outputFormat = table.input_format, table.output_format
        raw.sd.serdeInfo.serializationLib = table.serde
        raw.sd.serdeInfo.parameters = dict(table.serde_properties)
        raw.parameters = table.parameters
        context = self._context({"CASCADE": "true"} if cascades else {})
        with self._asking(f"change the table {table}"):
            self._client.alter_table_with_environment_context(table.database, table.name, raw, context)

    def partitions(self, table: CatalogTable) -> tuple[CatalogPartition, ...]:
        with self._asking(f"list the partitions of {table}"):
            partitions = self._client.get_partitions(table.database, table.name, ALL_PARTITIONS)
        return tuple(CatalogPartition(tuple(one.values), one.sd.location) for one in partitions)

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, PARTITIONS_AT_ONCE):
            request = self._thrift.AddPartitionsRequest(
                dbName=table.database,
                tblName=table.name,
                parts=[self._partition(table, one) for one in some],
                ifNotExists=True,
                needResult=False,
            )
            with self._asking(f"add partitions to {table}"):
                self._client.add_partitions_req(request)

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, PARTITIONS_AT_ONCE):
            with self._asking(f"move partitions of {table}"):
                moved = [self._partition(table, one) for one in some]
                self._client.alter_partitions(table.database, table.name, moved)

    def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for one in partitions:
            # Another process may have dropped it. Its files stay in any case.
            with self._asking(f"drop a partition of {table}"), suppress(self._thrift.NoSuchObjectException):
                self._client.drop_partition(table.database, table.name, list(one.values), False)

    def close(self) -> None:
        with suppress(OSError, thrift_error()):
            self._client.close()

    def _raw(self, database: str, name: str) -> Any:
        request = self._thrift.GetTableRequest(dbName=database, tblName=name)
        answer = self._if_there(lambda: self._client.get_table_req(request))
        return None if answer is None else answer.table

    def _if_there(self, ask: Callable[[], T]) -> T | None:
        with self._asking("answer"):
            try:
                return ask()
            except self._thrift.NoSuchObjectException:
                return None

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, EOFError, thrift_error()) as error:
            message = getattr(error, "message", None) or str(error) or type(error).__name__
            raise CatalogError(f"the Hive Metastore at {self._where} did not {what}: {message}") from error

    def _context(self, properties: Mapping[str, str]) -> Any:
        return self._thrift.EnvironmentContext(properties={**_NO_STATISTICS, **properties})

    def _columns(self, columns: Sequence[CatalogColumn]) -> list[Any]:
        return [self._column(one) for one in columns]

    def _column(self, column: CatalogColumn) -> Any:
        return self._thrift.FieldSchema(name=column.name, type=column.type, comment="")

    def _described(self, table: CatalogTable, location: str) -> Any:
        return self._thrift.StorageDescriptor(
            cols=self._columns(table.columns),
            location=location,
            inputFormat=table.input_format,
            outputFormat=table.output_format,
            compressed=False,
            numBuckets=0,
            serdeInfo=self._thrift.SerDeInfo(serializationLib=table.serde, parameters=dict(table.serde_properties)),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def _partition(self, table: CatalogTable, partition: CatalogPartition) -> Any:
        return self._thrift.Partition(
            values=list(partition.values),
            dbName=table.database,
            tableName=table.name,
            createTime=0,
            lastAccessTime=0,
            sd=self._described(table, partition.location),
            parameters={},
        )


def _table_of(raw: Any) -> CatalogTable:
    sd = raw.sd
    serde = sd.serdeInfo
    return CatalogTable(
        database=raw.dbName,
        name=raw.tableName,
        kind=raw.tableType or "",
        location=sd.location or "",
        columns=_columns_of(sd.cols),
        partition_columns=_columns_of(raw.partitionKeys),
        input_format=sd.inputFormat or "",
        output_format=sd.outputFormat or "",
        serde=(serde.serializationLib if serde else None) or "",
        serde_properties=dict((serde.parameters if serde else None) or {}),
        properties={key: value for key, value in (raw.parameters or {}).items() if key != EXTERNAL},
    )


def _columns_of(columns: Sequence[Any] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one.name.lower(), one.type.lower()) for one in columns or ())


def metastore_client(addresses: Sequence[Address]) -> Any:
    """A connection to the first address that answers. Raises CatalogError, or ConfigError if the library is missing."""
    thrift = metastore_thrift()
    from thriftpy2.rpc import make_client

    failures: list[str] = []
    for address in addresses:
        try:
            return make_client(thrift.ThriftHiveMetastore, address.host, address.port, timeout=TIMEOUT_MS)
        except (OSError, thrift_error()) as error:
            failures.append(f"{address}: {error}")
    raise CatalogError(
        f"no Hive Metastore responds: {'; '.join(failures)}; check that it is running, and that the address is right"
    )


def thrift_error() -> type[Exception]:
    """The base class of the library's errors."""
    from thriftpy2.thrift import TException

    return cast(type[Exception], TException)


@cache
def metastore_thrift() -> Any:
    """The metastore's Thrift interface. Raises ConfigError if the library is missing."""
    if find_spec("thriftpy2") is None:
        raise ConfigError(
            f"the library for the Hive Metastore is not installed: run `{install_command('hive')}`, or "
            "use a SparkSession with Hive support as the engine"
        )
    import thriftpy2

    return thriftpy2.load(
        str(Path(__file__).with_name("hive_metastore.thrift")), module_name="eventide_hive_metastore_thrift"
    )

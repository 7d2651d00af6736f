"""The Hive Metastore of a SparkSession with Hive support, through the client that Spark ships, as in Hudi's own sync.

The session's settings therefore apply: address, encryption, Kerberos. Spark's own catalog would reject tables whose input
format is not on its class path, and Hudi's input format may be missing there.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from eventide_core.errors import CatalogError
from eventide_core.table.catalog.catalog_table import (
    EXTERNAL,
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    batches_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS_AT_ONCE = 1000  # Hudi's batch
ALL_PARTITIONS = -1
_METASTORE_URIS = "hive.metastore.uris"
# Without this, the metastore lists every file of the table at each change.
_NO_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}
_NOT_THERE = "NoSuchObjectException"


def has_hive_support(spark: "SparkSession") -> bool:
    """Whether the session's catalog is a Hive Metastore."""
    return spark.conf.get("spark.sql.catalogImplementation", "in-memory") == "hive"


class SparkHiveCatalog:
    """ports.Catalog over the session's metastore, or the one at `uris`."""

    def __init__(self, spark: "SparkSession", uris: str | None) -> None:
        self._spark = spark
        java: Any = spark.sparkContext._jvm
        session: Any = spark._jsparkSession
        self._java, self._session = java, session
        self._api = self._java.org.apache.hadoop.hive.metastore.api
        with self._asking("answer"):
            conf = self._java.org.apache.hadoop.hive.conf.HiveConf
            settings = conf(session.sessionState().newHadoopConf(), conf().getClass())
            if uris is not None:
                settings.set(_METASTORE_URIS, uris)
            self._client = self._java.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(settings)

    def has_database(self, name: str) -> bool:
        return self._found(lambda: self._client.getDatabase(name)) is not None

    def create_database(self, name: str) -> None:
        with self._asking(f"create the database {name}", forgiving="AlreadyExistsException"):
            self._client.createDatabase(self._api.Database(name, "created by eventide", None, self._map({})))

    def table_names(self, database: str) -> tuple[str, ...]:
        return tuple(self._found(lambda: self._client.getAllTables(database)) or ())

    def table(self, database: str, name: str) -> CatalogTable | None:
        raw = self._found(lambda: self._client.getTable(database, name))
        return None if raw is None else _table_of(raw)

    def create_table(self, table: CatalogTable) -> None:
        raw = self._api.Table()
        raw.setDbName(table.database)
        raw.setTableName(table.name)
        raw.setOwner(self._spark.sparkContext.sparkUser())
        raw.setCreateTime(int(time.time()))
        raw.setSd(self._described(table, table.location))
        raw.setPartitionKeys(self._columns(table.partition_columns))
        raw.setParameters(self._map(table.parameters))
        raw.setTableType(table.kind)
        with self._asking(f"create the table {table}"):
            self._client.createTable(raw, self._context({}))
        self._forget(table)

    def alter_table(self, table: CatalogTable) -> None:
        with self._asking(f"change the table {table}"):
            raw = self._client.getTable(table.database, table.name)
            sd = raw.getSd()
            there = {(one.getName().lower(), one.getType().lower()): one for one in sd.getCols()}  # with comments
            cascades = bool(table.partition_columns) and table.columns != _columns_of(sd.getCols())
            sd.setCols(self._list(there.get((one.name, one.type)) or self._column(one) for one in table.columns))
            self._describe(sd, table)
            raw.setParameters(self._map(table.parameters))
            context = self._context({"CASCADE": "true"} if cascades else {})
            self._client.alter_table_with_environmentContext(table.database, table.name, raw, context)
        self._forget(table)

    def partitions(self, table: CatalogTable) -> tuple[CatalogPartition, ...]:
        with self._asking(f"list the partitions of {table}"):
            raw = self._client.listPartitions(table.database, table.name, ALL_PARTITIONS)
            return tuple(CatalogPartition(tuple(one.getValues()), one.getSd().getLocation()) for one in raw)

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, PARTITIONS_AT_ONCE):
            with self._asking(f"add partitions to {table}"):
                added = self._list(self._partition(table, one) for one in some)
                self._client.add_partitions(added, True, False)
        self._forget(table)

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, PARTITIONS_AT_ONCE):
            with self._asking(f"move partitions of {table}"):
                moved = self._list(self._partition(table, one) for one in some)
                self._client.alter_partitions(table.database, table.name, moved, self._context({}))
        self._forget(table)

    def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for one in partitions:
            with self._asking(f"drop a partition of {table}", forgiving=_NOT_THERE):
                self._client.dropPartition(table.database, table.name, self._list(one.values), False)
        self._forget(table)

    def close(self) -> None:
        with suppress(Py4JError):
            self._client.close()

    def _forget(self, table: CatalogTable) -> None:
        """Makes the session read the table's definition again on next use."""
        state = self._session.sessionState()
        state.catalog().refreshTable(state.sqlParser().parseTableIdentifier(f"`{table.database}`.`{table.name}`"))

    def _found(self, ask: Callable[[], Any]) -> Any:
        answers: list[Any] = []
        with self._asking("answer", forgiving=_NOT_THERE):
            answers.append(ask())
        return answers[0] if answers else None

    @contextmanager
    def _asking(self, what: str, *, forgiving: str | None = None) -> Iterator[None]:
        """Raises CatalogError for any exception except the one named `forgiving`."""
        try:
            yield
        except Py4JJavaError as error:
            java = error.java_exception
            if forgiving is None or java.getClass().getSimpleName() != forgiving:
                message = java.getMessage() or java.getClass().getSimpleName()
                raise CatalogError(f"the Hive Metastore of the SparkSession did not {what}: {message}") from error
        except Py4JError as error:
            raise CatalogError(f"the Hive Metastore of the SparkSession did not {what}: {error}") from error

    def _context(self, properties: Mapping[str, str]) -> Any:
        return self._api.EnvironmentContext(self._map({**_NO_STATISTICS, **properties}))

    def _described(self, table: CatalogTable, location: str) -> Any:
        sd = self._api.StorageDescriptor()
        sd.setCols(self._columns(table.columns))
        sd.setLocation(location)
        sd.setSerdeInfo(self._api.SerDeInfo())
        sd.setBucketCols(self._list(()))
        sd.setSortCols(self._list(()))
        sd.setParameters(self._map({}))
        self._describe(sd, table)
        return sd

    def _describe(self, sd: Any, table: CatalogTable) -> None:
        sd.setInputFormat(table.input_format)
        sd.setOutputFormat(table.output_format)
        sd.getSerdeInfo().setSerializationLib(table.serde)
        sd.getSerdeInfo().setParameters(self._map(table.serde_properties))

    def _partition(self, table: CatalogTable, partition: CatalogPartition) -> Any:
        sd = self._described(table, partition.location)
        return self._api.Partition(self._list(partition.values), table.database, table.name, 0, 0, sd, self._map({}))

    def _columns(self, columns: Sequence[CatalogColumn]) -> Any:
        return self._list(self._column(one) for one in columns)

    def _column(self, column: CatalogColumn) -> Any:
        return self._api.FieldSchema(column.name, column.type, "")

    def _list(self, values: Iterable[Any]) -> Any:
        made = self._java.java.util.ArrayList()
        for value in values:
            made.add(value)
        return made

    def _map(self, values: Mapping[str, str]) -> Any:
        made = self._java.java.util.HashMap()
        for key, value in values.items():
            made.put(key, value)
        return made


def _table_of(raw: Any) -> CatalogTable:
    sd = raw.getSd()
    serde = sd.getSerdeInfo()
    return CatalogTable(
        database=raw.getDbName(),
        name=raw.getTableName(),
        kind=raw.getTableType() or "",
        location=sd.getLocation() or "",
        columns=_columns_of(sd.getCols()),
        partition_columns=_columns_of(raw.getPartitionKeys()),
        input_format=sd.getInputFormat() or "",
        output_format=sd.getOutputFormat() or "",
        serde=(serde.getSerializationLib() if serde else None) or "",
        serde_properties=dict((serde.getParameters() if serde else None) or {}),
        properties={key: value for key, value in (raw.getParameters() or {}).items() if key != EXTERNAL},
    )


def _columns_of(columns: Any) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one.getName().lower(), one.getType().lower()) for one in columns or ())

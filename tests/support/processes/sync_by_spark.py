"""Syncs a table through a SparkSession with Hive support in a separate process. Arguments: TABLE URI DATABASE.

A process decides only once whether sessions have Hive support. Prints one JSON document: the changed tables of each
sync, a table as the session's client and as Thrift return it, and the results of Spark's own SQL.
"""

import json
import os
import sys
import tempfile
from contextlib import closing
from dataclasses import replace

from pyspark.sql import SparkSession

from eventide import Table
from eventide.spark.hive_catalog import SparkHiveCatalog
from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import metastore_addresses
from eventide_core.errors import CatalogError
from eventide_core.ports import Catalog
from eventide_core.service.maintenance.sync import SyncedTable
from eventide_core.table.catalog.catalog_table import CatalogColumn, CatalogPartition, CatalogTable


def main() -> None:
    uri, metastore, database = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # Spark's launcher writes there
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.hadoop.hive.metastore.uris", metastore)
        .config("spark.sql.warehouse.dir", tempfile.mkdtemp())
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.memory", "600m")
        .enableHiveSupport()
        .getOrCreate()
    )
    table = Table.open(uri, engine=spark)
    told: dict[str, object] = {
        "syncs": [[one.name for one in _sync(table, database) if one.is_changed] for _ in range(2)]
    }
    with closing(SparkHiveCatalog(spark, None)) as by_spark, closing(_thrift(metastore)) as by_thrift:
        names = [one.name for one in _sync(table, database)]
        told["tables"] = [[str(one.table(database, name)) for name in names] for one in (by_spark, by_thrift)]
        found = by_spark.table(database, names[0])
        assert found is not None
        told["partitions"] = [str(_partitions(one, found)) for one in (by_spark, by_thrift)]
        added = CatalogPartition(("new",), f"{found.location}/part=new")
        by_spark.add_partitions(found, [added])
        by_spark.add_partitions(found, [added])
        moved = replace(added, location=f"{found.location}/moved")
        by_spark.move_partitions(found, [moved])
        told["moved"] = moved in by_thrift.partitions(found)
        by_spark.drop_partitions(found, [moved])
        by_spark.drop_partitions(found, [moved])
        told["dropped"] = moved not in by_thrift.partitions(found)
        grown = replace(found, columns=(*found.columns, CatalogColumn("more", "int")))
        by_spark.alter_table(grown)
        told["grown"] = by_thrift.table(database, names[0]) == replace(
            grown, properties=(by_spark.table(database, names[0]) or found).properties
        )
        told["missing"] = [by_spark.has_database("nowhere"), by_spark.table(database, "nowhere")]
        try:
            by_spark.partitions(replace(found, name="nowhere"))
        except CatalogError as error:
            told["error"] = str(error)
    told["sql"] = [row.tableName for row in spark.sql(f"show tables in {database}").collect()]
    answers.write(json.dumps(told) + "\n")
    answers.flush()
    spark.stop()


def _sync(table: Table, database: str) -> tuple[SyncedTable, ...]:
    return table.sync(database=database).tables


def _thrift(metastore: str) -> HiveMetastore:
    return HiveMetastore(metastore_addresses(metastore, "o"))


def _partitions(catalog: Catalog, table: CatalogTable) -> list[CatalogPartition]:
    return sorted(catalog.partitions(table), key=str)


if __name__ == "__main__":
    main()

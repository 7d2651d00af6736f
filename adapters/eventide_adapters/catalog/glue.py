"""AWS Glue's catalog. Credentials come from the options, or from the AWS tools."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from eventide_adapters.aws_credentials import client_credentials, require_credentials
from eventide_adapters.extras import install_command
from eventide_core.config import Options
from eventide_core.config.option import TEXT, optional
from eventide_core.errors import CatalogError, ConfigError
from eventide_core.table.catalog.catalog_table import (
    EXTERNAL,
    CatalogColumn,
    CatalogPartition,
    CatalogTable,
    batches_of,
)

GLUE_REGION = optional(
    "hoodie.aws.glue.region",
    TEXT,
    "The AWS region of the catalog.",
    otherwise="the environment's or the profile's, else us-east-1",
)
GLUE_ENDPOINT = optional(
    "hoodie.aws.glue.endpoint", TEXT, "The URL of the Glue service.", otherwise="Amazon's in the region"
)
_REGION_DEFAULT: Final = "us-east-1"
_WRITTEN_AT_ONCE, _DROPPED_AT_ONCE = 100, 25  # Glue's bounds of one request
_THERE, _GONE = "AlreadyExistsException", "EntityNotFoundException"
# What a table has besides what a request may set.
_READ_ONLY: Final = frozenset(
    {
        "CatalogId",
        "CreateTime",
        "CreatedBy",
        "DatabaseName",
        "FederatedTable",
        "IsMaterializedView",
        "IsMultiDialectView",
        "IsRegisteredWithLakeFormation",
        "Status",
        "UpdateTime",
        "VersionId",
        "ViewDefinition",
    }
)


class GlueCatalog:
    """ports.Catalog over Glue's API. Raises ConfigError if the library is missing."""

    def __init__(self, options: Options) -> None:
        if find_spec("botocore") is None:
            raise ConfigError(f"the library for AWS Glue is not installed: run `{install_command('glue')}`")
        from botocore.session import get_session

        session = get_session()
        in_environment = os.environ.get("AWS_REGION") or session.get_config_variable("region")
        region = options.get(GLUE_REGION) or in_environment or _REGION_DEFAULT
        endpoint = options.get(GLUE_ENDPOINT)
        self._where = endpoint or region
        with self._asking("answer"):
            self._client: Any = session.create_client(
                "glue", region_name=region, endpoint_url=endpoint, **client_credentials(options.values)
            )

    def has_database(self, name: str) -> bool:
        return self._if_there(lambda: self._client.get_database(Name=name)) is not None

    def create_database(self, name: str) -> None:
        with self._asking(f"create the database {name}", _THERE):
            self._client.create_database(DatabaseInput={"Name": name, "Description": "created by eventide"})

    def table_names(self, database: str) -> tuple[str, ...]:
        """The names of a database's tables and views."""
        with self._asking(f"list the tables of {database}"):
            pages = self._client.get_paginator("get_tables").paginate(DatabaseName=database)
            return tuple(one["Name"] for page in pages for one in page["TableList"])

    def table(self, database: str, name: str) -> CatalogTable | None:
        raw = self._raw(database, name)
        return None if raw is None else _table_of(raw)

    def create_table(self, table: CatalogTable) -> None:
        made = {
            "Name": table.name,
            "TableType": table.kind,
            "Parameters": table.parameters,
            "PartitionKeys": _columns(table.partition_columns),
            "StorageDescriptor": _described(table, table.location),
        }
        with self._asking(f"create the table {table}"):
            self._client.create_table(DatabaseName=table.database, TableInput=made)

    def alter_table(self, table: CatalogTable) -> None:
        raw = self._raw(table.database, table.name)
        if raw is None:
            raise CatalogError(f"the table {table} has been dropped from {self._where}; the next sync creates it again")
        there = _table_of(raw)
        storage = raw["StorageDescriptor"]
        of_name = {(one["Name"].lower(), one["Type"].lower()): one for one in storage["Columns"]}  # with their comments
        described = _described(table, storage["Location"])
        described["Columns"] = [of_name.get((one.name, one.type)) or _column(one) for one in table.columns]
        changed = {key: value for key, value in raw.items() if key not in _READ_ONLY}
        changed |= {"Parameters": table.parameters, "StorageDescriptor": {**storage, **described}}
        if table.partition_columns and table.columns != there.columns:
            self.move_partitions(table, self.partitions(table))  # which have columns of their own
        with self._asking(f"change the table {table}"):
            # As Hudi does by default: a version of the table for each commit would reach Glue's bound.
            self._client.update_table(DatabaseName=table.database, TableInput=changed, SkipArchive=True)

    def partitions(self, table: CatalogTable) -> tuple[CatalogPartition, ...]:
        with self._asking(f"list the partitions of {table}"):
            pages = self._client.get_paginator("get_partitions").paginate(**_named(table), ExcludeColumnSchema=True)
            return tuple(
                CatalogPartition(tuple(one["Values"]), one["StorageDescriptor"]["Location"])
                for page in pages
                for one in page["Partitions"]
            )

    def add_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, _WRITTEN_AT_ONCE):
            self._change(
                f"add partitions to {table}",
                self._client.batch_create_partition,
                _THERE,
                **_named(table),
                PartitionInputList=[_partition(table, one) for one in some],
            )

    def move_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, _WRITTEN_AT_ONCE):
            self._change(
                f"change partitions of {table}",
                self._client.batch_update_partition,
                None,
                **_named(table),
                Entries=[
                    {"PartitionValueList": list(one.values), "PartitionInput": _partition(table, one)} for one in some
                ],
            )

    def drop_partitions(self, table: CatalogTable, partitions: Sequence[CatalogPartition]) -> None:
        for some in batches_of(partitions, _DROPPED_AT_ONCE):
            self._change(
                f"drop partitions of {table}",
                self._client.batch_delete_partition,
                _GONE,
                **_named(table),
                PartitionsToDelete=[{"Values": list(one.values)} for one in some],
            )

    def close(self) -> None:
        self._client.close()

    def _change(self, what: str, request: Callable[..., Mapping[str, Any]], harmless: str | None, **words: Any) -> None:
        """Sends a request for several partitions, each of which may fail. `harmless` is the error that is none."""
        with self._asking(what):
            failed = request(**words).get("Errors", ())
        for one in failed:
            about = one.get("ErrorDetail", {})
            if about.get("ErrorCode") != harmless:
                values = "/".join(one.get("PartitionValues") or one.get("PartitionValueList") or ())
                message = f"{about.get('ErrorCode')} {about.get('ErrorMessage', '')}".strip()
                raise CatalogError(f"AWS Glue at {self._where} did not {what}: {values}: {message}")

    def _raw(self, database: str, name: str) -> Any:
        answer = self._if_there(lambda: self._client.get_table(DatabaseName=database, Name=name))
        return None if answer is None else answer["Table"]

    def _if_there(self, ask: Callable[[], Any]) -> Any:
        with self._asking("answer", _GONE):
            return ask()
        return None

    @contextmanager
    def _asking(self, what: str, harmless: str | None = None) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            if error.response["Error"]["Code"] != harmless:
                raise CatalogError(f"AWS Glue at {self._where} did not {what}: {error}") from error
        except (BotoCoreError, ValueError) as error:
            require_credentials(f"AWS Glue at {self._where}", error)
            raise CatalogError(
                f"AWS Glue at {self._where} did not {what}: {error}; check region, credentials and address"
            ) from error


def _table_of(raw: Mapping[str, Any]) -> CatalogTable:
    storage = raw.get("StorageDescriptor") or {}
    serde = storage.get("SerdeInfo") or {}
    return CatalogTable(
        database=raw["DatabaseName"],
        name=raw["Name"],
        kind=raw.get("TableType") or "",
        location=storage.get("Location") or "",
        columns=_columns_of(storage.get("Columns")),
        partition_columns=_columns_of(raw.get("PartitionKeys")),
        input_format=storage.get("InputFormat") or "",
        output_format=storage.get("OutputFormat") or "",
        serde=serde.get("SerializationLibrary") or "",
        serde_properties=dict(serde.get("Parameters") or {}),
        properties={key: value for key, value in (raw.get("Parameters") or {}).items() if key != EXTERNAL},
    )


def _named(table: CatalogTable) -> dict[str, str]:
    return {"DatabaseName": table.database, "TableName": table.name}


def _described(table: CatalogTable, location: str) -> dict[str, Any]:
    return {
        "Columns": _columns(table.columns),
        "Location": location,
        "InputFormat": table.input_format,
        "OutputFormat": table.output_format,
        "SerdeInfo": {"SerializationLibrary": table.serde, "Parameters": dict(table.serde_properties)},
    }


def _partition(table: CatalogTable, partition: CatalogPartition) -> dict[str, Any]:
    return {"Values": list(partition.values), "StorageDescriptor": _described(table, partition.location)}


def _columns(columns: Sequence[CatalogColumn]) -> list[dict[str, str]]:
    return [_column(one) for one in columns]


def _column(column: CatalogColumn) -> dict[str, str]:
    return {"Name": column.name, "Type": column.type}


def _columns_of(columns: Sequence[Mapping[str, Any]] | None) -> tuple[CatalogColumn, ...]:
    return tuple(CatalogColumn(one["Name"].lower(), one["Type"].lower()) for one in columns or ())

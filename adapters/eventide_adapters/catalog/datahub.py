"""DataHub, by the REST client of its own library. A dataset has the aspects that Hudi's sync to DataHub writes."""

# The library has an environment of its own (`./run compat datahub`).
# pyright: reportMissingImports=false
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import quote

from eventide_adapters.extras import install_command
from eventide_core.config import (
    DATAHUB_CA_FILE,
    DATAHUB_ENVIRONMENT,
    DATAHUB_INSTANCE,
    DATAHUB_PLATFORM,
    DATAHUB_SERVER,
    DATAHUB_TOKEN,
    Options,
)
from eventide_core.errors import CatalogError, ConfigError
from eventide_core.table.catalog.catalog_dataset import CatalogDataset, DatasetChange
from eventide_core.table.schema.avro_schema import AvroSchema

_SERVER_DEFAULT: Final = "http://localhost:8080"
_ASPECTS: Final = "datasetProperties,schemaMetadata,status"
_RAW_SCHEMA: Final = "com.linkedin.schema.OtherSchema"
# The library's default waits half a minute for a server that is gone, for each request.
_RETRIES: Final = 2


class DataHubCatalog:
    """ports.DatasetCatalog over DataHub's metadata service. Raises ConfigError if the library is missing."""

    def __init__(self, options: Options) -> None:
        if find_spec("datahub") is None:
            raise ConfigError(f"the library for DataHub is not installed: run `{install_command('datahub')}`")
        # Not `datahub.ingestion.graph`: its import writes a file of telemetry to the home directory.
        from datahub.emitter.rest_emitter import DataHubRestEmitter

        self._options = options
        self._server = (options.get(DATAHUB_SERVER) or os.environ.get("DATAHUB_GMS_URL") or _SERVER_DEFAULT).rstrip("/")
        with self._asking("answer"):
            self._emitter: Any = DataHubRestEmitter(
                self._server,
                token=options.get(DATAHUB_TOKEN) or os.environ.get("DATAHUB_GMS_TOKEN"),
                ca_certificate_path=options.get(DATAHUB_CA_FILE),
                retry_max_times=_RETRIES,
            )

    def dataset(self, database: str, name: str) -> CatalogDataset | None:
        urn = self._urn(database, name)
        with self._asking(f"answer about {urn}"):
            answer = self._emitter.session.get(
                f"{self._server}/entitiesV2/{quote(urn, safe='')}?aspects=List({_ASPECTS})"
            )
            if answer.status_code == 404:
                return None
            answer.raise_for_status()
            entity = answer.json()
            if not isinstance(entity, dict):
                raise ValueError(f"the answer is a {type(entity).__name__}, not an object")
            return _dataset_of(entity.get("aspects") or {})

    def change(self, database: str, name: str, change: DatasetChange) -> None:
        """The properties come last, because they name the commit that the dataset reflects."""
        from datahub.emitter.mcp import MetadataChangeProposalWrapper
        from datahub.metadata.schema_classes import StatusClass
        from datahub.specific.dataset import DatasetPatchBuilder

        urn = self._urn(database, name)
        aspects: list[Any] = [] if change.schema is None else [self._schema(name, change.schema)]
        # A schema alone would not show a dataset again that was marked as deleted.
        if change.is_revived or change.schema is not None:
            aspects.append(StatusClass(removed=False))
        # A patch, because an upsert would drop the properties of others.
        patch = DatasetPatchBuilder(urn)
        for key, value in change.properties.items():
            patch.add_custom_property(key, value)
        for key in change.removed_properties:
            patch.remove_custom_property(key)
        with self._asking(f"change {urn}"):
            self._emitter.emit_mcps(
                [*(MetadataChangeProposalWrapper(entityUrn=urn, aspect=one) for one in aspects), *patch.build()]
            )

    def close(self) -> None:
        self._emitter.close()

    def _schema(self, name: str, schema: AvroSchema) -> Any:
        from datahub.emitter.mce_builder import make_data_platform_urn
        from datahub.ingestion.extractor.schema_util import avro_schema_to_mce_fields
        from datahub.metadata.schema_classes import OtherSchemaClass, SchemaMetadataClass

        return SchemaMetadataClass(
            schemaName=name,
            platform=make_data_platform_urn(self._options.get(DATAHUB_PLATFORM)),
            version=0,
            hash="",
            platformSchema=OtherSchemaClass(rawSchema=schema.text),
            fields=avro_schema_to_mce_fields(schema.text, swallow_exceptions=False),
        )

    def _urn(self, database: str, name: str) -> str:
        from datahub.emitter.mce_builder import make_dataset_urn_with_platform_instance

        given = self._options.get
        urn: str = make_dataset_urn_with_platform_instance(
            given(DATAHUB_PLATFORM), f"{database}.{name}", given(DATAHUB_INSTANCE), str(given(DATAHUB_ENVIRONMENT))
        )
        return urn

    @contextmanager
    def _asking(self, what: str) -> Iterator[None]:
        from datahub.configuration.common import MetaError, OperationalError
        from requests import RequestException

        try:
            yield
        except (RequestException, OperationalError, MetaError, ValueError) as error:
            raise CatalogError(
                f"DataHub at {self._server} did not {what}: {error}; check its address and the token"
            ) from error


def _dataset_of(aspects: Mapping[str, Any]) -> CatalogDataset | None:
    """The dataset that has these aspects. DataHub answers with the key alone for one that doesn't exist."""
    properties, schema, status = (aspects.get(name, {}).get("value") for name in _ASPECTS.split(","))
    if properties is None and schema is None and status is None:
        return None
    raw = ((schema or {}).get("platformSchema") or {}).get(_RAW_SCHEMA) or {}
    text = raw.get("rawSchema")
    return CatalogDataset(
        schema=None if text is None else AvroSchema.of(text),
        properties=dict((properties or {}).get("customProperties") or {}),
        is_removed=bool((status or {}).get("removed")),
    )

"""Sync to DataHub, with Hudi's keys."""

from eventide_core.config import sync
from eventide_core.config.option import TEXT, Option, one_of, optional

# DataHub's fabric types.
_ENVIRONMENTS = one_of("DEV", "TEST", "QA", "UAT", "EI", "PRE", "STG", "NON_PROD", "PROD", "CORP")

DATAHUB_SERVER = optional(
    "hoodie.meta.sync.datahub.emitter.server",
    TEXT,
    "The URL of DataHub's metadata service.",
    otherwise="the environment variable DATAHUB_GMS_URL, else `http://localhost:8080`",
)
DATAHUB_TOKEN = optional(
    "hoodie.meta.sync.datahub.emitter.token",
    TEXT,
    "The access token.",
    otherwise="the environment variable DATAHUB_GMS_TOKEN",
    secret=True,
)
DATAHUB_CA_FILE = optional(
    "hoodie.meta.sync.datahub.tls.ca.cert.path",
    TEXT,
    "A file with the certificates of the authorities that may have signed the server's.",
    otherwise="those that come with the library",
)
DATAHUB_PLATFORM = Option(
    "hoodie.meta.sync.datahub.dataplatform.name", TEXT, "hudi", "The data platform of the dataset."
)
DATAHUB_INSTANCE = optional(
    "hoodie.meta.sync.datahub.dataplatform_instance.name",
    TEXT,
    "The instance of the data platform; it precedes the database in the name of the dataset.",
)
DATAHUB_ENVIRONMENT = Option(
    "hoodie.meta.sync.datahub.dataset.env",
    _ENVIRONMENTS,
    "DEV",
    "The environment of the dataset. The default is Hudi's; what DataHub itself ingests is in PROD by default.",
)
DATAHUB_DATABASE = optional(
    "hoodie.meta.sync.datahub.database.name",
    TEXT,
    "The database in the name of the dataset.",
    otherwise=str(sync.SYNC_DATABASE),
)
DATAHUB_TABLE = optional(
    "hoodie.meta.sync.datahub.table.name", TEXT, "The table in the name of the dataset.", otherwise=str(sync.SYNC_TABLE)
)

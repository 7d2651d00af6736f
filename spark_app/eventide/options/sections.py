"""Every option, in the sections of docs/reference/configuration.md."""

from collections.abc import Collection, Iterator, Mapping
from types import ModuleType
from typing import Any, Final

from eventide.options import lineage, new_tables, queries, streams, windows
from eventide.own_warnings import OwnWarning, warn, warn_of_deprecated
from eventide_adapters.catalog import glue
from eventide_adapters.format.slice.merge import record_mergers
from eventide_adapters.metrics import options as metrics
from eventide_adapters.storage.hdfs import config as hdfs_config
from eventide_adapters.storage.objects import contract as objects
from eventide_adapters.storage.objects import s3_config
from eventide_core.action.write.refused_options import REFUSED_FOR_QUERIES, refuse_unhonored
from eventide_core.config import (
    Options,
    arrival,
    cleaning,
    compaction,
    datahub,
    file_sizes,
    key_generators,
    lock,
    markers,
    strategies,
    sync,
    tags,
    writes,
)
from eventide_core.config.option import Option, unknown_keys

SECTIONS: Final[tuple[tuple[str, ModuleType], ...]] = (
    ("Compaction by event time", compaction),
    ("Sources and arrival", arrival),
    ("Strategies and triggers", strategies),
    ('Queries by format("eventide") and `eventide read`', queries),
    ("New tables", new_tables),
    ("Writes", writes),
    ("Sizes of files and blocks", file_sizes),
    ('Streams, and writes by format("eventide")', streams),
    ("Streams of windows", windows),
    ("Lock, heartbeats, failed writes", lock),
    ("Cleaning and archiving", cleaning),
    ("Tags by watermark", tags),
    ("Done markers", markers),
    ("Metrics", metrics),
    ("Lineage", lineage),
    ("Catalog sync", sync),
    ("AWS Glue", glue),
    ("DataHub", datahub),
    ("Mergers of your own", record_mergers),
    ("Key generators", key_generators),
    ("Object stores", objects),
    ("S3", s3_config),
    ("HDFS", hdfs_config),
)


class UnknownOptionWarning(OwnWarning, UserWarning):
    """An option's key is unknown to eventide, and looks like a misspelled one."""


def options_of(module: ModuleType) -> Iterator[Option[Any]]:
    """The options that a module declares, in their order."""
    return (value for value in vars(module).values() if isinstance(value, Option))


def all_options() -> Iterator[Option[Any]]:
    return (option for _, module in SECTIONS for option in options_of(module))


def warn_of_options(keys: Collection[str]) -> None:
    """Warns of misspelled and deprecated keys. Raises ConfigError for an unknown one of eventide's own."""
    for sentence in unknown_keys(keys, all_options()):
        warn(sentence, UnknownOptionWarning)
    warn_of_deprecated(keys)


def check_options(options: Mapping[str, str]) -> None:
    """Does what `warn_of_options` does. Raises ConfigError also for what no query honors."""
    refuse_unhonored(Options(options), REFUSED_FOR_QUERIES)
    warn_of_options(options)

"""The settings of a user: the catalog of names such as `lake.trips`, and how it is reached.

~/.config/eventide.toml, or eventide.toml in the directory that XDG_CONFIG_HOME names:

catalog = "hive"             # or by the environment: EVENTIDE_CATALOG=hive

[options]                    # of each table that is opened by name: those of the catalog and of the storage
hoodie.datasource.hive_sync.metastore.uris = "thrift://metastore:9083"
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eventide.options.toml_options import check_keys, flat_options, toml_document
from eventide_core.errors import ConfigError

CATALOG_VARIABLE: Final = "EVENTIDE_CATALOG"
_KEYS: Final = ("catalog", "options")


@dataclass(frozen=True, slots=True)
class UserSettings:
    """`catalog` is None if there is no default."""

    catalog: str | None
    options: Mapping[str, str]


def user_settings() -> UserSettings:
    """The environment takes precedence over the file, which may be absent. Raises ConfigError."""
    path = settings_path()
    document = toml_document(path, "settings file") if path.exists() else {}
    where = f"settings file {path}"
    check_keys(document, _KEYS, where)
    catalog, options = document.get("catalog"), document.get("options", {})
    if not isinstance(catalog, str | None) or not isinstance(options, dict):
        raise ConfigError(f'{where}: catalog is a string, such as "hive", and [options] a table')
    return UserSettings(os.environ.get(CATALOG_VARIABLE) or catalog or None, dict(flat_options(options, where)))


def settings_path() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "eventide.toml"

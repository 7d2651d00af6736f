"""The names of locks that a table's name or path gives, where the options name none."""

from typing import Final

import xxhash

from eventide_core.config import LOCK_BASE_PATH, Option, Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage
from eventide_core.table.property_keys import TABLE_NAME
from eventide_core.table.settings.properties import parse_properties, settings_text

_PATH_HASH_SEED: Final = 0xFFFFFFFFDABADABA  # Hudi's, for each hash of a path


def table_name(option: Option[str | None], storage: Storage, options: Options) -> str:
    """The value of the option, otherwise the table's name, as in Hudi."""
    named = options.get(option) or options.values.get(TABLE_NAME)
    return named or parse_properties(settings_text(storage.read_range, storage.root))[TABLE_NAME]


def path_hash(storage: Storage, options: Options) -> str:
    """The hash of the table's path in Hudi's implicit locks. The path must be the same text for every writer."""
    path = options.get(LOCK_BASE_PATH)
    if path is None and not storage.root.startswith(("s3://", "s3a://")):
        raise ConfigError(
            f"option {LOCK_BASE_PATH} is missing: an implicit lock derives its name from the text of the table's path, so "
            "give the path exactly as the other writers write it"
        )
    path = path or storage.root
    path = f"s3://{path.removeprefix('s3a://')}" if path.startswith("s3a://") else path
    return xxhash.xxh64_hexdigest(path.encode(), _PATH_HASH_SEED).upper()

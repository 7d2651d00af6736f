"""A table whose `hoodie.properties` is lost, and what a user who knows the table states of it."""

from collections.abc import Mapping
from pathlib import Path

from eventide_core.table.settings.properties import parse_properties

_ORDERING = ("hoodie.table.precombine.field", "hoodie.table.ordering.fields")


def lose_settings(path: Path) -> dict[str, str]:
    """Removes the file, and returns what it said."""
    file = path / ".hoodie" / "hoodie.properties"
    settings = parse_properties(file.read_text())
    file.unlink()
    file.with_name(".hoodie.properties.crc").unlink(missing_ok=True)
    return settings


def answers_of(settings: Mapping[str, str], missing: Mapping[str, str]) -> dict[str, str]:
    """What a user who knows the table states. Below version 9, the ordering fields have one of two keys."""
    kept = {key: settings.get(key, "") for key in missing}
    for key in kept.keys() & set(_ORDERING):
        kept[key] = next((settings[field] for field in _ORDERING if field in settings), "")
    return kept

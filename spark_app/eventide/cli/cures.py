"""The cures that messages name, in the words of the command line."""

from collections.abc import Mapping
from typing import Any, Final

from eventide_core.cure import PLACEHOLDERS, ArgumentValue, Cure, in_words

COMMANDS: Final[Mapping[str, str]] = {
    "clean": "clean TABLE",
    "create": "ingest TABLE SOURCE --create",
    "delete_savepoint": "savepoint TABLE {} --delete",
    "execute": "compact TABLE --execute {}",
    "history": "show TABLE",
    "lost_keys": "repair TABLE --lost-keys FILE",
    "rebuild_metadata_table": "metadata TABLE --rebuild",
    "recover_settings": "repair TABLE",
    "repair": "repair TABLE",
    "restore": "restore TABLE {}",
    "rollback": "rollback TABLE {}",
    "sync": "sync TABLE",
    "tags": "tag TABLE",
    "verify": "verify TABLE",
}
"""The command of each method, with a place for its instant."""

_ADDS_COLUMNS: Final = ("schema_mode", "merge")


def command(cure: Cure) -> str:
    """The command that does the same as the call; or the option that does the same as the argument."""
    options = [word for argument in cure.arguments for word in _options(*argument)]
    if cure.method is None:
        return f"`{' '.join(options)}`"
    if cure.method not in COMMANDS:
        return str(cure)
    subject = cure.subject.upper() if cure.subject in PLACEHOLDERS else cure.subject
    return f"`{' '.join(['eventide', COMMANDS[cure.method].format(subject), *options])}`"


def _options(name: str, value: ArgumentValue) -> list[str]:
    if (name, value) == _ADDS_COLUMNS:
        return ["--add-columns"]
    if isinstance(value, tuple):
        return [f"--index {index}" for index in value or ("files",)]
    option = f"--{name.replace('_', '-')}"
    return [option if value is True else f"{option} {value}"]


def in_commands(document: Any) -> Any:
    """A text, or each text in a document, with the commands for the cures that it names."""
    match document:
        case str():
            return in_words(document, command)
        case Mapping():
            return {key: in_commands(value) for key, value in document.items()}
        case list() | tuple():
            return [in_commands(value) for value in document]
        case _:
            return document

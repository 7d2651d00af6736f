"""Errors as people read them: on the command line, in the report, in a log."""

from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.errors import printable


def sanitize(error: BaseException) -> str:
    """What an error of any library says, without the secrets in addresses that it quotes and without control characters."""
    return printable(without_secrets(str(error), ()))

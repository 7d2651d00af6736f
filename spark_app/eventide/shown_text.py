"""Words of others, as a log may show them."""

from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.errors import printable


def shown(error: BaseException) -> str:
    """What an error of any library says: without secrets in the addresses that it quotes, and without control characters."""
    return printable(without_secrets(str(error), ()))

"""Times and errors as people read them: on the command line, in the report, in a log."""

from datetime import UTC, datetime, timedelta

from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.errors import printable


def format_timestamp(epoch_ms: int | None, absent: str = "none") -> str:
    """A time in UTC, to the second, or the millisecond where it has one."""
    if epoch_ms is None:
        return absent
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return time.isoformat(sep=" ", timespec="milliseconds" if epoch_ms % 1000 else "seconds").replace("+00:00", "Z")


def sanitize(error: BaseException) -> str:
    """What an error of any library says, without the secrets in addresses that it quotes and without control characters."""
    return printable(without_secrets(str(error), ()))

"""Epoch milliseconds as people read them, on the command line and in the report."""

from datetime import UTC, datetime, timedelta


def moment(epoch_ms: int | None, absent: str = "none") -> str:
    """A time in UTC, to the second, or the millisecond where it has one."""
    if epoch_ms is None:
        return absent
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return time.isoformat(sep=" ", timespec="milliseconds" if epoch_ms % 1000 else "seconds").replace("+00:00", "Z")

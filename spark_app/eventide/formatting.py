"""Formats errors, durations and sizes for the command line, the report and the log, and masks what sources say."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.errors import ConfigError, EventideError, printable

if TYPE_CHECKING:
    from eventide_core.ports import ArrivalSource, SourceQuestion
    from eventide_core.table.timeline.source_progress import SourceProgress

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def sanitize(error: BaseException) -> str:
    """The message of any library's error, without secrets in quoted addresses and without control characters."""
    return printable(without_secrets(str(error), ()))


def format_duration(milliseconds: int | None, absent: str = "none") -> str:
    """A span of time in its two greatest units."""
    if milliseconds is None:
        return absent
    left, parts = abs(milliseconds), list[str]()
    for unit, name in _UNITS:
        count, left = divmod(left, unit)
        if count:
            parts.append(f"{count:,} {name}")
    sign = "-" if milliseconds < 0 else ""
    return sign + " ".join(parts[:2]) if parts else f"{milliseconds} ms"


def format_size(count: int) -> str:
    """Bytes in the greatest unit that leaves a digit before the point."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class MaskedSource:
    """ports.ArrivalSource: a source without `secrets` in its texts, which others may have written."""

    source: "ArrivalSource"
    secrets: tuple[str, ...] = field(repr=False)

    def progress(self, question: "SourceQuestion") -> "SourceProgress":
        with masking(self.secrets):
            said = self.source.progress(question)
        evidence, cure = (without_secrets(text, self.secrets) for text in (said.evidence, said.cure))
        return replace(said, evidence=evidence, cure=cure)


@contextmanager
def masking(secrets: tuple[str, ...]) -> Iterator[None]:
    """Masks the secrets in an error of eventide."""
    try:
        yield
    except EventideError as failure:
        shown = without_secrets(str(failure), secrets)
        if shown == str(failure):
            raise
        raise ConfigError(shown) from None

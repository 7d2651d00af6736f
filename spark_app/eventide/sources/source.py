"""One source of rows, its format, and how a text format is read."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Final

from eventide_core.errors import ConfigError

_COMPRESSIONS: Final = (".gz", ".zst", ".zstd")


class Format(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


ENDINGS: Final = {
    ".csv": Format.CSV,
    ".tsv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".parquet": Format.PARQUET,
}
KNOWN_ENDINGS: Final = f"{', '.join(ENDINGS)}; the text formats also followed by {', '.join(_COMPRESSIONS)}"


@dataclass(frozen=True, slots=True)
class Source:
    """One file or stream of rows.

    `name` is for messages; its ending names the compression. `format` is stated by the user, by the ending before that one,
    or by the first bytes of a pipe. `open` begins a new binary stream over the source, still compressed; it can be called
    again.
    """

    name: str
    format: Format
    open: Callable[[], BinaryIO]

    @property
    def has_tabs(self) -> bool:
        return _ending(self.name) == ".tsv"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How CSV is written. `delimiter` is None for the format's own: a comma, or a tab in a .tsv file.

    `encoding` is Python's name of it, which applies to JSON as well; None for UTF-8. `quote` is empty if nothing is quoted.
    `null_words` are the cells that are null in every column, also in quotes; without any, empty cells that are not in
    quotes. An empty cell of a column of numbers or times is null without being named. `names` are the columns of a file
    without a header. `epochs` is the unit, as in Arrow, of whole numbers in a column of timestamps, also in JSON.
    `needs_every_key`: an object of JSON that lacks a key of another one is refused, instead of null.
    """

    delimiter: str | None = None
    quote: str = '"'
    encoding: str | None = None
    null_words: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    epochs: str | None = None
    needs_every_key: bool = False


def format_by_name(name: str) -> Format | None:
    """The format by the name's ending, behind which a compression may be named; None for an unknown ending."""
    return ENDINGS.get(_ending(name))


def known_format(name: str) -> Format:
    """The format by the name's ending. Raises ConfigError for an unknown one."""
    kind = format_by_name(name)
    if kind is None:
        raise ConfigError(
            f"source {name!r} has an unknown ending: name the format with --format, or let it end in {KNOWN_ENDINGS}"
        )
    return kind


def _ending(name: str) -> str:
    text = name.lower()
    for compression in _COMPRESSIONS:
        text = text.removesuffix(compression)
    base = text.rpartition("/")[2]
    return base[base.rfind(".") :] if "." in base else ""

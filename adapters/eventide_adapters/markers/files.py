"""Marks a window by a file, such as `2026-03-03T0800+0000/_SUCCESS`, and removes it when the window is reopened."""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from eventide_core.errors import ConfigError, MarkerError, MissingFileError, format_timestamp
from eventide_core.ports import MarkerEvent, Storage
from eventide_core.table.files.file_name import parse_data_file
from eventide_core.table.files.own_file import decoded_own, encoded_own
from eventide_core.table.files.table_path import why_no_partition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class MarkerFiles:
    """`name` names the file of a window by its begin in `zone`, as `strftime` has it, below a storage's `directory`.

    `table` is the URI of the table that the windows are of: a file of another one is never replaced or removed. `directory`
    is one in the table itself, where all files are its own, wherever it is now.
    """

    storage: Storage
    name: str
    zone: tzinfo
    table: str
    directory: str = ""

    def tell(self, event: MarkerEvent) -> None:
        self._agree(event.begin_ms, event.end_ms, event.basis, is_done=event.is_done)

    def settle(self, begin_ms: int, end_ms: int, *, is_done: bool) -> None:
        self._agree(begin_ms, end_ms, "", is_done=is_done)

    def _agree(self, begin_ms: int, end_ms: int, basis: str, *, is_done: bool) -> None:
        name = _local(begin_ms, self.zone).strftime(self.name)
        path = f"{self.directory}/{name}" if self.directory else name
        window = {"table": self.table, "begin": format_timestamp(begin_ms), "end": format_timestamp(end_ms)}
        if basis:
            window["basis"] = basis
        if is_done and self.storage.put_if_absent(path, encoded_own(window)):
            return
        with suppress(MissingFileError):
            self._check_own(path)
            if not is_done:
                self.storage.delete(path)

    def _check_own(self, path: str) -> None:
        """Raises MarkerError if the file is another table's. One without a table is of nobody else.

        Raises UnsupportedTableError for one of a later eventide.
        """
        try:
            owner = str(decoded_own(self.storage.read(path), path).get("table", self.table))
        except (ValueError, RecursionError):
            owner = self.table
        if owner != self.table and not self.directory:
            raise MarkerError(f"{path} marks a window of {owner[:200]}: use another directory or name for this table")


def check_name(name: str, zone: tzinfo, seconds: int, begin_of: Callable[[int], int]) -> None:
    """Raises ConfigError for a name that doesn't give each window a file of its own. `begin_of` begins a time's window.

    A name in a partition's directory (`dt=%Y-%m-%d/_SUCCESS`) is one that no reader of Hudi takes for a data file.
    """
    begins = [_local(begin_of(ms), zone) for ms in _MOMENTS_MS]
    path = begins[0].strftime(name)
    unsafe = why_no_partition(path)
    if unsafe is not None or path.rpartition("/")[2].startswith(".") or parse_data_file(path.rpartition("/")[2]):
        raise ConfigError(f"marker {path!r} {unsafe or 'may be taken for a file of Hudi'}: use another name")
    is_twice = seconds < _DAY and "%z" not in name and len({begin.utcoffset() for begin in begins}) > 1
    if is_twice or not all(_is_told(begin, name) for begin in begins):
        raise ConfigError(
            f"marker {name!r} names several windows alike: it needs the date, for windows below a day the time (%H%M%S), "
            "and for those in a zone with clock changes also %z, such as %Y-%m-%dT%H%M%z/_SUCCESS; each part once"
        )


def _is_told(begin: datetime, name: str) -> bool:
    """Whether the name has the begin of the window."""
    try:
        named = datetime.strptime(begin.strftime(name), name)  # noqa: DTZ007 - the zone follows
    except (ValueError, re.error):
        return False
    return named == (begin if named.tzinfo else begin.replace(tzinfo=None))


_YEAR_MS: Final = 1_767_225_600_000
_MOMENTS_MS: Final = tuple(
    _YEAR_MS + (day * 24 + hour) * 3_600_000 + hour * 61_000 for day in range(0, 366, 7) for hour in (0, 9, 13, 22)
)
"""Times all over a year, in both halves of the day, with minutes and seconds."""


def _local(epoch_ms: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(zone)

"""Marks a window by a file, such as `2026-03-03T0800+0000/_SUCCESS`, and removes it when the window is reopened."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from eventide_core.errors import ConfigError, format_timestamp
from eventide_core.ports import MarkerEvent, Storage
from eventide_core.table.files.file_name import parse_data_file
from eventide_core.table.files.table_path import why_no_partition

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class MarkerFiles:
    """`name` is that of the file of a window by its begin in `zone`, as `strftime` has it, below a storage's `directory`."""

    storage: Storage
    name: str
    zone: tzinfo
    directory: str = ""

    def tell(self, event: MarkerEvent) -> None:
        self.settle(event.begin_ms, event.end_ms, is_done=event.is_done)

    def settle(self, begin_ms: int, end_ms: int, *, is_done: bool) -> None:
        name = _local(begin_ms, self.zone).strftime(self.name)
        path = f"{self.directory}/{name}" if self.directory else name
        if is_done:
            window = {"begin": format_timestamp(begin_ms), "end": format_timestamp(end_ms)}
            self.storage.put_if_absent(path, json.dumps(window).encode())
        else:
            self.storage.delete(path)


def check_name(name: str, zone: tzinfo, seconds: int, begin_ms: int) -> None:
    """Raises ConfigError for a name that doesn't give each window a file of its own. One of them begins at `begin_ms`.

    A name in a partition's directory (`dt=%Y-%m-%d/_SUCCESS`) is one that no reader of Hudi takes for a data file.
    """
    begin = _local(begin_ms, zone)
    path = begin.strftime(name)
    unsafe = why_no_partition(path)
    if unsafe is not None or path.rpartition("/")[2].startswith(".") or parse_data_file(path.rpartition("/")[2]):
        raise ConfigError(f"marker {path!r} {unsafe or 'may be taken for a file of Hudi'}: use another name")
    try:
        named = datetime.strptime(path, name)  # noqa: DTZ007 - the zone follows
    except ValueError:
        named = datetime(1, 1, 1)  # noqa: DTZ001
    is_twice = seconds < _DAY and "%z" not in name and len({_local(at, zone).utcoffset() for at in _HALF_YEARS_MS}) > 1
    if named != (begin if named.tzinfo else begin.replace(tzinfo=None)) or is_twice:
        raise ConfigError(
            f"marker {name!r} names several windows alike: it needs the date, for windows below a day the time, and for "
            "those in a zone with clock changes also %z, such as %Y-%m-%dT%H%M%z/_SUCCESS"
        )


_HALF_YEARS_MS: Final = tuple(1_767_225_600_000 + half * 181 * _DAY * 1000 for half in range(2))


def _local(epoch_ms: int, zone: tzinfo) -> datetime:
    return (_EPOCH + timedelta(milliseconds=epoch_ms)).astimezone(zone)

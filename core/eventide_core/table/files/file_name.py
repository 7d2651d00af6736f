"""The grammar of the names of base files and log files.

    base file   <file id>_<write token>_<instant>.<extension>
    log file    .<file id>_<instant>.log.<version>[_<write token>][.cdc]
    native log  <file id>_<write token>_<instant>_<version>.<log|deletes|cdc>.<extension>

A name is valid only if its parts print the same name: only the digits 0 to 9, no leading zero in the version, nothing
after it. Base files aren't hidden. Native logs come with table version 10, and are refused.

In table version 6 a log file's instant is its slice's base instant; from 8 on it is the instant of the delta commit that
wrote it (or, for a left-over, of the compaction that placed it).
"""

import re
from sys import intern
from typing import Final

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.errors import UnsupportedTableError

_BASE = re.compile(
    r"(?P<file_id>[^./\\\x00][^/\\\x00]*?)_(?P<token>\d+-\d+-\d+)_(?P<instant>\d{14}|\d{17}|\d{20})(?P<extension>\.\w+)",
    re.ASCII,
)
# A file id hardly ever has an underscore. Without one, the expression needs no second attempt.
_LOG = re.compile(
    r"\.(?P<file_id>[^/\\\x00_]+|[^/\\\x00]+)_(?P<instant>\d{14}|\d{17}|\d{20})\.log\.(?P<version>0|[1-9]\d{0,9})"
    r"(?:_(?P<token>\d+-\d+-\d+))?(?P<suffix>\.cdc)?",
    re.ASCII,
)

_NATIVE_LOG = re.compile(r"[^./\\\x00][^/\\\x00]*_\d+-\d+-\d+_\d{14,20}_\d+\.(?:log|deletes|cdc)\.\w+", re.ASCII)

CHANGE_LOG_SUFFIX: Final = ".cdc"


@bulk_dataclass(frozen=True, slots=True)
class BaseFileName:
    """The parts of a base file's name: `<file_id>_<write_token>_<instant><extension>`.

    `instant` is the requested time of the write or compaction that made it. `write_token` is Hudi's `task-stage-attempt`,
    which keeps attempts apart. `extension` begins with its dot.
    """

    file_id: str
    write_token: str
    instant: str
    extension: str = ".parquet"

    @classmethod
    def parse(cls, name: str) -> "BaseFileName | None":
        """The parts of a base file's name; None for any other name."""
        match = _BASE.fullmatch(name)
        if match is None:
            return None
        file_id, token, instant, extension = match.groups()
        return cls(intern(file_id), token, intern(instant), extension)

    def __str__(self) -> str:
        return f"{self.file_id}_{self.write_token}_{self.instant}{self.extension}"


@bulk_dataclass(frozen=True, slots=True)
class LogFileName:
    """The parts of a log file's name: `.<file_id>_<instant>.log.<version>_<write_token><suffix>`.

    `instant` is its slice's on version 6, and its write's on version 8 and later, which for a left-over is the
    compaction. `version` counts from 1 under one instant; left-overs and carried tombstones on version 6 have 0.
    `write_token` is empty in a name without one. `suffix` is `.cdc` for a change log, else empty.
    """

    file_id: str
    instant: str
    version: int
    write_token: str = ""
    suffix: str = ""

    @classmethod
    def parse(cls, name: str) -> "LogFileName | None":
        """The parts of a log file's name; None for any other name."""
        match = _LOG.fullmatch(name)
        if match is None:
            return None
        file_id, instant, version, token, suffix = match.groups()
        # A table has few file ids and instants, and many files of each.
        return cls(intern(file_id), intern(instant), int(version), token or "", suffix or "")

    def __str__(self) -> str:
        token = f"_{self.write_token}" if self.write_token else ""
        return f".{self.file_id}_{self.instant}.log.{self.version}{token}{self.suffix}"

    @property
    def reader_order(self) -> tuple[str, int, str, str]:
        """The key by which readers sort the log files of a slice: instant, version, then token and suffix as strings."""
        return (self.instant, self.version, self.write_token, self.suffix)


def parse_data_file(name: str) -> BaseFileName | LogFileName | None:
    """The parts of the name of a base or log file; None for any other name."""
    return LogFileName.parse(name) or BaseFileName.parse(name)


def is_data_file(name: str) -> bool:
    """Whether the name is of a base or log file."""
    return parse_data_file(name) is not None


def refuse_native_log(path: str) -> None:
    """Raises UnsupportedTableError for a log file of table version 10: without its rows, every answer would be wrong."""
    if _NATIVE_LOG.fullmatch(path.rpartition("/")[2]) is not None:
        raise UnsupportedTableError(
            f"{path} is a native log file, which Hudi writes from table version 10 on, and eventide reads table versions "
            "6, 8 and 9; run a full compaction with the Hudi that wrote it, and have its writers write inline logs"
        )


def instant_in(name: str) -> str | None:
    """The instant in the name of a base or log file; None for any other name."""
    parsed = parse_data_file(name)
    return None if parsed is None else parsed.instant


def path_in(partition: str, name: str) -> str:
    """The path of a partition's file, relative to the table's root."""
    return f"{partition}/{name}" if partition else name

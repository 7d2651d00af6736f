"""The file names of an archived timeline.

    8 and later   <timeline>/history/   _version_ (says N)   manifest_N   <first>_<last>_<level>.parquet
    version 6     .hoodie/archived/     .commits_.archive.<number>_<write token>

`first` and `last` are the least and the greatest requested time in the file. Only the files that manifest_N names
count. A merge of small files keeps the merged ones for readers of older manifests.
"""

import re
from dataclasses import dataclass

VERSION_NAME = "_version_"

_HISTORY = re.compile(r"(?P<first>\d{14,20})_(?P<last>\d{14,20})_\d+\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(?P<version>0|[1-9]\d{0,9})", re.ASCII)
_ARCHIVE_LOG = re.compile(r"\.commits_\.archive\.(?P<number>[1-9]\d{0,9})(?:_\d+-\d+-\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class HistoryFileName:
    """A Parquet file of archived instants. Files sort by their last requested time."""

    last: str
    first: str
    name: str

    @classmethod
    def parse(cls, name: str) -> "HistoryFileName | None":
        """The parts of a file name in a manifest; None for a name of another form."""
        match = _HISTORY.fullmatch(name)
        return None if match is None else cls(match["last"], match["first"], name)

    def may_hold(self, begin: str, end: str) -> bool:
        """Whether an instant requested in [begin, end] can be among its instants."""
        return self.first <= end and self.last >= begin


def manifest_name(version: int) -> str:
    return f"manifest_{version}"


def manifest_version(name: str) -> int | None:
    """The version of the archived timeline in a manifest's name; None for any other name."""
    match = _MANIFEST.fullmatch(name)
    return None if match is None else int(match["version"])


def archive_log_number(name: str) -> int | None:
    """The number of a version 6 archive log; None for any other name."""
    match = _ARCHIVE_LOG.fullmatch(name)
    return None if match is None else int(match["number"])


def archive_log_name(number: int) -> str:
    """The name of a version 6 archive log, with Hudi's write token."""
    return f".commits_.archive.{number}_1-0-1"

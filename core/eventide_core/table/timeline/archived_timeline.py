"""The file names of an archived timeline.

    8 and later   <timeline>/history/   _version_ (contains N)   manifest_N   <first>_<last>_<level>.parquet
    version 6     .hoodie/archived/     .commits_.archive.<number>_<write token>

`first` and `last` are the least and the greatest requested time in the file. Only the files that manifest_N names
count. A merge of small files keeps the merged ones for readers of older manifests.

Merges follow Hudi's rules. Version 8 and later: as soon as a level has as many files as a batch, the oldest batch becomes
one file of the next level. Version 6: the newest log files up to the first large one become one.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

VERSION_NAME = "_version_"
END_OF_TIME = "9" * 20
"""Later than each requested time."""

_HISTORY = re.compile(r"(?P<first>\d{14,20})_(?P<last>\d{14,20})_(?P<level>\d{1,9})\.parquet", re.ASCII)
_MANIFEST = re.compile(r"manifest_(?P<version>0|[1-9]\d{0,9})", re.ASCII)
_ARCHIVE_LOG = re.compile(r"\.commits_\.archive\.(?P<number>[1-9]\d{0,9})(?:_\d+-\d+-\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class HistoryFileName:
    """A Parquet file of archived instants, from version 8 on. Files sort by their last requested time.

    `first` and `last` are the least and the greatest requested time in it, `level` how often its instants have been merged
    into a larger file.
    """

    last: str
    first: str
    name: str
    level: int = 0

    @classmethod
    def parse(cls, name: str) -> "HistoryFileName | None":
        """The parts of a file name in a manifest; None for a name of another form."""
        match = _HISTORY.fullmatch(name)
        return None if match is None else cls(match["last"], match["first"], name, int(match["level"]))

    @property
    def widened(self) -> "HistoryFileName":
        """The name of a range that begins one millisecond earlier."""
        first = f"{int(self.first) - 1:0{len(self.first)}d}"
        return replace(self, first=first, name=_history_name(first, self.last, self.level))

    def may_hold(self, begin: str, end: str) -> bool:
        """Whether an instant requested in [begin, end] can be among its instants."""
        return self.first <= end and self.last >= begin


@dataclass(frozen=True, slots=True)
class MergeLimits:
    """When files of archived instants are merged: `level_files` and `level_bytes_max` from version 8 on, the others on 6.

    `level_bytes_max`: a merge ends with the file that goes beyond it. `log_files`: as many small log files are merged, None
    if none are. `small_log_bytes_max`: larger log files are not small.
    """

    level_files: int
    level_bytes_max: int
    log_files: int | None
    small_log_bytes_max: int


def files_to_merge(
    files: Sequence[tuple[HistoryFileName, int]], level: int, limits: MergeLimits
) -> tuple[HistoryFileName, ...]:
    """The files of a level that become one file of the next level, oldest first; fewer than two are not merged."""
    of_level = sorted(
        ((f, size) for f, size in files if f.level == level), key=lambda pair: (pair[0].first, pair[0].last)
    )
    if len(of_level) < limits.level_files:
        return ()
    chosen: list[HistoryFileName] = []
    total = 0
    for file, size in of_level:
        total += size
        chosen.append(file)
        if len(chosen) == limits.level_files:
            break
        if total > limits.level_bytes_max:
            if len(chosen) > 1:
                break
            chosen, total = [], 0
    return tuple(chosen) if len(chosen) > 1 else ()


def history_file(times: Iterable[str], level: int) -> HistoryFileName:
    """The file of a level that contains these instants."""
    known = sorted(times)
    return HistoryFileName(known[-1], known[0], _history_name(known[0], known[-1], level), level)


def merged_file(files: Sequence[HistoryFileName]) -> HistoryFileName:
    """The file into which these files of one level are merged."""
    return history_file((time for file in files for time in (file.first, file.last)), files[0].level + 1)


def _history_name(first: str, last: str, level: int) -> str:
    return f"{first}_{last}_{level}.parquet"


def may_be_made_again(file: HistoryFileName, current: Collection[HistoryFileName]) -> bool:
    """Whether a file that no manifest names may still get its name from another writer: nobody may remove it.

    An archival makes it again as long as its first instant has not been archived, a merge as long as its files exist.
    """
    if file.level == 0:
        return not any(other.may_hold(file.first, file.first) for other in current)
    return any(other.level == file.level - 1 and other.first == file.first for other in current)


def logs_to_merge(logs: Sequence[tuple[int, int]], limits: MergeLimits) -> tuple[int, ...]:
    """The numbers of the log files that become one, of (number, size); nothing where too few are small."""
    chosen: list[int] = []
    for number, size in sorted(logs, reverse=True):
        if size > limits.small_log_bytes_max:
            break
        chosen.append(number)
    is_enough = limits.log_files is not None and len(chosen) >= limits.log_files
    return tuple(reversed(chosen)) if is_enough else ()


def manifest_name(version: int) -> str:
    return f"manifest_{version}"


def manifest_version(name: str) -> int | None:
    """The version of the archived timeline in a manifest's name; None for any other name."""
    match = _MANIFEST.fullmatch(name)
    return None if match is None else int(match["version"])


def manifest_versions(paths: Iterable[str]) -> list[int]:
    """The versions whose manifests are among these files."""
    versions = (manifest_version(path.rpartition("/")[2]) for path in paths)
    return [version for version in versions if version is not None]


def archive_log_number(name: str) -> int | None:
    """The number of a version 6 archive log; None for any other name."""
    match = _ARCHIVE_LOG.fullmatch(name)
    return None if match is None else int(match["number"])


def archive_log_name(number: int) -> str:
    """The name of a version 6 archive log, with Hudi's write token."""
    return f".commits_.archive.{number}_1-0-1"

"""What one write puts into one file group, and the names of its files."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from eventide_core.table.files.file_name import BaseFileName, LogFileName, path_in
from eventide_core.table.files.file_slice import BaseFile

MARKERS: Final = ".hoodie/.temp"
HEARTBEATS: Final = ".hoodie/.heartbeat"
STAGING: Final = ".staging"


@dataclass(frozen=True, slots=True)
class Placement:
    """The number of records of a write in one place of a partition.

    `place` is a bucket's name under the bucket index. Under other indexes it is the file ID of the group that has the keys,
    or empty for keys that the table does not have. `upserts` and `deletes` count them after versions of one key were
    combined, if the write does that.
    """

    partition: str
    place: str
    upserts: int
    deletes: int


class FileKind(StrEnum):
    """The kind of file that a write adds to a file group."""

    BASE = "base"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class FileGroupWrite:
    """What one write puts into one file group.

    Its file names are fixed beforehand, so that a retry makes the same files. The group gets `share` parts of the records of
    `partition` and `place`, out of the parts of all groups of the place. `number` distinguishes the groups of a write.
    `kind`: it gets log files, or one base file.

    A log file's name contains `slice_instant`, which is its slice's on version 6 and the write's on version 8
    and later; the first log file has the version `first_log_version`. `base_file` is the name of the slice's base file, if
    its instant is `slice_instant`, and `earlier_logs` are the names of the slice's log files under that instant, for the
    write stats of version 6. `filled_up` is the base file whose rows a new one begins with; None if it begins empty, and for
    log files.
    """

    number: int
    partition: str
    place: str
    share: int
    file_id: str
    kind: FileKind
    instant: str
    slice_instant: str
    first_log_version: int = 1
    base_file: str | None = None
    earlier_logs: tuple[str, ...] = ()
    filled_up: BaseFile | None = None

    @property
    def write_token(self) -> str:
        """Hudi's three numbers: task, stage, attempt. The stage number distinguishes writes of one day."""
        return f"{self.number}-{stage_of(self.instant)}-0"

    @property
    def base_name(self) -> str:
        return str(BaseFileName(self.file_id, self.write_token, self.instant))

    def log_name(self, ordinal: int) -> str:
        """The name of the log file with that number, which counts from 0."""
        return str(LogFileName(self.file_id, self.slice_instant, self.first_log_version + ordinal, self.write_token))

    def path_of(self, name: str) -> str:
        return path_in(self.partition, name)

    def marker_path(self, name: str, *, is_shared: bool) -> str:
        """The path of the marker by which Hudi finds the file when it rolls back the write.

        `is_shared`: several writes may append to a log file.
        """
        if self.kind is FileKind.LOG:
            kind = "APPEND" if is_shared else "CREATE"
        else:
            kind = "CREATE" if self.filled_up is None else "MERGE"
        return f"{marker_directory(self.instant)}/{self.path_of(name)}.marker.{kind}"


def marker_directory(instant: str) -> str:
    return f"{MARKERS}/{instant}"


def staging_directory(instant: str) -> str:
    """The directory of files that only the tasks of a write read. Not below its markers, which stock Hudi reads."""
    return f"{MARKERS}/{instant}{STAGING}"


def heartbeat_path(instant: str) -> str:
    return f"{HEARTBEATS}/{instant}"


def stage_of(instant: str) -> str:
    """The stage in the write tokens of a write's files: its time of the day."""
    return str(int(instant[8:]))

"""A file group at one instant: a base file, and the log files on top of it."""

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.table.files.file_name import BaseFileName, LogFileName


@bulk_dataclass(frozen=True, slots=True)
class BaseFile:
    """`path` is relative to the table's root; `size` in bytes."""

    name: BaseFileName
    path: str
    size: int


@bulk_dataclass(frozen=True, slots=True)
class LogFile:
    """`path` is relative to the table's root. `size` is in bytes; for a link, it is the size of the target."""

    name: LogFileName
    path: str
    size: int


@bulk_dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file (absent if records came only as log files) and its log files.

    `base_instant` is the instant of the base file; a slice without one has the instant that identifies it. `log_files` are
    in reader order. `change_log_files` contain changes for queries of format `cdc`, and no records: they belong to the slice
    and are never merged.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...]
    change_log_files: tuple[LogFile, ...] = ()

    @property
    def file_group(self) -> tuple[str, str]:
        """The identity of the file group in the table: partition path and file id."""
        return (self.partition, self.file_id)

"""A file group at one instant: a base file, and the log files on top of it."""

from dataclasses import dataclass

from eventide_core.table.file_name import BaseFileName, LogFileName


@dataclass(frozen=True, slots=True)
class BaseFile:
    """`path` is relative to the table's root; `size` in bytes."""

    name: BaseFileName
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class LogFile:
    """`path` is relative to the table's root; `size` in bytes, of the target where the file is a link."""

    name: LogFileName
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class FileSlice:
    """A base file (absent if records came as log files only) and its log files in reader order.

    `base_instant` is the instant of the base file, or what a slice without one goes by. `change_log_files` hold changes for
    queries of format `cdc`, and no records: they go with the slice, and are never merged.
    """

    partition: str
    file_id: str
    base_instant: str
    base_file: BaseFile | None
    log_files: tuple[LogFile, ...]
    change_log_files: tuple[LogFile, ...] = ()

    @property
    def file_group(self) -> tuple[str, str]:
        """What identifies the file group in the table: partition path and file id."""
        return (self.partition, self.file_id)

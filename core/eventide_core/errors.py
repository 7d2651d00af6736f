"""The errors, each with its exit code and the builtin error that a caller would catch; and the form of counts and times.

Exit codes (the command line's contract): 2 wrong usage or bad input, 3 refused because it would not be safe or
supported, 4 busy, 5 storage or engine failed.

The first paragraph of each docstring says what the error means, the second one what to do about it.
docs/reference/errors.md is generated from them.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

# Characters that move a cursor, end a line or change the direction of text. In a table's name, they could forge
# lines of a log.
_NOT_SHOWN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


_SHOWN_MAX: Final = 1000
"""How much of a message's beginning and of its end is shown, in characters: the place and the cure, beside any value."""


def printable(text: str, *, keeps_lines: bool = False) -> str:
    """The text with its control characters escaped as Python writes them; `keeps_lines` leaves ends of lines alone."""

    def escaped(match: re.Match[str]) -> str:
        return match[0] if keeps_lines and match[0] == "\n" else ascii(match[0])[1:-1]

    return _NOT_SHOWN.sub(escaped, text)


def counted(count: int, noun: str) -> str:
    """1 log file, 2,000 log files."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def format_timestamp(epoch_ms: int | None, absent: str = "none") -> str:
    """A time in UTC, to the second, or to the millisecond if it has one. It is a valid T."""
    if epoch_ms is None:
        return absent
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return time.isoformat(timespec="milliseconds" if epoch_ms % 1000 else "seconds").replace("+00:00", "Z")


def format_moment(epoch_ms: int | None) -> str:
    """A time in UTC with its epoch milliseconds beside it, as the messages show T, the cut and the watermark."""
    return "none" if epoch_ms is None else f"{format_timestamp(epoch_ms)} ({epoch_ms})"


class EventideError(Exception):
    """Any error that eventide raises; the message names the value, the place and the cure."""

    exit_code: ClassVar[int] = 5

    def __init_subclass__(cls, *, exit_code: int | None = None) -> None:
        """A class without an exit code of its own has its base class's."""
        if exit_code is not None:
            cls.exit_code = exit_code

    def __str__(self) -> str:
        text = super().__str__()
        left_out = len(text) - 2 * _SHOWN_MAX
        if left_out > 0:
            text = f"{text[:_SHOWN_MAX]}... ({counted(left_out, 'character')}) ...{text[-_SHOWN_MAX:]}"
        return printable(text)


class ConfigError(EventideError, ValueError, exit_code=2):
    """An option has a value that cannot be used.

    Correct the option that the message names; docs/reference lists all options.
    """


class RecordMergerError(EventideError, ValueError, exit_code=2):
    """A user-defined merger failed, or returned what doesn't fit the table; nothing was committed.

    Correct the class that the message names.
    """


class InvalidRecordError(EventideError, ValueError, exit_code=2):
    """A record lacks a key or an ordering value, or its columns do not fit the table; nothing was written.

    Correct the records at the row and column that the message names, and write again.
    """


class InvalidColumnNameError(EventideError, ValueError, exit_code=2):
    """A new column has a name that Avro cannot hold; nothing was written.

    Rename the column, or let `sanitize=True` do it.
    """


class InvalidThresholdError(EventideError, ValueError, exit_code=2):
    """T is neither ISO-8601 with a zone nor epoch milliseconds, or is a day beyond the clock and beyond every record.

    Write T as 2026-11-21T00:00Z or 1795219200000.
    """


class InvalidFilterError(EventideError, ValueError, exit_code=2):
    """A filter, the expression of a new value, or a column list does not fit the table.

    Correct the expression or the name; the message lists the columns.
    """


class NotAHudiTableError(EventideError, FileNotFoundError, exit_code=2):
    """The path contains no Hudi table: `.hoodie/hoodie.properties` is missing or unreadable.

    Correct the path; for a new table, use `Table.create(uri)`.
    """


class InstantNotFoundError(EventideError, LookupError, exit_code=2):
    """The timeline has no such instant.

    Use an instant that `table.history()` lists.
    """


class CleanedHistoryError(EventideError, LookupError, exit_code=2):
    """A query needs files of a time that has been cleaned.

    Use a later instant. In the future, retain more (`hoodie.cleaner.commits.retained`) or set savepoints.
    """


class WatermarkNotFoundError(EventideError, LookupError, exit_code=2):
    """A query needs the view as of a watermark that no compaction has published.

    Use a watermark that the message names, or compact up to that time first.
    """


class TagNotFoundError(EventideError, LookupError, exit_code=2):
    """No savepoint has the tag.

    `table.tags()` lists the existing tags.
    """


class CorruptTimelineError(EventideError, ValueError, exit_code=2):
    """A file of the timeline cannot be decoded.

    Restore the file that the message names from a copy, or undo its instant.
    """


class EmptyPlanError(CorruptTimelineError):
    """A compaction was requested, and its plan was never written: the engine died in between.

    Roll the compaction back; it has created no file.
    """


class CorruptLogBlockError(EventideError, ValueError, exit_code=2):
    """A log block is torn: its magic, lengths or reverse pointer do not agree.

    Restore the file from a copy; `table.verify(deep=True)` says what else is damaged.
    """


class CorruptBaseFileError(EventideError, ValueError, exit_code=2):
    """A base file is not a readable Parquet file.

    Restore the file from a copy, or roll back the instant that wrote it.
    """


class UnsupportedLogFormatError(EventideError, ValueError, exit_code=3):
    """A log file has a block of a type that eventide does not support.

    Compact the table in full with Hudi, which turns such blocks into base files.
    """


class RecordDecodeError(EventideError, ValueError, exit_code=2):
    """The content of a log block does not fit the schema in its header.

    Restore the file from a copy; `table.verify(deep=True)` says what else is damaged.
    """


class ResourceLimitError(EventideError, MemoryError, exit_code=3):
    """A file would take far more memory to read than any file of Hudi's: by its own sizes, or because memory ran out.

    Find out what wrote the file that the message names. If it is intended, read it with more memory, or with Hudi.
    """


class MachineResourcesError(ResourceLimitError, exit_code=5):
    """The machine ran out of memory, threads or open files while eventide read a file, which may be fine.

    Run the same command again with more of them.
    """


class MissingFileError(EventideError, FileNotFoundError, exit_code=2):
    """A file that the timeline or a plan names does not exist.

    If a service removes files that the table needs, stop it first. Restore the file from a copy.
    """


class CleanedWhileReadingError(MissingFileError, exit_code=4):
    """A cleaner removed a file after the query was planned and a part of the rows was read.

    Run the query again. If queries take longer than a clean retains their files, retain more
    (`hoodie.clean.commits.retained`), or read a tag.
    """


class PlanMismatchError(EventideError, ValueError, exit_code=2):
    """A plan names files that the timeline or the listing does not have.

    Roll back the plan with `table.rollback(instant)`, and plan again.
    """


class UnsafePathError(EventideError, ValueError, exit_code=2):
    """A name in the table leads outside the table.

    Find out what wrote the name: no writer of Hudi does.
    """


class UnsupportedTableError(EventideError, NotImplementedError, exit_code=3):
    """The table uses a feature of Hudi that eventide does not support.

    Do what the last words of the message say, or use Hudi for the table.
    """


class RefusedError(EventideError, PermissionError, exit_code=3):
    """The operation would not be safe; nothing was written.

    Do what the last words of the message say.
    """


class NoExactCutError(RefusedError):
    """The published cut has reached T, and base files hold records from T on, which no compaction takes out again.

    Use a later T, or restore the table to before the compaction that merged them.
    """


class SchemaChangeError(RefusedError):
    """The table's schema can't change so: the table lacks the column, or some reader would lose values.

    Do what the last words of the message say.
    """


class NothingToDoError(EventideError, exit_code=0):
    """The configured trigger is not due, or the strategy finds nothing to compact; nothing was written.

    Nothing. A plan reports this beforehand.
    """


class BusyError(EventideError, BlockingIOError, exit_code=4):
    """A pending plan, a pending write or another holder of the lock is in the way.

    Try again. If the error stays, `table.history()` lists what is pending; complete it with
    `table.execute(instant)`, or roll it back.
    """


class WriteConflictError(BusyError):
    """Another writer changed the same file groups in the meantime; nothing was committed.

    Write again. An update or a merge reads its rows again then.
    """


class WindowTakenError(BusyError):
    """Another runner of the consumer holds the window, or has taken it since its lease ended.

    Process windows of one consumer in one runner at a time. If the other one is dead, wait until its lease ends, or
    take the window over with `take_over=True`.
    """


class MetadataTableBusyError(BusyError):
    """Hudi is compacting the metadata table of a table of version 6, and nobody else can commit to it in the meantime.

    Try again. If the error stays, the writer is dead: Hudi's next write completes the compaction.
    """


class LockError(BusyError):
    """The table lock could not be acquired in time, or was lost.

    Try again. If nobody works on the table, remove the lock file that the message names. With
    `hoodie.write.lock.filesystem.expire` set, it expires by itself.
    """


class CompletedMeanwhileError(BusyError):
    """A write or compaction completed while its rollback began, and stays.

    Run the rollback again to undo it nevertheless.
    """


class LockLostError(LockError):
    """The table lock was removed while it was held.

    Run the command again to continue. Hudi's `FileSystemBasedLockProvider` removes the lock of another process when its
    writer closes. If this happens often, set another provider for all writers.
    """


class StorageError(EventideError, OSError):
    """The storage failed; the message states what is known about the commit.

    Run the same command again. Every step can be repeated, and the timeline shows whether it was committed.
    """


class StorageFullError(StorageError):
    """The storage is full. eventide rolled back the write if that needed no space.

    Free space there, then run the same command again.
    """


class StorageAccessError(StorageError, PermissionError, exit_code=2):
    """The storage refused the access or the credentials; another try gives the same answer.

    Correct the permissions, or the credentials in the options or the environment, then run the same command again.
    """


class EngineError(EventideError, RuntimeError):
    """The engine that runs the tasks failed; nothing was committed.

    See the engine's log, and run the same command again.
    """


class WorkerPackagesError(EngineError, exit_code=2):
    """A Python worker of Spark lacks a package that the driver has, or runs another Python or another eventide.

    Start the session with `PYSPARK_PYTHON` set to an interpreter that has the packages, or install them where the message
    says.
    """


class UnsupportedEngineError(EventideError, NotImplementedError, exit_code=3):
    """The SparkSession does not support the operation, such as one of Spark Connect that needs the driver's own objects.

    Use the option or the classic session that the message names.
    """


class CatalogError(EventideError, ConnectionError):
    """The catalog cannot be reached, or refused a change; the table's commits are not affected.

    Check the metastore and its address, `hoodie.datasource.hive_sync.metastore.uris`, and run `table.sync()` again,
    which completes the interrupted sync.
    """


class MarkerError(EventideError, ConnectionError):
    """A URL that is called when a window is done, or reopened, did not take the event; the table is not affected.

    The event is sent again with the next round of `serve`, or the next `mark-done`, and no later one before it.
    """


class DatabaseNotFoundError(EventideError, LookupError, exit_code=2):
    """The catalog has no such database, and the options don't allow eventide to create it.

    Create it there, or set `hoodie.datasource.hive_sync.auto_create_database=true`.
    """

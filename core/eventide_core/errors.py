"""What can go wrong, each error with its exit code, and also the builtin that a caller would catch; and how a message has
its counts and times.

Exit codes (the command line's contract): 2 wrong usage or bad input, 3 refused because it would not be safe or
supported, 4 busy, 5 storage or engine failed.

Each says what it means and, in its second paragraph, what is to be done: docs/reference/errors.md is made of these.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

# What moves a cursor, ends a line or turns the direction of reading: a name of a table could forge lines of a log by it.
_NOT_SHOWN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str, *, keeps_lines: bool = False) -> str:
    """The text with its control characters escaped as Python writes them; `keeps_lines` leaves ends of lines alone."""

    def escaped(found: re.Match[str]) -> str:
        return found[0] if keeps_lines and found[0] == "\n" else ascii(found[0])[1:-1]

    return _NOT_SHOWN.sub(escaped, text)


def counted(count: int, noun: str) -> str:
    """1 log file, 2,000 log files."""
    return f"{count:,} {noun if count == 1 else noun + 's'}"


def format_timestamp(epoch_ms: int | None, absent: str = "none") -> str:
    """A time in UTC, to the second, or the millisecond where it has one; it can be given as a T as it stands."""
    if epoch_ms is None:
        return absent
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=epoch_ms)
    except OverflowError:
        return str(epoch_ms)
    return time.isoformat(timespec="milliseconds" if epoch_ms % 1000 else "seconds").replace("+00:00", "Z")


class EventideError(Exception):
    """Any error that eventide answers with; the message names the value, the place and the cure."""

    exit_code = 5

    def __str__(self) -> str:
        return printable(super().__str__())


class ConfigError(EventideError, ValueError):
    """An option has a value that cannot be used.

    Correct the option that the message names; docs/reference/configuration.md has them all.
    """

    exit_code = 2


class InvalidRecordError(EventideError, ValueError):
    """A record to be written lacks a key or an ordering value, or its columns do not fit the table; nothing was written.

    Correct the records at the row and column that the message names, and write again.
    """

    exit_code = 2


class InvalidColumnNameError(EventideError, ValueError):
    """A new column has a name that Avro cannot hold; nothing was written.

    Rename the column, or let `ingest --sanitize` or `sanitize=True` do it.
    """

    exit_code = 2


class InvalidThresholdError(EventideError, ValueError):
    """T is neither ISO-8601 with a zone nor epoch milliseconds, or lies beyond the clock by a day and beyond every record.

    Write T as 2026-11-21T00:00Z or 1795219200000.
    """

    exit_code = 2


class InvalidFilterError(EventideError, ValueError):
    """A filter expression or a column list does not fit the table.

    Correct the expression or the name; the message lists the columns.
    """

    exit_code = 2


class NotAHudiTableError(EventideError, FileNotFoundError):
    """The path holds no Hudi table: `.hoodie/hoodie.properties` is missing or unreadable.

    Correct the path; for a new table `ingest --create` or `Table.create`.
    """

    exit_code = 2


class InstantNotFoundError(EventideError, LookupError):
    """No such instant on the timeline.

    Take an instant that `eventide show` lists.
    """

    exit_code = 2


class CleanedHistoryError(EventideError, LookupError):
    """A query asks for a time whose files have been cleaned.

    Ask for a later instant; clean less (`hoodie.cleaner.commits.retained`) or set savepoints from now on.
    """

    exit_code = 2


class WatermarkNotFoundError(EventideError, LookupError):
    """A query asks for the view as of a watermark that no compaction has published.

    Ask for one that the message names, or compact up to that time first.
    """

    exit_code = 2


class TagNotFoundError(EventideError, LookupError):
    """No savepoint bears the tag.

    `eventide tag TABLE` lists the tags there are.
    """

    exit_code = 2


class CorruptTimelineError(EventideError, ValueError):
    """A file of the timeline cannot be decoded.

    Restore the file that the message names from a copy, or undo its instant.
    """

    exit_code = 2


class CorruptLogBlockError(EventideError, ValueError):
    """A log block is torn: its magic, lengths or reverse pointer do not agree.

    Restore the file from a copy; `eventide verify --deep` says what else is damaged.
    """

    exit_code = 2


class CorruptBaseFileError(EventideError, ValueError):
    """A base file cannot be read as the Parquet file its name says it is.

    Restore the file from a copy, or roll back the instant that wrote it.
    """

    exit_code = 2


class UnsupportedLogFormatError(EventideError, ValueError):
    """A log block of a kind that eventide does not know.

    Compact the table in full with Hudi, which turns such blocks into base files.
    """

    exit_code = 3


class RecordDecodeError(EventideError, ValueError):
    """The content of a log block does not fit the schema in its header.

    Restore the file from a copy; `eventide verify --deep` says what else is damaged.
    """

    exit_code = 2


class ResourceLimitError(EventideError, MemoryError):
    """A file would take far more memory to read than any file of Hudi's: it says so itself, or memory has run out.

    Find out who wrote the file that the message names; where it is meant so, read it with more memory, or with Hudi.
    """

    exit_code = 3


class MissingFileError(EventideError, FileNotFoundError):
    """A file that the timeline or a plan names is not there.

    Restore the file from a copy; a service that removes files that are needed must be stopped first.
    """

    exit_code = 2


class CleanedWhileReadingError(MissingFileError):
    """A cleaner removed a file after the query was planned, and part of the rows had been read by then.

    Run the query again. Where queries take longer than cleaning leaves them, retain more (`hoodie.clean.commits.retained`),
    or read a tag.
    """

    exit_code = 4


class PlanMismatchError(EventideError, ValueError):
    """A plan names files that the timeline or the listing does not have.

    Roll the plan back (`eventide rollback TABLE INSTANT`) and plan again.
    """

    exit_code = 2


class UnsafePathError(EventideError, ValueError):
    """A name read from the table would lead outside it.

    Find out who wrote the name: no writer of Hudi does.
    """

    exit_code = 2


class UnsupportedTableError(EventideError, NotImplementedError):
    """The table uses something of Hudi that eventide does not know; it answers so rather than with a wrong row.

    Do what the message says in its last words, or work on the table with Hudi.
    """

    exit_code = 3


class RefusedError(EventideError, PermissionError):
    """What was asked for would not be safe.

    Do what the message says in its last words; nothing was written.
    """

    exit_code = 3


class NothingToDoError(EventideError):
    """The configured trigger is not due, or the strategy finds nothing to compact; nothing was written.

    None is needed. `plan.idle` and `eventide plan` say so beforehand.
    """

    exit_code = 0


class BusyError(EventideError, BlockingIOError):
    """A pending plan, a pending write or another holder of the lock is in the way; try again.

    Try again; if it stays, `eventide show` says what is pending, and `execute` or `rollback` ends it.
    """

    exit_code = 4


class WriteConflictError(BusyError):
    """Another writer changed the same file groups meanwhile; nothing was committed.

    Write again.
    """


class MetadataTableBusyError(BusyError):
    """Hudi is compacting the metadata table of a table of version 6, to which nobody else may commit meanwhile.

    Try again. If it stays, its writer is dead: Hudi's next write completes the compaction.
    """


class LockError(BusyError):
    """The table lock could not be taken in time, or was lost.

    Try again. Where nobody is at work, remove the lock file that the message names; with
    `hoodie.write.lock.filesystem.expire` set, it expires by itself.
    """


class LockLostError(LockError):
    """The table lock was taken away from its holder.

    Run the command again, which goes on. Hudi's `FileSystemBasedLockProvider` removes another's lock when its writer closes:
    where this happens often, give all writers another provider.
    """


class StorageError(EventideError, OSError):
    """The storage failed; the message says what is known of the commit.

    Run the same command again: every step is repeatable, and the timeline says whether it was committed.
    """


class StorageFullError(StorageError):
    """The storage has no room left; a write that met it has been rolled back where that took none.

    Make room there, then run the same command again.
    """


class EngineError(EventideError, RuntimeError):
    """The engine that runs the tasks failed; nothing was committed.

    See the engine's log, and run the same command again.
    """


class UnsupportedEngineError(EventideError, NotImplementedError):
    """What the SparkSession at hand cannot do, such as one of Spark Connect that is asked for the driver's own objects.

    Use the option or the classic session that the message names.
    """

    exit_code = 3


class CatalogError(EventideError, ConnectionError):
    """The catalog cannot be reached, or refused a change; no commit of the table is touched by that.

    See to the metastore and its address, `hoodie.datasource.hive_sync.metastore.uris`, and run `eventide sync` again: it
    ends what was begun.
    """


class DatabaseNotFoundError(EventideError, LookupError):
    """The catalog has no such database, and was not to make one.

    Make it there, or let `hoodie.datasource.hive_sync.auto_create_database` be true.
    """

    exit_code = 2

"""What can go wrong, each error with its exit code, and also the builtin that a caller would catch.

Exit codes (the command line's contract): 2 wrong usage or bad input, 3 refused because it would not be safe or
supported, 4 busy, 5 storage or engine failed.
"""


class EventideError(Exception):
    """Any error that eventide answers with; the message names the value, the place and the cure."""

    exit_code = 5


class ConfigError(EventideError, ValueError):
    """An option has a value that cannot be used."""

    exit_code = 2


class InvalidRecordError(EventideError, ValueError):
    """A record to be written lacks a key or an ordering value, or its columns do not fit the table; nothing was written."""

    exit_code = 2


class InvalidThresholdError(EventideError, ValueError):
    """T is neither ISO-8601 with a zone nor epoch milliseconds."""

    exit_code = 2


class InvalidFilterError(EventideError, ValueError):
    """A filter expression or a column list does not fit the table."""

    exit_code = 2


class NotAHudiTableError(EventideError, FileNotFoundError):
    """The path holds no Hudi table: `.hoodie/hoodie.properties` is missing or unreadable."""

    exit_code = 2


class InstantNotFoundError(EventideError, LookupError):
    """No such instant on the timeline."""

    exit_code = 2


class CleanedHistoryError(EventideError, LookupError):
    """A query asks for a time whose files have been cleaned."""

    exit_code = 2


class CorruptTimelineError(EventideError, ValueError):
    """A file of the timeline cannot be decoded."""

    exit_code = 2


class CorruptLogBlockError(EventideError, ValueError):
    """A log block is torn: its magic, lengths or reverse pointer do not agree."""

    exit_code = 2


class CorruptBaseFileError(EventideError, ValueError):
    """A base file cannot be read as the Parquet file its name says it is."""

    exit_code = 2


class UnsupportedLogFormatError(EventideError, ValueError):
    """A log block of a kind that eventide does not know."""

    exit_code = 3


class RecordDecodeError(EventideError, ValueError):
    """The content of a log block does not fit the schema in its header."""

    exit_code = 2


class MissingFileError(EventideError, FileNotFoundError):
    """A file that the timeline or a plan names is not there."""

    exit_code = 2


class PlanMismatchError(EventideError, ValueError):
    """A plan names files that the timeline or the listing does not have."""

    exit_code = 2


class UnsafePathError(EventideError, ValueError):
    """A name read from the table would lead outside it."""

    exit_code = 2


class UnsupportedTableError(EventideError, NotImplementedError):
    """The table uses something of Hudi that eventide does not know; it answers so rather than with a wrong row."""

    exit_code = 3


class RefusedError(EventideError, PermissionError):
    """What was asked for would not be safe."""

    exit_code = 3


class ThresholdBelowCutError(RefusedError):
    """T lies before the cut that is already published; the cut falls only by rollback or restore."""


class NothingToDoError(EventideError):
    """The configured trigger is not due, or the strategy finds nothing to compact; nothing was written."""

    exit_code = 0


class BusyError(EventideError, BlockingIOError):
    """A pending plan, a pending write or another holder of the lock is in the way; try again."""

    exit_code = 4


class WriteConflictError(BusyError):
    """Another writer changed the same file groups meanwhile; nothing was committed."""


class LockError(BusyError):
    """The table lock could not be taken in time, or was lost."""


class StorageError(EventideError, OSError):
    """The storage failed; the message says what is known of the commit."""


class EngineError(EventideError, RuntimeError):
    """The engine that runs the tasks failed; nothing was committed."""

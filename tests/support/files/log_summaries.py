"""The summary of one log file."""

from eventide_core.errors import EventideError
from eventide_core.ports import LogContent, LogSummary
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.records.record_shape import RecordShape


def summary_of(content: LogContent, log: LogFile, shape: RecordShape) -> LogSummary:
    """Raises the error that stands for a log file that can't be read."""
    (found,) = content.summarize([log], shape)
    if isinstance(found, EventideError):
        raise found
    return found

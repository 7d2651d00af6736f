"""The facts of one log file."""

from eventide_core.errors import EventideError
from eventide_core.ports import LogContent
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.records.record_shape import RecordShape


def facts_of(content: LogContent, log: LogFile, shape: RecordShape) -> LogFacts:
    """Raises the error that stands for a log file that can't be read."""
    (found,) = content.summarize([log], shape)
    if isinstance(found, EventideError):
        raise found
    return found

"""Finds whose records seem to be of the future. Reads their keys only on request."""

from collections.abc import Sequence
from dataclasses import dataclass

from eventide_core.action.query.offending_log_files import OffendingLogFile
from eventide_core.config import Options
from eventide_core.errors import EventideError
from eventide_core.ports import LogContent, TimedKey
from eventide_core.service.common.facts.event_time_field import event_time_field_of
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles

_KEYS_NAMED = 3  # of a log file


@dataclass(frozen=True, slots=True)
class OffendingRecords:
    """A log file, `offending`, and a few of its keys, the one furthest in the future first.

    `keys` have an event time at or after its `since_ms`. `problem` states why none is known.
    """

    offending: OffendingLogFile
    keys: tuple[TimedKey, ...]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class OffendingRecordsReader:
    files: TableFiles
    content: LogContent
    options: Options

    def read(self, logs: Sequence[OffendingLogFile]) -> tuple[OffendingRecords, ...]:
        """A few keys of each log file; reads only blocks that may hold them. For a removed log file, the reason."""
        if not logs:
            return ()
        state = TableState.load(self.files)
        shape, blocks = state.shape(event_time_field_of(state, self.options)), state.blocks()
        records: list[OffendingRecords] = []
        for offending in logs:
            try:
                keys = self.content.records.latest_keys(
                    offending.log_file, shape, offending.since_ms, _KEYS_NAMED, blocks
                )
            except EventideError as error:
                records.append(OffendingRecords(offending, (), str(error)))
            else:
                records.append(OffendingRecords(offending, keys))
        return tuple(records)

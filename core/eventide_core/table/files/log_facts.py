"""What is known about the content of a log file."""

from enum import Enum

from eventide_core.bulk_dataclass import bulk_dataclass
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.records.event_time import EventTimeRange


class HeaderCheck(Enum):
    """Which block headers have to be read before a log file's facts are complete.

    NONE: no further ones. OF_WRITE: the kinds of any log file of the same write, which are the same. OF_FILE: its own,
    because they weren't read, or one of its blocks is torn.
    """

    NONE = "none"
    OF_WRITE = "of write"
    OF_FILE = "of file"


@bulk_dataclass(frozen=True, slots=True)
class LogFacts:
    """A log file and what is known about its content, by the timeline or by its blocks (service/common/facts/log_facts.py).

    `event_times` is the range of all its records and deletes, `delete_count` the number of its deletes, natural ones among
    them. `instants` are the requested times of the writes whose blocks in it have records, torn and uncommitted blocks
    included. `rolled_back` are the instants whose blocks a command block in it rolls back. `has_merged_block`: one of its
    blocks is the result of a log compaction.

    `check` has to be made for a slice that is compacted. `uncompacted` is the range of its records that are in no base file
    yet: all of them, except those that an exact cut has merged early. `has_partial_updates`: it has records of some columns,
    as far as its headers were read. `nameless_from` is the offset of its first torn bytes that name no write, from an append
    that was interrupted before it wrote its instant. `torn_instants` are the instants of torn blocks alone.
    """

    log_file: LogFile
    event_times: EventTimeRange
    instants: frozenset[str]
    delete_count: int
    rolled_back: frozenset[str]
    check: HeaderCheck
    has_merged_block: bool
    uncompacted: EventTimeRange
    has_partial_updates: bool = False
    nameless_from: int | None = None
    torn_instants: frozenset[str] = frozenset()

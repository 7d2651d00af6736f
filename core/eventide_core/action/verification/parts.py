"""What is known of a table's log files, base files, records, removals, archive and index: the parts of TableFacts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.table.files.slice_audit import RepeatedKey, RowDifference, SliceAudit
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from eventide_core.table.timeline.instant import Instant


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """One block of a log file, by its header.

    `offset` is where it begins, in bytes. `instant` is the requested time of the action that wrote it; a torn block
    (`is_torn`) has one where its header is whole. A command block (`is_command`) holds no records: its `rollback_target` is
    the instant whose blocks it rolls back, None if it is of another kind.
    """

    offset: int
    instant: str | None
    is_torn: bool = False
    is_command: bool = False
    rollback_target: str | None = None


@dataclass(frozen=True, slots=True)
class LogScan:
    """The readable `blocks` of a log file in their order, up to the first unreadable one.

    `problem` states why that one is unreadable; None if there is none.
    """

    blocks: tuple[BlockFacts, ...]
    problem: str | None = None

    @property
    def instants(self) -> frozenset[str]:
        """The blocks with records, whole or torn."""
        return frozenset(b.instant for b in self.blocks if b.instant is not None and not b.is_command)


@dataclass(frozen=True, slots=True)
class RecordFacts:
    """What reading records found.

    `problems` state by path why something could not be read, `unsupported` which of it eventide does not support.

    `audits` are what each slice's records showed, against the watermark at that time, `watermark_ms` in epoch milliseconds;
    None if there is none. `compared_copies` counts the left-overs that were compared with the log file that they are a copy
    of: not links, nor copies whose source was cleaned. `copies` are the left-overs of which another file than the copy's
    source was found, with that source. `repeated` are keys that several file groups of a partition show, with the partition.
    `differences` are how a compaction changed a slice's rows, by the slice's new base file; None if it didn't. `checksums`
    are of the files that a commit has a checksum of, by path; None for a file that is shorter than its commit states.
    `compares_keys`: record keys were compared with their fields.
    """

    audits: tuple[SliceAudit, ...] = ()
    watermark_ms: int | None = None
    compared_copies: int = 0
    copies: Mapping[str, str] = field(default_factory=dict[str, str])
    repeated: tuple[tuple[str, RepeatedKey], ...] = ()
    differences: Mapping[str, RowDifference | None] = field(default_factory=dict[str, RowDifference | None])
    checksums: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    problems: Mapping[str, str] = field(default_factory=dict[str, str])
    unsupported: Mapping[str, str] = field(default_factory=dict[str, str])
    compares_keys: bool = True


@dataclass(frozen=True, slots=True)
class RemovalFacts:
    """What removes files, or keeps them.

    `pending` are the files that pending cleans and rollbacks will remove. `saved` are those that each savepoint keeps,
    `cleans` those that each completed clean of the active timeline removed. No other clean ran since `cleans_known_since`;
    None: others may have, at any time.
    """

    pending: frozenset[str]
    saved: Mapping[str, frozenset[str]]
    cleans: Mapping[str, frozenset[str]]
    cleans_known_since: str | None


class ArchivedFacts(NamedTuple):
    """What archived writes wrote.

    `files` are the files that exist, by path, and `absent` those that don't, as far as no newer base file of their file
    group is known and no archived write replaced the group: each with the instant of the write, and its write stat.
    `left_overs` are which of the former are left-overs.

    `predating_archive` are writes that are older than the archived timeline, so that nothing shows what they wrote. A
    downgrade to version 6 leaves such. `missing_from_archive` are later ones from before the active timeline that the
    archived one doesn't have. `returned` are the files of groups that an archived write replaced, and its time.
    """

    files: Mapping[str, tuple[Instant, WriteStat]]
    absent: Mapping[str, tuple[Instant, WriteStat]]
    left_overs: frozenset[str]
    predating_archive: frozenset[str]
    missing_from_archive: frozenset[str]
    returned: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class BaseFacts:
    """The content of the footers of base files, by path.

    `row_counts` are the rows of those that can be read; `problems` state why the others can't.
    """

    row_counts: Mapping[str, int]
    problems: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EventTimeFacts:
    """The event times of the log files of the latest slices, as the planner gets them.

    `of_logs` has the range of all records of a log file, by path; `uncompacted` of those that should be in no base
    file. `freshness` is absent if there is nothing to check it against, or if `problem` states why it is unknown.
    `notes` state how event times were read, if the table doesn't.
    """

    freshness: Freshness | None
    of_logs: Mapping[str, EventTimeRange]
    uncompacted: Mapping[str, EventTimeRange]
    problem: str | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """The content of Hudi's metadata table.

    `partitions` are its own, of which a rebuild makes `rebuilt` again. `files` are those that it lists, with sizes; None
    while Hudi is building that, or if it can't be read, as `problem` states. `writes` are the instants of its completed
    delta commits. `late_compaction` describes it if its compaction is overdue.
    """

    partitions: tuple[str, ...]
    rebuilt: tuple[str, ...]
    files: Mapping[str, int] | None
    writes: frozenset[str]
    problem: str | None
    late_compaction: str | None

"""Plans which slices a query reads, and which of their blocks and rows count.

snapshot: each file group's latest slice, base and log files merged.
read-optimized: each file group's latest base file alone.
time travel: the slices as of an instant, and the blocks of their log files up to it. The link of a left-over is read like
    any log file:
    its blocks have the instants of the commits that brought them (not skipped, as RFC-74 section 7 has it: they would
    be lost to every instant after the compaction).
incremental (begin, end]: the slices that the files written in that span make up, and of their rows the ones committed in
    it, as Hudi's readers do. Version 6 measures the span by requested times, 8 and later by completion times. A span may
    begin before the active timeline: its archived writes are among them (Hudi's readers of version 6 leave them out).
    A row of which the span has some columns only, as partial updates write them, is the one of the whole slice as of the
    span's end (Hudi's readers show null in the others).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from eventide_core.errors import EventideError, InstantNotFoundError
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.files.slice_read import BlockFilter, SliceRead
from eventide_core.table.settings.key_format import NULL_PARTITION, KeyFormat
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.file_system_view import FileSystemView
from eventide_core.table.timeline.instant import Action, Instant, instant_epoch_ms, instant_time
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline

EARLIEST = "earliest"
_DIGITS = re.compile(r"\d{1,17}")
_EPOCH = re.compile(r"1\d{9}(?:\d{3})?")  # no table is of a year before 2000
_EPOCH_MS_DIGITS = 13
_YEAR_DIGITS = 4
_HALF_DATES = (5, 7)  # with the first digit of the month or the day, which have no 00
_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_WRITE_MS_MAX = 24 * 60 * 60 * 1000


def parse_time(text: str, *, is_end: bool = False) -> str | int:
    """Parses a user's time: an instant time as a text, or a moment in epoch milliseconds.

    Hudi's digits (fewer digits are a prefix) are an instant time, and so is a date or time in ISO-8601 without a zone, as
    Hudi has it: by the clock of the timeline. With a zone it is a moment, as 10 or 13 digits are that can only be epoch
    seconds or milliseconds. With `is_end` a time in whole seconds means the end of that second, as Hudi has it. Raises
    InstantNotFoundError for anything else.
    """
    text = text.strip()
    if text.lower() == EARLIEST:
        return "0"
    if _EPOCH.fullmatch(text):
        return int(text) if len(text) == _EPOCH_MS_DIGITS else int(text) * 1000 + (999 if is_end else 0)
    if _DIGITS.fullmatch(text) and _begins_instant(text):
        return text
    try:
        moment = datetime.fromisoformat("" if text.isdecimal() else text)
    except ValueError:
        raise InstantNotFoundError(
            f"cannot read the instant {text!r}: use Hudi's digits (yyyyMMddHHmmssSSS, or the first of them, from the year "
            "on) or ISO-8601"
        ) from None
    milliseconds = moment.microsecond // 1000
    if is_end and re.search(r":\d\d:\d\d(?!\.)", text):
        milliseconds = 999
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    epoch_ms = (aware.replace(microsecond=0) - _EPOCH_START) // timedelta(seconds=1) * 1000 + milliseconds
    return instant_time(epoch_ms) if moment.tzinfo is None else epoch_ms


def _begins_instant(digits: str) -> bool:
    """Whether an instant can begin with the digits. Zeros alone are before all of them."""
    if not digits.strip("0"):
        return True
    begun = digits + "1" if len(digits) in _HALF_DATES and digits[-1] == "0" else digits
    try:
        datetime.strptime((begun + "00000101000000"[len(begun) :])[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return False
    return len(digits) >= _YEAR_DIGITS


_WRITING = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


def plan_slices(
    slices: Iterable[FileSlice], blocks: BlockFilter, *, schema_since: str | None = None
) -> tuple[SliceRead, ...]:
    """A read of each slice, with the log blocks that count.

    `schema_since`: every write requested from there on has the query's schema; None: nobody looked.
    """
    return tuple(_read(file_slice, blocks, None, schema_since) for file_slice in slices)


def earliest_request(begin: str) -> str:
    """The least requested time of a write that can have completed after `begin`.

    A write takes less than a day, as in Hudi. All of time where `begin` is but the prefix of an instant.
    """
    try:
        return instant_time(instant_epoch_ms(begin) - _WRITE_MS_MAX) if len(begin) in (14, 17) else ""
    except ValueError:
        return ""


def span(writes: Iterable[Instant], begin: str, end: str | None) -> tuple[Instant, ...]:
    """The completed writes in (begin, end], by completion time if it is recorded, otherwise by requested time."""
    times = [(i.completion_time or i.requested_time, i) for i in writes]
    return tuple([i for time, i in times if time > begin and (end is None or time <= end)])


def settled_until(timeline: Timeline, layout: Layout) -> str:
    """The time up to which a span has final rows: no write will be added before it. "0" if there is none.

    Version 8 and later measure spans by completion times, which rise from write to write. Version 6 measures them by
    requested times: what was requested after a write that is pending has to wait for it, or that one would be skipped.
    Compactions bring no rows of their own; a pending replacecommit may be an insert overwrite.
    """
    if layout.records_completion_times:
        return max((i.completion_time or i.requested_time for i in timeline.writes), default="0")
    first = min((i.requested_time for i in timeline.pending if i.action in _WRITING), default=None)
    return max((i.requested_time for i in timeline.writes if first is None or i.requested_time < first), default="0")


def skipped_later(timeline: Timeline, instants: Iterable[Instant], layout: Layout) -> str | None:
    """What an increment that begins after these writes will skip: a write of version 6 that is pending now."""
    if layout.records_completion_times:
        return None
    last = max((i.requested_time for i in instants), default="0")
    pending = [i.requested_time for i in timeline.pending if i.action in _WRITING and i.requested_time < last]
    if not pending:
        return None
    settled = settled_until(timeline, layout)
    return (
        f"the write requested at {min(pending)} is pending, and an increment that begins at {last} will not show its "
        f"rows once it has completed: begin the next one at {settled}, or end this one there"
    )


def slices_of_span(view: FileSystemView) -> tuple[FileSlice, ...]:
    """The slices of the files that the commits of a span wrote.

    On version 6, a write that was open beside a plan may have appended to the slice below it, which the compaction has left
    over. If that compaction is before the span, its base file is not among the files, and the slices are one.
    """
    spanned: list[FileSlice] = []
    for last in view.latest_slices():
        slices = view.slices[last.file_group]
        first = max((place for place, of_group in enumerate(slices) if of_group.base_file is not None), default=0)
        logs = tuple(log for of_group in slices[first:] for log in of_group.log_files)
        spanned.append(last if first == len(slices) - 1 else replace(slices[first], log_files=logs))
    return tuple(spanned)


def plan_incremental(
    slices: Iterable[FileSlice], instants: Sequence[Instant], whole: Iterable[SliceRead]
) -> tuple[SliceRead, ...]:
    """Reads of the rows that these instants committed, from slices made of the files that they wrote.

    `whole` are reads of the same file groups as of the end of the span.
    """
    times = frozenset(i.requested_time for i in instants)
    blocks = BlockFilter(completed=times, timeline_start=None)
    of_group = {(one.partition, one.file_id): one for one in whole}
    reads = (_read(file_slice, blocks, times) for file_slice in slices)
    return tuple(replace(one, whole=of_group.get((one.partition, one.file_id))) for one in reads)


def _read(
    file_slice: FileSlice, blocks: BlockFilter, commit_times: frozenset[str] | None, schema_since: str | None = None
) -> SliceRead:
    log_paths = tuple([(log.path, log.size) for log in file_slice.log_files])
    return SliceRead(
        *file_slice.file_group,
        base_path=file_slice.base_file.path if file_slice.base_file else None,
        log_paths=log_paths,
        blocks=blocks.of_logs([path for path, _ in log_paths]),
        commit_times=commit_times,
        is_plain=schema_since is not None
        and file_slice.base_file is not None
        and file_slice.base_instant >= schema_since
        and not file_slice.log_files,
    )


def with_null_fields(slices: Iterable[SliceRead], config: TableConfig) -> tuple[SliceRead, ...]:
    """The reads. In a partition without a value, they have its null fields: their rows aren't the file's alone.

    Hudi puts a record into `__HIVE_DEFAULT_PARTITION__` if the field is null, an empty text or that very name. Every query
    of Hudi in Spark takes the value from the directory, and shows null for all three, whatever the file holds.
    """
    reads: list[SliceRead] = []

    @lru_cache(maxsize=1)
    def fields_of(partition: str) -> tuple[str, ...]:
        return null_fields(partition, config)

    for one in slices:
        fields = fields_of(one.partition) if NULL_PARTITION in one.partition else ()
        reads.append(replace(one, null_fields=fields, is_plain=False) if fields else one)
    return tuple(reads)


def null_fields(partition: str, config: TableConfig) -> tuple[str, ...]:
    """The fields without a value in this path. Times are taken from the file, as in Hudi: a path holds them formatted."""
    try:
        # Only partitions matter here, so it makes no difference whether keys name their fields.
        keys = KeyFormat.of(config, "", has_bare_keys=True)
    except EventideError:
        return ()  # its key generator is unknown to eventide
    directories = partition.split("/")
    if len(directories) != len(keys.partition_fields):
        return ()  # a value contains a slash
    return tuple(
        field
        for field, directory in zip(keys.partition_fields, directories, strict=True)
        if field not in keys.time_fields
        and (directory.removeprefix(f"{field}=") if keys.is_hive_style else directory) == NULL_PARTITION
    )

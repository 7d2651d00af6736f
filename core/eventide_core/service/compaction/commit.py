"""The commit of a completed compaction."""

from collections.abc import Mapping, Sequence
from typing import Final

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.ports import AddedFile, MergeResult
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.contents.checksums import with_checksums
from eventide_core.table.timeline.contents.commit_metadata import (
    EVENT_TIMES_KEY,
    SCHEMA_KEY,
    CommitMetadata,
    WriteStat,
    by_partition,
)
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, LeftOver, PlannedOperation

_NONE: Final[Mapping[str, str]] = {}


def commit_metadata(
    plan: CompactionPlan,
    results: Sequence[MergeResult],
    fresh: Freshness,
    carried: Mapping[str, str] = _NONE,
    checksums: Mapping[str, str] = _NONE,
    *,
    settings: Mapping[str, str],
    event_times: str | None,
) -> CommitMetadata:
    """The commit of a compaction: a write stat for each base file, and for each left-over's link.

    `checksums` are the checksums of existing log files, by path; a link or copy has its log file's. `settings` are those
    that the commit records (`Checksums`), `event_times` names the plan's (EVENT_TIMES_KEY).

    Readers build the incremental view from write stats alone, so it would miss a link without one. `carried` continues from
    commit to commit: Hudi uses the internal schema of the last commit, if any.
    """
    stats: list[WriteStat] = []
    uncompacted: dict[str, int | None] = {}
    for op, result in zip(plan.operations, results, strict=True):
        stats += (_base_stat(op, result), *_link_stats(op, result, checksums))
        uncompacted |= _uncompacted(op, result)
    published = CompactionExtraMetadata.of_plan(
        plan, watermark_ms=fresh.watermark_ms, late_records=fresh.late_records, uncompacted=uncompacted
    )
    extra = {SCHEMA_KEY: plan.schema.text, **published.texts, **carried}
    if event_times is not None:
        extra[EVENT_TIMES_KEY] = event_times
    return _compaction(stats, extra, settings)


def whole_slices_metadata(
    plan: CompactionPlan, results: Sequence[MergeResult], carried: Mapping[str, str], settings: Mapping[str, str]
) -> CommitMetadata:
    """The commit of a plan that another engine scheduled, as Hudi writes it. Of eventide's, checksums and what is carried.

    So it publishes no cut, and the published cut stays.
    """
    stats = [_base_stat(op, result) for op, result in zip(plan.operations, results, strict=True)]
    return _compaction(stats, {SCHEMA_KEY: plan.schema.text, **carried}, settings)


def added_files(plan: CompactionPlan, results: Sequence[MergeResult]) -> tuple[AddedFile, ...]:
    """The base files, left-overs and carried tombstones that the commit adds to the metadata table."""
    added: list[AddedFile] = []
    for op, result in zip(plan.operations, results, strict=True):
        old_base = (op.base_path.rpartition("/")[2],) if op.base_path else ()
        sources = (*old_base, *(log.name for log in op.read_logs))
        added.append(AddedFile(op.partition, op.new_base_name, result.base_size, sources))
        if op.carried_name is not None and result.carried_size is not None:
            added.append(AddedFile(op.partition, op.carried_name, result.carried_size))
        if op.change_log_name is not None and result.change_log_size is not None:
            added.append(AddedFile(op.partition, op.change_log_name, result.change_log_size))
        added += [
            AddedFile(op.partition, left.new_name, left.log_file.size, (left.log_file.name,))
            for left in op.left_overs
            if left.new_name is not None
        ]
    return tuple(added)


def _uncompacted(op: PlannedOperation, result: MergeResult) -> dict[str, int | None]:
    since = result.uncompacted_from_ms
    uncompacted = {path: since[left.log_file.path] for path, left in op.linked.items() if left.log_file.path in since}
    if op.carried_path is not None and result.carried_size is not None:
        uncompacted[op.carried_path] = None
    return uncompacted


def _base_stat(op: PlannedOperation, result: MergeResult) -> WriteStat:
    change_log = None
    if op.change_log_path is not None and result.change_log_size is not None:
        change_log = op.change_log_path, result.change_log_size
    return WriteStat(
        file_id=op.file_id,
        path=result.new_base_path,
        partition=op.partition,
        prev_commit=op.base_instant,
        num_writes=result.num_writes,
        num_deletes=result.num_deletes,
        num_update_writes=result.num_updates,
        num_inserts=result.num_inserts,
        total_write_bytes=result.base_size,
        file_size_bytes=result.base_size,
        total_log_records=result.log_records,
        total_log_files_compacted=len(op.compacted),
        total_log_size_compacted=sum(log.size for log in op.compacted),
        total_updated_records_compacted=result.merged_keys,
        total_log_blocks=result.log_blocks,
        prev_base_file=op.base_path.rpartition("/")[2] if op.base_path else None,
        checksum=result.base_checksum,
        change_log=change_log,
    )


def _compaction(stats: Sequence[WriteStat], extra: Mapping[str, str], settings: Mapping[str, str]) -> CommitMetadata:
    # Hudi takes the table's schema from the last commit that isn't of a table service. A commit without files is one from
    # which it may, so that an idle table's last write can be archived.
    operation = "COMPACT" if stats else "UPSERT"
    return CommitMetadata(by_partition(stats), with_checksums(extra, stats, settings), operation, is_compacted=True)


def _link_stats(op: PlannedOperation, result: MergeResult, checksums: Mapping[str, str]) -> tuple[WriteStat, ...]:
    stats: list[WriteStat] = []
    if op.carried_name is not None and result.carried_size is not None:
        carried = _link_stat(op, op.carried_name, result.carried_size)
        stats.append(carried._replace(num_deletes=result.carried_tombstones, checksum=result.carried_checksum))
    for left in op.left_overs:
        if left.new_name is not None:
            times = _known_event_times(left)
            stat = _link_stat(op, left.new_name, left.log_file.size)
            known = checksums.get(left.log_file.path)
            stats.append(stat._replace(min_event_time_ms=times.min_ms, max_event_time_ms=times.max_ms, checksum=known))
    return tuple(stats)


def _known_event_times(left: LeftOver) -> EventTimeRange:
    """The range in the left-over's stat, so that the next process doesn't have to read its file; see EVENT_TIMES_KEY."""
    known = left.log_file.event_times
    is_whole = known is not None and known.has_only_times and left.delete_count is not None
    return known if known is not None and is_whole else EventTimeRange(None, None)


def _link_stat(op: PlannedOperation, name: str, size: int) -> WriteStat:
    parsed = LogFileName.parse(name)
    assert parsed is not None  # the planner created the name
    return WriteStat(
        file_id=op.file_id,
        path=op.path_of(name),
        partition=op.partition,
        prev_commit=op.base_instant,
        total_write_bytes=size,
        file_size_bytes=size,
        log_version=parsed.version,
        base_file=op.new_base_name,
    )

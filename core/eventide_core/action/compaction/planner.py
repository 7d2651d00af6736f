"""The plan of a compaction, with the name of every file that its execution makes.

Of an event-time compaction: `plan_compaction`, from each slice's selection (slice_selection.py) and the choice of a
link mode (link_choice.py). Of whole slices, by another strategy: `plan_whole_slices`. In place of a plan that no
longer fits: slice by slice, with `partial_slice` and `whole_slice`; the `token` keeps the base files of a re-plan apart from
the names of the plan before.
"""

from collections.abc import Sequence

from eventide_core.action.compaction.link_choice import LinkDecision
from eventide_core.action.compaction.slice_selection import Selection
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    FallbackReason,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)
from eventide_core.table.timeline.layout import Layout


def plan_compaction(
    selections: Sequence[Selection], link: LinkDecision, schema: AvroSchema, layout: Layout
) -> CompactionPlan:
    """The plan of an event-time compaction, with every name that its execution will make. It has no cut yet."""
    operations = tuple(
        partial_slice(selection, link, layout, f"{number}-0-0") for number, selection in enumerate(selections)
    )
    return CompactionPlan(link.instant, operations, schema, link.mode, link.reason)


def plan_whole_slices(
    slices: Sequence[FileSlice], instant: str, schema: AvroSchema, with_logs: tuple[str, ...] = (), *, reason: str = ""
) -> CompactionPlan:
    """The plan that compacts these slices in full, in this order. `with_logs` are the partitions that keep log files."""
    operations = tuple(
        whole_slice(file_slice, instant, f"{number}-0-0", reason, None) for number, file_slice in enumerate(slices)
    )
    why = "nothing is left over, so no link is needed"
    return CompactionPlan(instant, operations, schema, LinkMode.COPY, why, partitions_with_logs=with_logs)


def whole_slice(
    file_slice: FileSlice, instant: str, token: str, reason: str, fallback: FallbackReason | None
) -> PlannedOperation:
    """The operation that compacts a slice in full."""
    return PlannedOperation(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        base_path=file_slice.base_file.path if file_slice.base_file else None,
        base_size=file_slice.base_file.size if file_slice.base_file else 0,
        compacted=tuple(PlannedLog(log.path, log.size, None) for log in file_slice.log_files),
        new_base_name=str(BaseFileName(file_slice.file_id, token, instant)),
        fallback=fallback,
        reason=reason,
    )


def partial_slice(selection: Selection, link: LinkDecision, layout: Layout, token: str) -> PlannedOperation:
    """The operation that compacts a slice as selected, with every name that its execution will make."""
    file_slice = selection.facts.file_slice
    base = file_slice.base_file
    has_carried = selection.carried_tombstones > 0
    # A plan without links names no log file above its base, not even the log files of the new slice.
    kept = selection.in_old_slice if link.mode is LinkMode.PREFIX else selection.left_overs
    above = {fact.log_file.path for fact in selection.above}
    unnamed = above if layout.names_logs_by_write else set[str]()
    early = {fact.log_file.path for fact in selection.early}
    left_overs = tuple(
        [
            LeftOver(
                _planned(fact),
                None
                if fact.log_file.path in unnamed
                else _left_over_name(fact.log_file, number, link, layout, has_carried),
                selection.threshold_ms if fact.log_file.path in early else None,
                fact.delete_count,
                is_above=fact.log_file.path in above,
            )
            for number, fact in enumerate(kept)
        ]
    )
    carried = None
    if has_carried:
        carried = layout.left_over_name(file_slice.file_id, link.instant, 0)
    return PlannedOperation(
        partition=file_slice.partition,
        file_id=file_slice.file_id,
        base_instant=file_slice.base_instant,
        base_path=base.path if base else None,
        base_size=base.size if base else 0,
        compacted=tuple(map(_planned, selection.compacted)),
        left_overs=left_overs,
        new_base_name=str(BaseFileName(file_slice.file_id, token, link.instant)),
        carried_name=str(carried) if carried else None,
        fallback=selection.fallback,
        reason=selection.reason,
        rests_on_no_deletes=bool(kept)
        and not any(fact.delete_count for fact in (*selection.compacted, *selection.early)),
    )


def _left_over_name(log: LogFile, number: int, link: LinkDecision, layout: Layout, has_carried: bool) -> str | None:
    """The left-over's name in the new slice; None if it needs none."""
    if link.mode is LinkMode.PREFIX:
        return None
    return str(layout.left_over_name(log.name.file_id, link.instant, number + has_carried, log.name.write_token))


def _planned(fact: LogFacts) -> PlannedLog:
    log = fact.log_file
    return PlannedLog(log.path, log.size, fact.event_times)

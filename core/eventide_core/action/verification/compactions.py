"""Checks of compactions: their plans against their commits, and the freshness that they published."""

from collections.abc import Iterator

from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Finding, Observation, Remark, Unchecked, check
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError, format_timestamp
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.timeline.contents.compaction_extra_metadata import WATERMARK_KEY
from eventide_core.table.timeline.contents.plans import CompactionPlan, LinkMode, PlannedOperation

_FULL = "restore the file from a copy, then compact the table in full; this loses nothing"


def _again(instant: str) -> str:
    return f"{Cure.rollback(instant)}, and compact again; this loses nothing"


@check(
    "compactions",
    "I10, I13",
    "each log file of a compacted slice was either merged or left over, and commit and plan agree",
)
def check_compactions(facts: TableFacts) -> Iterator[Observation]:
    """Three checks of each compaction.

    1. Each log file of a slice was merged or left over: never both, never neither.
    2. The commit names what the plan makes.
    3. The commit publishes the plan's cut.
    """
    if facts.view is None:
        yield Unchecked("the file slices are not known")
        return
    for time, plan in sorted(facts.compactions.items()):
        for op in plan.operations:
            yield from _one_operation(facts, plan, op)
        try:
            published, planned = facts.publications[time].cut_ms, plan.cut_ms
        except CorruptTimelineError:
            continue  # the check of freshness reports it
        if published != planned:
            problem = f"publishes the cut {published}, but its plan has {planned}"
            yield Finding(
                _commit_path(facts, time),
                problem,
                _again(time),
            )


def _one_operation(facts: TableFacts, plan: CompactionPlan, op: PlannedOperation) -> Iterator[Observation]:
    merged = {log.path for log in op.compacted}
    left = {o.log_file.path for o in op.left_overs}
    for path in sorted(merged & left):
        yield Finding(path, f"was both merged and left over by the compaction at {plan.instant}", _FULL)
    named = {stat.path for stat in facts.commits[plan.instant].stats if (stat.partition, stat.file_id) == _group(op)}
    must = {op.new_base_path, *op.linked}
    may = set[str]() if op.carried_path is None else {op.carried_path}
    for path in sorted(must - named):
        yield Finding(path, f"is in the plan at {plan.instant}, but not in its commit", _FULL)
    for path in sorted(named - must - may):
        yield Finding(path, f"is in the commit {plan.instant}, but not in its plan", _FULL)
    for path, linked in op.linked.items():
        if facts.left_overs.get(path) != linked.log_file.path:
            origin = facts.left_overs.get(path, "nothing")
            problem = f"stands for {linked.log_file.path} in the plan at {plan.instant}, but for {origin} in its commit"
            yield Finding(path, problem, _FULL)
    yield from _forgotten(facts, plan, op, merged | left)


def _forgotten(
    facts: TableFacts, plan: CompactionPlan, op: PlannedOperation, planned: set[str]
) -> Iterator[Observation]:
    """The log files of the compacted slice that were neither merged nor left over."""
    old = facts.slice_at(_group(op), op.base_instant)
    if old is None or old.file_group in facts.damaged_groups:
        return
    for log in old.log_files:
        scan = facts.log_scans.get(log.path)
        counts = scan is not None and any(facts.blocks.accepts(instant) for instant in scan.instants)
        if log.path not in planned and counts and facts.slice_at(_group(op), plan.instant) is not None:
            problem = (
                f"is in the slice that the compaction at {plan.instant} merged, but was neither merged nor left over"
            )
            yield Finding(log.path, problem, _again(plan.instant))


@check(
    "freshness",
    "I2, I8",
    "everything before the published cut that was committed before its plan is in base files, and cuts never fall",
)
def check_freshness(facts: TableFacts) -> Iterator[Observation]:
    """Three checks of the published freshness.

    1. Cuts don't fall.
    2. A watermark is no later than its cut.
    3. A log file committed before the plan of the last cut has nothing before the cut. Nor has a left-over, except for
       what an exact cut has merged.
    """
    yield from map(Remark, facts.event_times.notes)
    if facts.event_times.problem is not None:
        yield Unchecked(facts.event_times.problem)
    by_end = sorted(
        (
            i
            for i in facts.timeline.writes
            if (publication := facts.publications.get(i.requested_time)) and publication.has_cut
        ),
        key=lambda i: i.completion_time or i.requested_time,
    )
    highest: int | None = None
    for instant in by_end:
        place = _commit_path(facts, instant.requested_time)
        cure = _again(instant.requested_time)
        publication = facts.publications[instant.requested_time]
        try:
            cut, watermark = publication.cut_ms, publication.watermark_ms
        except CorruptTimelineError:
            cut = watermark = None
        if cut is not None and WATERMARK_KEY not in publication.texts:
            watermark = cut  # a log record's event time could not be read, so there was no watermark
        if cut is None or watermark is None:
            yield Finding(place, "publishes a cut or a watermark that is not a number of milliseconds", cure)
            continue
        if watermark > cut:
            yield Finding(place, f"publishes the watermark {watermark}, later than its cut {cut}", cure)
        if highest is not None and cut < highest:
            yield Finding(place, f"publishes the cut {cut}, earlier than {highest} before it", cure)
        highest = cut if highest is None else max(cut, highest)
    if by_end and facts.event_times.freshness is not None:
        yield from _early_logs(facts, by_end[-1].requested_time, facts.event_times.freshness.cut_ms)


def _early_logs(facts: TableFacts, cut_at: str, cut_ms: int | None) -> Iterator[Observation]:
    left = _left_over_now(facts, cut_at, facts.compactions.get(cut_at))
    for file_slice in facts.latest_slices:
        if file_slice.file_group in facts.damaged_groups:
            continue
        for log in file_slice.log_files:
            times = facts.event_times.uncompacted.get(log.path)
            if times is None or cut_ms is None or times.min_ms is None or times.min_ms >= cut_ms:
                continue
            if log.path in left or _is_before(facts, log, cut_at):
                first, cut = format_timestamp(times.min_ms), format_timestamp(cut_ms)
                problem = (
                    f"holds a record of {first}, before the cut {cut} of {cut_at}, was committed before that "
                    "compaction, and is in no base file"
                )
                yield Finding(
                    log.path,
                    problem,
                    "compact the table again before a later T, which moves the record into a base file",
                )


def _left_over_now(facts: TableFacts, cut_at: str, plan: CompactionPlan | None) -> set[str]:
    """The left-overs that were committed before the plan of the last cut, by their paths in the new slices."""
    linked = {stat.path for stat in facts.commits[cut_at].stats if stat.path in facts.left_overs}
    if plan is None:
        return linked
    above = {path for op in plan.operations for path, left in op.linked.items() if left.is_above}
    if plan.link_mode is not LinkMode.PREFIX:
        return linked - above
    return linked | {o.log_file.path for op in plan.operations for o in op.left_overs}


def _is_before(facts: TableFacts, log: LogFile, cut_at: str) -> bool:
    """Whether all that the log file holds was committed before a compaction was planned."""
    if facts.layout.names_logs_by_write:
        completion = facts.timeline.completion_time(log.name.instant)
        return completion is not None and completion < cut_at and log.path not in facts.left_overs
    scan = facts.log_scans.get(log.path)
    return scan is not None and bool(scan.instants) and max(scan.instants) < cut_at


def _group(op: PlannedOperation) -> tuple[str, str]:
    return (op.partition, op.file_id)


def _commit_path(facts: TableFacts, time: str) -> str:
    instant = facts.timeline.find(time)
    return f"{facts.timeline_path}/{time if instant is None else instant.file_name}"

"""A compaction plan for the user, as text or JSON."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from eventide.formatting import format_size
from eventide.notebook import html_facts
from eventide.results.detail import SHORT, WORST, Detail, more
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.query.offending_log_files import OffendingLogFile
from eventide_core.errors import counted, format_moment, format_timestamp, printable
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan, HeldSlice
from eventide_core.service.query.offending_records import OffendingRecords
from eventide_core.table.records.event_time import datetime_of
from eventide_core.table.timeline.contents.plans import PlannedOperation


@dataclass(frozen=True, slots=True)
class Plan:
    """What a compaction does, or would do. Sizes are in bytes, event times in epoch milliseconds.

    `request` is what the user asked for, and `draft` the plan with what else was found while it was drafted. `idle` states
    why there is nothing to do: the configured trigger is not due, or there is nothing to compact. If `waits_for` names
    something that has to end first, the instant is not final.
    """

    request: CompactionRequest
    draft: DraftPlan
    _name_offending: Callable[[Sequence[OffendingLogFile]], tuple[OffendingRecords, ...]] = field(repr=False)
    _named: list[tuple[OffendingRecords, ...]] = field(
        default_factory=list[tuple[OffendingRecords, ...]], init=False, repr=False, compare=False
    )

    @property
    def instant(self) -> str:
        return self.draft.plan.instant

    @property
    def cut_ms(self) -> int | None:
        """The cut that the plan publishes: everything before it will be in the read-optimized table. None without a cut."""
        return self.draft.plan.cut_ms

    @property
    def cut_time(self) -> datetime | None:
        """`cut_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.cut_ms, "cut")

    @property
    def idle(self) -> str | None:
        return self.draft.idle

    @property
    def waits_for(self) -> str | None:
        """What has to end before the plan can be made; None if it can be made now."""
        return self.draft.waits_for

    @property
    def is_reached(self) -> bool:
        """Whether everything before T is already compacted."""
        return self.draft.is_reached

    @property
    def operations(self) -> tuple[PlannedOperation, ...]:
        return self.draft.plan.operations

    @property
    def merged_log_files(self) -> frozenset[str]:
        """The paths of the log files that the plan merges."""
        return frozenset(log.path for op in self.operations for log in op.compacted)

    @property
    def offending(self) -> tuple[OffendingRecords, ...]:
        """Keys with records from the future, and the log files that they hold back. Looked up on first use."""
        if not self._named:
            self._named.append(self._name_offending(self.draft.offending))
        return self._named[0]

    @property
    def predicted_watermark_ms(self) -> int | None:
        return self.draft.predicted.watermark_ms

    @property
    def predicted_watermark(self) -> datetime | None:
        """`predicted_watermark_ms` as a datetime in UTC. Raises InvalidThresholdError beyond the years 1 to 9999."""
        return datetime_of(self.predicted_watermark_ms, "predicted_watermark")

    def to_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        plan, due = self.draft.plan, self.draft.due
        return {
            "instant": plan.instant,
            "strategy": self.draft.strategy,
            "trigger": None if due is None else {"name": str(due.trigger), "due": due.is_due, "reason": due.reason},
            "idle": self.idle,
            "beside": [write.requested_time for write in self.draft.beside],
            "waits_for": self.draft.waits_for,
            "already_reached": self.is_reached,
            "cut_ms": plan.cut_ms,
            "cut": str(plan.cut),
            "link_mode": str(plan.link_mode),
            "link_reason": plan.link_reason,
            "event_time_field": plan.event_time_field,
            "operations": [_operation(op, str(plan.link_mode)) for op in plan.operations],
            "untouched_slices": self.draft.untouched_slices,
            "fallbacks": [
                {"partition": op.partition, "file_id": op.file_id, "reason": str(op.fallback), "detail": op.reason}
                for op in plan.operations
                if op.fallback is not None
            ],
            "bytes": {
                "read": plan.bytes_read,
                "written_estimate": sum(op.base_size for op in plan.operations),
                "copied": plan.bytes_copied,
            },
            "predicted_watermark_ms": self.predicted_watermark_ms,
            "held": [
                {"partition": held.partition, "file_id": held.file_id, "earliest_event_time_ms": held.earliest_ms}
                for held in self.draft.held
            ],
            "offending": [offending_json(records) for records in self.offending],
            "notes": list(self.draft.notes),
        }

    def explain(self, detail: Detail = SHORT) -> str:
        """The plan as text: counts, bytes, what keeps records before T out, and the predicted watermark.

        `detail` adds which log files of each slice are merged, which stay, how they stay visible, and why.
        """
        plan = self.draft.plan
        if self.draft.nothing is not None:
            return _text([f"nothing to do: {self.draft.nothing}"])
        promised = "no cut" if plan.cut_ms is None else f"everything before {format_moment(plan.cut_ms)}"
        field = "" if plan.event_time_field is None else f"event time: {plan.event_time_field}; cut: {plan.cut}; "
        merged = sum(len(op.compacted) for op in plan.operations)
        left = sum(len(op.left_overs) for op in plan.operations)
        others = counted(self.draft.untouched_slices, "other slice")
        keep = "keeps its" if self.draft.untouched_slices == 1 else "keep their"
        slices = counted(len(plan.operations), "slice")
        lines = [
            f"compaction at {plan.instant}, {promised}",
            f"{field}links: {plan.link_mode} ({plan.link_reason})",
            f"{slices} to compact: {counted(merged, 'log file')} merged, {left:,} left over; {others} {keep} log files",
            f"{format_size(plan.bytes_read)} to read, {format_size(plan.bytes_copied)} to copy",
        ]
        beside = [write.requested_time for write in self.draft.beside]
        if beside and self.draft.waits_for is None:
            writes = "the write" if len(beside) == 1 else "the writes"
            lines.append(
                f"planned at a quiet moment before {writes} {', '.join(beside)}: a later compaction takes those records"
            )
        if not detail.shows_files:
            lines += _fallbacks(plan.operations)
        shown, left_out = detail.slices_of(plan.operations)
        lines += [line for op in shown for line in _slice_lines(op)]
        lines += left_out
        lines += self._remarks()
        if self.draft.due is not None:
            lines.append(f"{self.draft.due.trigger}: {self.draft.due.reason}")
        if self.idle is not None:
            lines.append(f"nothing to do: {self.idle}")
        elif self.draft.waits_for is not None:
            lines.append(f"must wait, so its instant is not final: {self.draft.waits_for}")
        lines += _held(self.draft.held)
        lines.append(f"predicted watermark: {format_moment(self.predicted_watermark_ms)}")
        return _text(lines)

    def summary(self) -> str:
        """The plan in one line, followed by lines with what the user should know before it runs."""
        return _text([f"compacting {self._what()}", *self._remarks()])

    def _what(self) -> str:
        plan = self.draft.plan
        logs = sum(len(op.compacted) for op in plan.operations)
        before = "" if plan.cut_ms is None else f" before {format_timestamp(plan.cut_ms)}"
        return f"{counted(logs, 'log file')} of {counted(len(plan.operations), 'slice')}{before}"

    def _remarks(self) -> list[str]:
        offending = [line for records in self.offending for line in _offending(records)]
        return [*offending, *(f"note: {note}" for note in self.draft.notes)]

    def __str__(self) -> str:
        return self.explain()

    def __repr__(self) -> str:
        if self.draft.nothing is not None:
            return f"<Plan: nothing to do: {printable(self.draft.nothing)}>"
        return f"<Plan at {self.instant}: {self._what()}>"

    def _repr_html_(self) -> str:
        if self.draft.nothing is not None:
            return html_facts("Compaction plan", [("nothing to do", self.draft.nothing)])
        plan = self.draft.plan
        largest = sorted(self.operations, key=lambda op: -_bytes_read(op))
        facts = [
            ("instant", plan.instant),
            ("compacts", self._what()),
            ("reads", format_size(plan.bytes_read)),
            ("copies", f"{format_size(plan.bytes_copied)}, links: {plan.link_mode}"),
            ("predicted watermark", format_timestamp(self.predicted_watermark_ms)),
            *((f"{op.partition or '.'} {op.file_id}", op.reason) for op in largest[:WORST]),
            *(("", line.strip()) for line in more(len(largest[WORST:]))),
        ]
        return html_facts("Compaction plan", facts if self.idle is None else [("nothing to do", self.idle), *facts])


def _slice_lines(op: PlannedOperation) -> list[str]:
    """A slice with its log files."""
    merged = counted(len(op.compacted), "log file")
    lines = [
        f"  {op.partition or '.'} {op.file_id}: {merged} merged, {len(op.left_overs)} left over",
        f"    {'full compaction, ' + str(op.fallback) + ': ' if op.fallback else ''}{op.reason}",
    ]
    lines += [f"    - merged   {log.name}" for log in op.compacted]
    for left in op.left_overs:
        link = "" if left.new_name is None else f"  as {left.new_name}"
        early = "" if left.threshold_ms is None else ", its records before T merged"
        lines.append(f"    - left     {left.log_file.name}{link}{early}")
    if op.carried_name is not None:
        lines.append(f"    - carries tombstones in {op.carried_name}")
    return lines


def _fallbacks(operations: Sequence[PlannedOperation]) -> list[str]:
    """The slices that are compacted in full, counted by reason, and the largest of them."""
    whole = [op for op in operations if op.fallback is not None]
    if not whole:
        return []
    reasons = Counter(str(op.fallback) for op in whole)
    by_reason = ", ".join(f"{count:,} by {reason}" for reason, count in reasons.most_common())
    largest = sorted(whole, key=lambda op: -_bytes_read(op))[:WORST]
    return [
        f"full compaction of {counted(len(whole), 'slice')}: {by_reason}",
        *(f"  {op.partition or '.'} {op.file_id}, {format_size(_bytes_read(op))}: {op.reason}" for op in largest),
        *more(len(whole) - len(largest)),
    ]


def _bytes_read(op: PlannedOperation) -> int:
    return op.base_size + sum(log.size for log in op.read_logs)


def _held(held: Sequence[HeldSlice]) -> list[str]:
    """The slices that keep the watermark below T."""
    if not held:
        return []
    return [
        f"{counted(len(held), 'slice')} will still hold records before T in log files:",
        *(f"  {one.partition or '.'} {one.file_id} from {format_timestamp(one.earliest_ms)}" for one in held[:WORST]),
        *more(len(held[WORST:])),
    ]


def _operation(op: PlannedOperation, link_mode: str) -> dict[str, Any]:
    return {
        "partition": op.partition,
        "file_id": op.file_id,
        "base_instant": op.base_instant,
        "base_file": op.base_path,
        "link_mode": link_mode,
        "compacted": [log.name for log in op.compacted],
        "remaining": [
            {"target": left.log_file.name, "symlink": left.new_name, "merged_before_ms": left.threshold_ms}
            for left in op.left_overs
        ],
        "carried": op.carried_name,
        "fallback": None if op.fallback is None else str(op.fallback),
        "reason": op.reason,
    }


def offending_json(records: OffendingRecords) -> dict[str, Any]:
    """A log file with records of the future as plain values."""
    return {
        "partition": records.offending.partition,
        "file_id": records.offending.file_id,
        "log": records.offending.log_file.path,
        "held_back": records.offending.held_back,
        "records": [{"key": one.key, "event_time_ms": one.event_time_ms} for one in records.keys],
        "problem": records.problem,
    }


def _offending(records: OffendingRecords) -> list[str]:
    log = records.offending
    held_back = f", which holds back {counted(log.held_back, 'log file')} above it" if log.held_back else ""
    lines = [f"from the future: {log.log_file.path} reaches {format_timestamp(log.latest_ms)}{held_back}"]
    lines += [f"    - key {one.key!r} has event time {format_timestamp(one.event_time_ms)}" for one in records.keys]
    return lines if records.problem is None else [*lines, f"    - {records.problem}"]


def _text(lines: Sequence[str]) -> str:
    """Escapes names, which come from the table, so that none can imitate a line of eventide."""
    return "\n".join(map(printable, lines))

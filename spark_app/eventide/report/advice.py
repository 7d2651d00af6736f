"""Recommended actions for a table, most urgent first, with their commands."""

from collections.abc import Iterator
from shlex import quote

from eventide.report.gather import Report
from eventide.report.tables import shown
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.timeline.plans import CompactionPlan


def what_to_do(report: Report) -> str:
    """A section of the page."""
    steps = [f"<li>{shown(why)}{f': {code_of(command)}' if command else '.'}</li>" for why, command in _steps(report)]
    body = f"<ol>{''.join(steps)}</ol>" if steps else "<p>Nothing: no record before the cut waits in a log file.</p>"
    return f"<h2>What to do first</h2>{body}"


def code_of(command: str) -> str:
    """A command to copy, whose options no line end breaks after their hyphens."""
    words = (f"<b>{shown(word)}</b>" if word.startswith("--") else shown(word) for word in command.split(" "))
    return f"<code>{' '.join(words)}</code>"


def _steps(report: Report) -> Iterator[tuple[str, str | None]]:
    table, fresh = quote(report.table.uri), report.freshness
    if report.table.problems:
        if report.table.event_time_field is None:
            yield f"Name the event-time field, by the option {EVENT_TIME_FIELD}", None
        else:
            unknown = counted(len(report.table.problems), "log file")
            yield f"Find out why the event times of {unknown} are unknown", f"eventide verify {table}"
    for instant, plan in report.table.plans.items():
        who = "that is planned" if isinstance(plan, CompactionPlan) else "that another engine planned"
        yield f"Complete the compaction {who}", f"eventide compact {table} --execute {instant}"
    if report.offending:
        logs = counted(len(report.offending), "log file")
        yield f"Correct the records from the future in {logs}, which are listed below", None
    if fresh is None or fresh.is_complete:
        return
    if fresh.unreadable_event_time_records:
        count = counted(fresh.unreadable_event_time_records, "record")
        yield (
            f"Merge {count} whose event time cannot be read: any compaction by event time does",
            (f"eventide compact {table} --before {'T' if fresh.cut_ms is None else format_timestamp(fresh.cut_ms)}"),
        )
    elif fresh.cut_ms is None:
        yield "Plan the first compaction by event time, with a T of your own", f"eventide plan {table} --before T"
    elif report.late:
        cut = format_timestamp(fresh.cut_ms)
        late = counted(fresh.late_records, "late record")
        yield f"Compact again up to the cut, to merge {late}", f"eventide compact {table} --before {cut}"
    elif fresh.earliest_log_event_time_ms is not None:
        yield "If that is not fresh enough, compact up to a later T", f"eventide plan {table} --before T"

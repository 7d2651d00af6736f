"""The report as one self-contained HTML page. Every text from the table goes through `tables.shown`."""

from collections.abc import Iterable, Iterator
from shlex import quote

from eventide.formatting import format_duration, format_size
from eventide.report.coverage import FileCoverage, Role, SliceCoverage
from eventide.report.drawing import coverage_axis, coverage_by_partition
from eventide.report.gather import Report
from eventide.report.lines import draw_history
from eventide.report.style import key, page
from eventide.report.tables import NAME_CHARACTERS, html_table, named, section, shown, wide
from eventide_core.action.freshness.freshness import Freshness, watermark_text
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import counted, format_timestamp
from eventide_core.service.common.facts.compaction_history import PastCompaction
from eventide_core.table.timeline.contents.plans import CompactionPlan, ForeignPlan
from eventide_core.table.timeline.instant import Action, Instant


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


_KEY = {
    Role.BASE: "in the base file: read-optimized queries see it",
    Role.REMAINING: "in a log file: snapshot queries merge it",
    Role.LATE: "in a log file, with records before the cut: holds the watermark back",
}
_GLOSSARY = {
    "watermark": "everything before it that was committed is in the read-optimized table",
    "cut": "T of the last compaction by event time",
    "rests on": "what vouches for it: without a source, nothing says what is still on its way",
    "lag behind the clock": "the time of this page minus the watermark",
    "late records": "they lie before the cut, were committed after its compaction was planned, and are in log files",
    "records without event time": "in log files; they can't lower the watermark",
    "slices with log files": "a slice is a base file with the log files on top of it",
    "log files": "snapshot queries merge them; read-optimized queries don't see them",
    "bytes pinned by left-over files": "left-over files of partial compactions, linked or copied, in slices in use",
}
_NUMBER_CHARACTERS = 16  # that fit a tile
_LATE_WHY = (
    "they were committed after the compaction that published the cut was planned; the next compaction merges them"
)


def render(report: Report) -> str:
    """The page. Times are in UTC."""
    config = report.table.state.config
    about = f"{shown(report.table.uri)} · as of {_moment(report.now_ms)}"
    sections = (
        f'<header><h1>{shown(config.name)}</h1><p class="soft">{about}</p></header>',
        "<main>",
        _lead(report),
        (
            f'<div class="answers"><section><h2>Why not fresher</h2><p>{_reason(report)}</p></section>'
            f"<section>{what_to_do(report)}</section></div>"
        ),
        _tiles(report),
        _holds_back(report),
        _from_the_future(report),
        _pending(report),
        _coverage(report),
        _history(report),
        _tags(report),
        _partitions(report.partitions.items()),
        _backlog(report),
        _settings(report),
        "</main>",
    )
    return page(f"{config.name}: freshness by event time", "\n".join(part for part in sections if part))


def _lead(report: Report) -> str:
    fresh = report.freshness
    if fresh is None:
        count = len(report.table.problems)
        text = (
            f"The freshness of the table is unknown, because the event times of {counted(count, 'log file')} "
            "are unknown."
        )
        return f'<p class="lead late">{text}</p>'
    if fresh.is_complete:
        text = "Everything that has been committed is in base files: this is a copy-on-write table."
        return f'<p class="lead">{text}</p>'
    if fresh.unreadable_event_time_records:
        text = (
            f"Nothing is known to be complete: {counted(fresh.unreadable_event_time_records, 'record')} in log files "
            "may be before any T, because the event time cannot be read."
        )
        return f'<p class="lead late">{text}</p>'
    if fresh.watermark_ms is None:
        text = "There has been no compaction by event time yet, so there is no time before which the table is complete."
        return f'<p class="lead none">{text}</p>'
    late = fresh.cut_ms is not None and fresh.watermark_ms < fresh.cut_ms
    text = (
        f"Everything before <strong>{_moment(fresh.watermark_ms)}</strong> that was committed is in the read-optimized "
        f"table: <strong>{format_duration(report.lag_ms)}</strong> behind the clock."
    )
    if late:
        text += (
            f" The last compaction reached {_moment(fresh.cut_ms)}; "
            f"{counted(fresh.late_records, 'late record')} {'has' if fresh.late_records == 1 else 'have'} "
            "arrived since."
        )
    return f'<p class="lead{" late" if late else ""}">{text}</p>'


def _tiles(report: Report) -> str:
    fresh, logs = report.freshness, report.backlog
    facts: list[tuple[str, str, bool]] = []
    if fresh is not None:
        facts = [
            ("watermark", watermark_text(fresh), False),
            ("cut", format_timestamp(fresh.cut_ms), False),
            (
                "rests on",
                "files alone" if not fresh.sources else f"files and {counted(len(fresh.sources), 'source')}",
                False,
            ),
            *((f"{one.kind} {one.name}", one.progress_text, one.name == fresh.held_back_by) for one in fresh.sources),
            ("lag behind the clock", format_duration(report.lag_ms), False),
            ("late records", f"{fresh.late_records:,}", fresh.late_records > 0),
            ("records without event time", f"{fresh.unknown_event_time_records:,}", False),
            (
                "records with an unreadable event time",
                f"{fresh.unreadable_event_time_records:,}",
                fresh.unreadable_event_time_records > 0,
            ),
        ]
    facts += [
        ("slices with log files", f"{logs.file_slices:,}", False),
        ("log files", f"{logs.log_files:,}", False),
        ("bytes in log files", format_size(logs.bytes), False),
        ("earliest event time in log files", format_timestamp(logs.min_event_time_ms), False),
        ("bytes pinned by left-over files", format_size(report.pinned_bytes), False),
    ]
    cells = (
        f"<div{_long(value)}><dt>{_term(name)}</dt><dd{_bad(bad)}>{shown(value)}</dd></div>"
        for name, value, bad in facts
    )
    return f'<dl class="tiles">{"".join(cells)}</dl>'


def _term(name: str) -> str:
    """A term that shows its meaning when the user points at it."""
    meaning = _GLOSSARY.get(name)
    return name if meaning is None else f'<abbr title="{shown(meaning)}">{name}</abbr>'


def _long(value: str) -> str:
    """A time takes the place of two numbers."""
    return ' class="long"' if len(value) > _NUMBER_CHARACTERS else ""


def _bad(is_bad: bool) -> str:
    return ' class="bad"' if is_bad else ""


def _reason(report: Report) -> str:
    """Why the table is not fresher, in a sentence or two."""
    fresh = report.freshness
    if report.table.problems:
        unknown = counted(len(report.table.problems), "log file")
        return (
            f"The event times of {unknown}, listed below, are unknown, so the freshness of the whole table is unknown."
        )
    if fresh is None or fresh.is_complete:
        return "Nothing waits: each commit writes base files."
    if fresh.unreadable_event_time_records:
        return "Records whose event time cannot be read may be before any T, as long as they are in log files."
    if fresh.cut_ms is None:
        return "There is no watermark before the first compaction by event time: plan one."
    holder = next((one for one in fresh.sources if one.name == fresh.held_back_by), None)
    if holder is not None:
        return f"The source {shown(holder.name)}: {shown(holder.evidence)}."
    if report.late:
        first = report.late[0]
        where = named(first.partition or "the table", NAME_CHARACTERS)
        return (
            f"Records before the cut are in log files of {counted(len(report.late), 'slice')}: {_LATE_WHY}. "
            f"The earliest is of {_moment(first.uncompacted_from_ms)}, in {where}."
        )
    text = "Only the cut itself: no record before it is in a log file. A later compaction raises both."
    first_waiting = next((coverage for coverage in report.slices if coverage.uncompacted_from_ms is not None), None)
    if first_waiting is not None:
        text += (
            f" The earliest record that waits for it is of {_moment(first_waiting.uncompacted_from_ms)}, in "
            f"{named(first_waiting.partition or 'the table', NAME_CHARACTERS)}, slice {named(first_waiting.file_id)}."
        )
    return text


def _moment(epoch_ms: int | None) -> str:
    """A time within a sentence, which no line end breaks."""
    return f'<span class="moment">{format_timestamp(epoch_ms)}</span>'


def _holds_back(report: Report) -> str:
    """The files that hold the watermark back, one by one."""
    title = "What holds the watermark back"
    if report.late:
        rows = [_late_row(coverage, file, report.freshness) for coverage in report.late for file in coverage.late]
        return section(title, ("earliest event time", "behind the cut by", "partition", "file slice", "log file"), rows)
    problems = [(named(path, 80), shown(why)) for path, why in report.table.problems.items()]
    return section(title, ("log file", "why"), problems)


def _late_row(coverage: SliceCoverage, file: FileCoverage, fresh: Freshness | None) -> tuple[str, ...]:
    since = None if file.uncompacted is None else file.uncompacted.min_ms
    behind = None if since is None or fresh is None or fresh.cut_ms is None else fresh.cut_ms - since
    return (
        format_timestamp(since),
        format_duration(behind),
        named(coverage.partition or ".", NAME_CHARACTERS),
        named(coverage.file_id),
        named(file.name),
    )


def _pending(report: Report) -> str:
    pending = report.table.state.timeline.pending
    rows = [(shown(i.requested_time), str(i.action), str(i.state), shown(_what_to_do(report, i))) for i in pending]
    return section("What is pending", ("instant", "action", "state", "what it waits for"), rows)


def _what_to_do(report: Report, instant: Instant) -> str:
    plan = report.table.plans.get(instant.requested_time)
    run = f"eventide compact {quote(report.table.uri)} --execute {instant.requested_time}"
    if isinstance(plan, ForeignPlan):
        count = counted(len(plan.file_groups), "slice")
        return f"the engine that planned it, or {run} ({count}); no other compaction is planned before it has completed"
    if plan is not None:
        return f"{run} ({counted(len(plan.operations), 'slice')})"
    if instant.action in (Action.COMMIT, Action.DELTA_COMMIT):
        return "its writer; on version 6, and if left-overs are copied, a compaction waits for it, too"
    return "the engine that started it"


def _coverage(report: Report) -> str:
    head = "<h2>Coverage of event time</h2>"
    fresh = report.freshness
    marks: dict[str, int] = {}
    if fresh is not None and fresh.watermark_ms is not None and fresh.cut_ms is not None:
        marks = {"watermark": fresh.watermark_ms, "cut T": fresh.cut_ms}
    axis = coverage_axis(report.slices, () if fresh is None or fresh.cut_ms is None else (fresh.cut_ms,))
    if axis is None:
        return head + "<p>No file states an event time.</p>"
    text = (
        "Each bar is a file, as long as the event times it holds; a group of bars is a file slice. "
        "Point at a bar for its name."
    )
    if report.slices_left_out:
        text += (
            f" The drawing shows {counted(len(report.slices), 'slice')}, those that hold the watermark back first, "
            f"and omits {report.slices_left_out:,} more."
        )
    is_unknown = any(file.event_times is None for coverage in report.slices for file in coverage.files)
    unknown = '<p class="soft">A dashed bar is a file whose event times are unknown.</p>' if is_unknown else ""
    return f"{head}<p>{text}</p>{key(_KEY)}{unknown}{coverage_by_partition(report, axis, marks)}"


def _history(report: Report) -> str:
    head = "<h2>Freshness over time</h2>"
    if not report.history:
        return head + "<p>No compaction of eventide is on the active timeline.</p>"
    watermark = None if report.freshness is None else report.freshness.watermark_ms
    drawing = draw_history(report.history, report.now_ms, watermark)
    drawn = ""
    if drawing is not None:
        drawn = (
            '<p class="soft">The line is the cut, a step each time a compaction completed; a ring is a watermark below the '
            "cut, and the last ring the watermark now.</p>" + wide("Freshness over time", drawing)
        )
    columns = (
        "completed", "instant", "cut", "watermark then", "late then", "slices", "in full, by reason", "links", "took",
    )  # fmt: skip
    rows = [_history_row(past) for past in reversed(report.history)]
    return f"{head}{drawn}{html_table('Compactions on the active timeline, the latest first', columns, rows)}"


def _history_row(past: PastCompaction) -> tuple[str, ...]:
    fallbacks = ", ".join(f"{reason} {count}" for reason, count in sorted(past.fallbacks.items()))
    return (
        format_timestamp(past.completed_ms // 1000 * 1000),
        shown(past.instant),
        format_timestamp(past.cut_ms),
        format_timestamp(past.watermark_ms),
        "" if past.late_records is None else f"{past.late_records:,}",
        f"{past.slices:,}",
        shown(fallbacks or "none"),
        shown(past.link_mode),
        format_duration(past.duration_ms, "not known"),
    )


def _from_the_future(report: Report) -> str:
    """Keys whose event times are later than the clock, or far later than the event times of records written after them."""
    rows = [
        (
            named(records.offending.partition or ".", NAME_CHARACTERS),
            named(records.offending.file_id),
            named(str(records.offending.log_file.name)),
            named(key, NAME_CHARACTERS),
            when,
            f"{records.offending.held_back:,}",
        )
        for records in report.offending
        for key, when in [(one.key, format_timestamp(one.event_time_ms)) for one in records.keys]
        or [(records.problem or "none", "")]
    ]
    text = (
        "<p>These records seem to come from a wrong clock. An exact cut keeps their log files, and all "
        "above them, until the slice exceeds its limit of left-overs and is compacted in full.</p>"
    )
    columns = ("partition", "file slice", "log file", "key", "event time", "log files held back")
    return section("Records from the future", columns, rows, text=text)


def _tags(report: Report) -> str:
    """The tags of the table, each of which keeps a state of it."""
    rows = [
        (shown(tag.name), shown(tag.instant), format_timestamp(tag.savepoint.saved_at_ms), shown(tag.savepoint.remarks))
        for tag in report.tags
    ]
    return section("Tags", ("tag", "instant", "kept at", "comment"), rows, caption="Kept until they are deleted")


def _partitions(partitions: Iterable[tuple[str, Freshness]]) -> str:
    rows = [
        (
            named(partition or ".", NAME_CHARACTERS),
            watermark_text(fresh),
            f"{fresh.late_records:,}",
            f"{fresh.unknown_event_time_records:,}",
            format_timestamp(fresh.earliest_log_event_time_ms),
        )
        for partition, fresh in sorted(
            partitions, key=lambda pair: (pair[1].watermark_ms is None, pair[1].watermark_ms or 0, pair[0])
        )
    ]
    columns = ("partition", "watermark", "late records", "without event time", "earliest in a log file")
    return section("Freshness by partition", columns, rows, caption="The ones furthest behind first")


def _backlog(report: Report) -> str:
    logs = report.backlog
    if not logs.file_slices:
        return "<h2>Backlog</h2><p>No slice has log files: every record is in a base file.</p>"
    rows = [
        (
            named(coverage.partition or ".", NAME_CHARACTERS),
            named(coverage.file_id),
            f"{len(files):,}",
            format_size(sum(file.size for file in files)),
            format_timestamp(coverage.uncompacted_from_ms, "nothing"),
        )
        for coverage in report.slices
        if (files := [file for file in coverage.files if file.role is not Role.BASE])
    ]
    about = (
        f"{counted(logs.file_slices, 'slice')} with {counted(logs.log_files, 'log file')} of {format_size(logs.bytes)}"
    )
    left_out = logs.file_slices - len(rows)
    if left_out:
        about += f"; {counted(left_out, 'slice')} with later records left out below"
    return f"<h2>Backlog</h2>{html_table(about, ('partition', 'file slice', 'log files', 'bytes', 'waits from'), rows)}"


def _settings(report: Report) -> str:
    config = report.table.state.config
    rows = [
        ("table version", str(config.version)),
        ("merged by", str(config.merge_rule)),
        ("event time", report.table.event_time_field or f"unknown: set {EVENT_TIME_FIELD}"),
        ("record key", ", ".join(config.record_key_fields) or "none"),
        ("ordering", ", ".join(config.ordering_fields) or "none"),
        ("partitioned by", ", ".join(config.partition_fields) or "nothing"),
        ("payload", config.payload_class or "none"),
        ("metadata table", str(report.table.metadata_table or "none")),
        ("file slices", f"{len(report.table.file_slices):,}"),
        ("instants on the active timeline", f"{len(report.table.state.timeline.instants):,}"),
    ]
    cells = "".join(f'<tr><th scope="row">{name}</th><td>{shown(value)}</td></tr>' for name, value in rows)
    return f"<h2>The table</h2>{wide('The table', f'<table><tbody>{cells}</tbody></table>')}"

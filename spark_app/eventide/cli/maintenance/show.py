"""`eventide show`: what a table is."""

from collections.abc import Iterator
from typing import Any, Final

from eventide.cli.console import table_of
from eventide.cli.settings import (
    Settings,
    check_partition,
    common_options,
    detail_options,
    event_time_option,
    table_verb,
)
from eventide.cli.text_table import Lines
from eventide.formatting import format_size
from eventide.results.detail import Detail
from eventide.results.show import TableDescription
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import counted, format_timestamp
from eventide_core.table.files.file_slice import FileSlice, LogFile
from eventide_core.table.records.event_time_texts import ISO_WITH_ZONE

_RECENT: Final = 5


@table_verb
@event_time_option
@detail_options
@common_options
def show(settings: Settings, table: str, detail: Detail) -> None:
    """Show what a table is.

    Shows its versions, merge mode, timeline, file slices, and what is pending. Names open writes whose writers expect to
    be the only one. With --verbose, --partition or --limit, it shows the whole timeline, and the event times of each
    log file.
    """
    with settings.table(table) as opened:
        check_partition(opened, detail)
        description = opened.describe()
    document = description.to_json()
    about = document["table"]
    settings.console.result(
        document,
        table_of(
            "",
            ("table", about["uri"]),
            (
                ("name, version", f"{about['name']}, version {about['version']}"),
                ("type", about["type"]),
                ("merge mode", about["merge_mode"]),
                ("record key", ", ".join(about["record_key_fields"]) or "none"),
                ("partitioned by", ", ".join(about["partition_fields"]) or "nothing"),
                ("event time", _event_time(description)),
                ("cut", format_timestamp(about["cut_ms"], absent="no event-time compaction yet")),
                ("metadata table", str(description.metadata_table or "none")),
                *_counts(description),
            ),
        ),
        _timeline(document["timeline"], detail),
        *_slices(description, detail),
        _pending(document["pending"]),
        *(f"note: {note}" for note in description.notes),
    )


def _event_time(description: TableDescription) -> str:
    """The field, and how its times without a zone are read if that is set."""
    field, texts = description.event_time_field, description.state.config.event_time_texts
    if field is None:
        return f"unknown; set --option {EVENT_TIME_FIELD}=FIELD"
    return field if texts == ISO_WITH_ZONE else f"{field}, with {texts}"


def _counts(description: TableDescription) -> list[tuple[str, str]]:
    """The content of the file slices in a few words."""
    slices, facts = description.file_slices, description.facts.values()
    logs = [log for one in slices for log in one.log_files]
    bases = [one.base_file for one in slices if one.base_file is not None]
    partitions = {one.partition for one in slices}
    earliest = min((fact.event_times.min_ms for fact in facts if fact.event_times.min_ms is not None), default=None)
    latest = max((fact.event_times.max_ms for fact in facts if fact.event_times.max_ms is not None), default=None)
    unknown = sum(fact.event_times.unknown_records for fact in facts)
    unreadable = sum(fact.event_times.unreadable_records for fact in facts)
    rows = [
        ("file slices", f"{len(slices):,} in {counted(len(partitions), 'partition')}"),
        ("base files", f"{len(bases):,}, {format_size(sum(base.size for base in bases))}"),
        ("log files", f"{len(logs):,}, {format_size(sum(log.size for log in logs))}"),
    ]
    if earliest is not None:
        rows.append(("in log files", f"event times from {format_timestamp(earliest)} to {format_timestamp(latest)}"))
    if unknown:
        rows.append(("unknown", f"{counted(unknown, 'record')} without an event time in log files"))
    if unreadable:
        rows.append(("unreadable", f"{counted(unreadable, 'record')} with an unreadable event time in log files"))
    if description.problems:
        path, problem = min(description.problems.items())
        others = len(description.problems) - 1
        rows.append(
            ("problem", f"{path}: {problem}" + (f" (and {counted(others, 'more log file')})" if others else ""))
        )
    return rows


def _timeline(entries: list[dict[str, Any]], detail: Detail) -> Lines:
    """The timeline; in a short text, only its last instants."""
    shown = entries if detail.shows_files else entries[-_RECENT:]
    title = "timeline" if len(shown) == len(entries) else f"the last {len(shown)} of {len(entries):,} instants"
    rows = ((entry["requested_time"], entry["action"], entry["state"], entry["completion_time"]) for entry in shown)
    return table_of(title, ("requested", "action", "state", "completed"), rows)


def _slices(description: TableDescription, detail: Detail) -> list[str]:
    """Each file slice with its files, whose names are whole: a line each, as long as the screen is wide."""
    if not detail.shows_files:
        return []
    slices, left_out = detail.slices_of(description.file_slices)
    return ["\nfile slices", *(line for one in slices for line in _lines_of_slice(description, one)), *left_out]


def _lines_of_slice(description: TableDescription, file_slice: FileSlice) -> Iterator[str]:
    base = file_slice.base_file
    yield f"{file_slice.partition or '.'} {file_slice.file_id}"
    yield "  no base file" if base is None else f"  {base.path.rpartition('/')[2]} {format_size(base.size)}"
    for log in file_slice.log_files:
        yield f"  {log.path.rpartition('/')[2]} {format_size(log.size)}{_event_times(description, log)}"


def _event_times(description: TableDescription, log: LogFile) -> str:
    if (problem := description.problems.get(log.path)) is not None:
        return f"; {problem}"
    fact = description.facts.get(log.path)
    if fact is None:
        return ""
    times = fact.event_times
    span = (
        "" if times.min_ms is None else f", from {format_timestamp(times.min_ms)} to {format_timestamp(times.max_ms)}"
    )
    counts = ((times.unknown_records, "without an event time"), (times.unreadable_records, "with an unreadable one"))
    return span + "".join(f", {counted(count, 'record')} {what}" for count, what in counts if count)


def _pending(pending: list[dict[str, object]]) -> str:
    if not pending:
        return "nothing is pending"
    lines = ["pending:"]
    for entry in pending:
        by = "" if entry["scheduled_by_eventide"] is not False else ", scheduled by another engine"
        lines.append(f"  {entry['action']} {entry['requested_time']} is {entry['state']}{by}")
    return "\n".join(lines)

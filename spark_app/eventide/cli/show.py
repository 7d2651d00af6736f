"""`eventide show`: what a table is."""

import click

from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, event_time_option
from eventide.show import TableDescription
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import format_timestamp
from eventide_core.table.file_slice import FileSlice


@click.command()
@click.argument("table")
@event_time_option
@common_options
def show(settings: Settings, table: str, event_time: str | None) -> None:
    """Show what a table is.

    Shows its versions, merge mode, timeline, file slices, the event times of each log file, and what is pending. Names
    open writes whose writers expect to be the only one.
    """
    with settings.having(EVENT_TIME_FIELD, event_time).table(table) as opened:
        found = opened.describe()
    document = found.to_json()
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
                ("event time", about["event_time_field"] or f"unknown; give --option {EVENT_TIME_FIELD}=FIELD"),
                ("cut", format_timestamp(about["cut_ms"], absent="no event-time compaction yet")),
                ("metadata table", ", ".join(about["metadata_partitions"]) or "none"),
            ),
        ),
        table_of(
            "timeline",
            ("requested", "action", "state", "completed"),
            (
                (entry["requested_time"], entry["action"], entry["state"], entry["completion_time"])
                for entry in document["timeline"]
            ),
        ),
        table_of(
            "file slices",
            ("file", "bytes", "event time from", "to", "unknown", ""),
            (row for slice_ in found.file_slices for row in _rows_of_slice(found, slice_)),
        ),
        _pending(document["pending"]),
        *(f"note: {note}" for note in found.notes),
    )


def _rows_of_slice(found: TableDescription, file_slice: FileSlice) -> list[tuple[object, ...]]:
    base = file_slice.base_file
    where = f"{file_slice.partition or '.'} {file_slice.file_id}"
    rows: list[tuple[object, ...]] = [
        (where, None, None, None, None, None),
        ("  no base file", None, None, None, None, None)
        if base is None
        else (f"  {base.path.rpartition('/')[2]}", base.size, None, None, None, None),
    ]
    for log in file_slice.log_files:
        fact = found.facts.get(log.path)
        times = None if fact is None else fact.event_times
        rows.append(
            (
                f"  {log.path.rpartition('/')[2]}",
                log.size,
                format_timestamp(times.min_ms, "") if times else None,
                format_timestamp(times.max_ms, "") if times else None,
                times.unknown_records if times else None,
                found.problems.get(log.path),
            )
        )
    return rows


def _pending(pending: list[dict[str, object]]) -> str:
    if not pending:
        return "nothing is pending"
    lines = ["pending:"]
    for entry in pending:
        by = "" if entry["scheduled_by_eventide"] is not False else ", scheduled by another engine"
        lines.append(f"  {entry['action']} {entry['requested_time']} is {entry['state']}{by}")
    return "\n".join(lines)

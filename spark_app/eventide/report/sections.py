"""Optional sections of the page."""

from eventide.report.gather import Report
from eventide.report.tables import html_table
from eventide.report.words import NAME_CHARACTERS, named, shown
from eventide_core.errors import format_timestamp


def from_the_future(report: Report) -> str:
    """Keys whose event times are later than the clock, or far later than those of records written after them."""
    if not report.offending:
        return ""
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
    return "<h2>Records from the future</h2>" + text + html_table("", columns, rows)


def tags(report: Report) -> str:
    """The tags of the table, each of which keeps a state of it."""
    if not report.tags:
        return ""
    rows = [
        (shown(tag.name), shown(tag.instant), format_timestamp(tag.savepoint.saved_at_ms), shown(tag.savepoint.remarks))
        for tag in report.tags
    ]
    return "<h2>Tags</h2>" + html_table("Kept until they are deleted", ("tag", "instant", "kept at", "comment"), rows)

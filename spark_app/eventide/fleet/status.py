"""The status of a fleet: the lag of each table against its target, its backlog, its last error, and what holds it back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from eventide.bootstrap import assemble
from eventide.fleet.chain import Link, chain_of
from eventide.fleet.memory import Remembered, read_memory
from eventide.fleet.service import lag_of
from eventide.fleet.settings import FleetSettings, FleetTable
from eventide.formatting import format_duration, format_size, sanitize
from eventide.report import Report, gather, render, write_page
from eventide.report.coverage import Role
from eventide.report.style import page
from eventide.report.tables import cell_of, named, shown, wide
from eventide.results.detail import WORST, more
from eventide_core.access.threads import Threads
from eventide_core.action.compaction.backlog import Backlog
from eventide_core.errors import ConfigError, counted, format_timestamp
from eventide_core.service.common.facts.arrival import source_notes
from eventide_core.table.timeline.source_progress import FILES

_TABLES_AT_ONCE: Final = 8
COLUMNS: Final = ("table", "state", "lag", "target", "watermark", "log files")
_PAGE_COLUMNS: Final = ("table", "state", "lag / target", "watermark", "log files")
_NAMES: Final = 3
"""Tables that a reason names."""
_NAME: Final = 40
"""Characters of a table's name on the page."""


@dataclass(frozen=True, slots=True)
class TableStatus:
    """A table at a moment. `problem` states why it can't be measured; then the lag and the backlog are unknown.

    `lag_ms` is the clock minus `watermark_ms`; both are None without a watermark. `backlog` sums up the log files of the
    latest slices. `remembered` is what the service has written about the table, or all None if it has not. `held_by` states
    in words what keeps the watermark back; None if nothing does. `chain` is a derived table's, None for any other.
    """

    table: FleetTable
    lag_ms: int | None
    watermark_ms: int | None
    backlog: Backlog | None
    held_by: str | None
    problem: str | None
    remembered: Remembered
    chain: Link | None = None

    @property
    def is_met(self) -> bool:
        return self.lag_ms is not None and self.lag_ms <= self.table.target.lag_ms

    @property
    def share(self) -> float:
        """The lag as a multiple of the target; 0 without a lag."""
        return 0.0 if self.lag_ms is None else self.lag_ms / self.table.target.lag_ms

    @property
    def state(self) -> str:
        """met, missed, or unknown."""
        if self.lag_ms is None:
            return "unknown"
        return "met" if self.is_met else "missed"

    @property
    def last_error(self) -> str | None:
        return self.problem or self.remembered.last_error

    def to_json(self) -> dict[str, Any]:
        """The status as plain values."""
        logs = self.backlog
        return {
            "table": self.table.name,
            "uri": self.table.uri,
            "state": self.state,
            "lag_ms": self.lag_ms,
            "target_lag_ms": self.table.target.lag_ms,
            "watermark_ms": self.watermark_ms,
            "file_slices_with_log_files": None if logs is None else logs.file_slices,
            "log_files": None if logs is None else logs.log_files,
            "log_files_size_bytes": None if logs is None else logs.bytes,
            "held_by": self.held_by,
            "problem": self.problem,
            "last_error": self.last_error,
            "last_error_ms": self.remembered.last_error_ms,
            "chain": None if self.chain is None else self.chain.to_json(),
        }


def fleet_status(fleet: FleetSettings, reports: Path | None = None) -> tuple[TableStatus, ...]:
    """The tables, the worst against its target first. With `reports`, writes each table's report to that directory.

    Raises ConfigError if the directory can't be written.
    """
    remembered = read_memory(fleet.state)
    if reports is not None:
        try:
            reports.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"directory {str(reports)!r} cannot be made: {error.strerror}") from None
    with Threads(_TABLES_AT_ONCE) as threads:
        asked = [
            threads.submit(_status, table, remembered.get(table.name, Remembered()), reports) for table in fleet.tables
        ]
        statuses = [one.result() for one in asked]
    return tuple(sorted(statuses, key=_urgency))


def write_fleet_page(path: Path, tables: Iterable[TableStatus], reports: str, now_ms: int) -> None:
    """Writes the page. `reports` is the directory of the tables' reports, relative to the page. Raises ConfigError."""
    statuses = tuple(tables)
    met = sum(one.is_met for one in statuses)
    lead = f"{met:,} of {counted(len(statuses), 'table')} within the target"
    rows = "".join(_row(one, reports) for one in statuses)
    heads = "".join(f'<th scope="col">{name}</th>' for name in _PAGE_COLUMNS)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    kind = "lead" if met == len(statuses) else "lead late"
    about = f'<p class="soft">as of <span class="moment">{format_timestamp(now_ms)}</span>, the worst first</p>'
    body = f'<header><h1>Fleet</h1>{about}</header><main><p class="{kind}">{lead}.</p>{wide("tables", table)}</main>'
    write_page(path, page("Fleet: lag against target", body))


def cells_of(one: TableStatus) -> tuple[str, ...]:
    """The status in words, one for each column of `COLUMNS`."""
    logs = one.backlog
    return (
        one.table.name,
        one.state,
        format_duration(one.lag_ms, "unknown"),
        format_duration(one.table.target.lag_ms),
        format_timestamp(one.watermark_ms),
        "unknown" if logs is None else f"{logs.log_files:,}, {format_size(logs.bytes)}",
    )


def reasons_of(tables: Iterable[TableStatus]) -> list[str]:
    """What holds the tables back, and their last errors: a line for each reason, with the tables that have it."""
    having: dict[str, list[str]] = {}
    for one in tables:
        for reason in _reasons(one):
            having.setdefault(reason, []).append(one.table.name)
    lines = [f"{_some(names)}: {reason}" for reason, names in having.items()]
    return [*lines[:WORST], *more(len(lines[WORST:]))]


def _reasons(one: TableStatus) -> list[str]:
    reasons = (("held back by", one.held_by), ("last error:", one.last_error))
    return [f"{what} {why}" for what, why in reasons if why]


def _some(names: Sequence[str]) -> str:
    left_out = len(names[_NAMES:])
    return ", ".join(names[:_NAMES]) + (f" and {left_out:,} more" if left_out else "")


def _status(table: FleetTable, remembered: Remembered, reports: Path | None) -> TableStatus:
    """Runs on a thread. An error of a table is its status; an error of a page ends the run."""
    try:
        application = assemble(table.uri, table.options)
        report = gather(application)
        chain = chain_of(table.uri, table.options) if source_notes(application.files, report.table.state) else None
    except Exception as error:  # also one of a library
        return TableStatus(table, None, None, None, None, sanitize(error), remembered)
    if reports is not None:
        write_page(reports / f"{table.name}.html", render(report))
    fresh = report.freshness if chain is None else chain.fresh
    lag_ms = None if fresh is None else lag_of(fresh, report.now_ms)
    watermark_ms = None if fresh is None else fresh.watermark_ms
    held_by = _held_by(report)
    if chain is not None and chain.holder != chain.uri:
        held_by = f"its source {chain.holder}"
    return TableStatus(table, lag_ms, watermark_ms, report.backlog, held_by, None, remembered, chain)


def _held_by(report: Report) -> str | None:
    """What keeps the watermark from following the clock, the first reason that holds."""
    if report.table.problems:
        return f"unknown event times of {counted(len(report.table.problems), 'log file')}"
    unreadable = 0 if report.freshness is None else report.freshness.unreadable_event_time_records
    if unreadable:
        return f"{counted(unreadable, 'record')} with an unreadable event time in log files"
    pending = report.table.state.timeline.pending
    if report.late:
        first = report.late[0]
        where = f", the earliest in {first.partition}" if first.partition else ""
        return f"late records in {counted(len(report.late), 'slice')}{where}"
    if pending:
        return f"pending {pending[0].action} {pending[0].requested_time}"
    if report.freshness is None or report.freshness.cut_ms is None:
        return "no compaction yet"
    held = report.freshness.held_back_by
    return None if held is None or held == FILES else f"its source {held}"


def _urgency(one: TableStatus) -> tuple[int, float, str]:
    """A sort key, the worst first: no measurement, no watermark, then the greatest lag against the target."""
    rank = 0 if one.problem is not None else 1 if one.lag_ms is None else 2
    return (rank, -one.share, one.table.name)


def _row(one: TableStatus, reports: str) -> str:
    name, state, lag, target, watermark, logs = cells_of(one)
    link = named(name, _NAME)
    if one.problem is None:
        link = f'<a href="{quote(reports)}/{quote(name)}.html">{link}</a>'
    role = Role.MERGED if one.is_met else Role.LATE
    # The mark in the middle is the target: a bar that reaches the end is twice as long, or more.
    length = min(50 * one.share, 100)
    bar = f'<span class="bar"><i class="{role}" style="width: {length:.0f}%"></i></span>'
    bad = "" if one.is_met else ' class="bad"'
    shown_lag = f"{shown(lag)} / {shown(target)}{'' if one.lag_ms is None else bar}"
    row = (f"<span{bad}>{state}</span>", shown_lag, shown(watermark), shown(logs))
    cells = "".join(cell_of(column, cell, "time") for column, cell in zip(_PAGE_COLUMNS[1:], row, strict=True))
    whys = "".join(f"<p>{shown(reason)}</p>" for reason in _reasons(one))
    why = f'<tr class="why"><td colspan="{len(_PAGE_COLUMNS)}"><div>{whys}</div></td></tr>' if whys else ""
    return f'<tr><th scope="row">{link}</th>{cells}</tr>{why}'

"""`eventide verify`: whether the invariants of a table hold."""

from typing import Any

import click

from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, event_time_option, finding_options
from eventide.results.detail import WORST, Detail, more
from eventide_core.action.verification.result import CheckResult, Verification
from eventide_core.config import EVENT_TIME_FIELD
from eventide_core.errors import UnsupportedTableError, counted

FAILED = 1


@click.command()
@click.argument("table")
@click.option("--deep", is_flag=True, help="Also reads every record of the latest slices.")
@event_time_option
@finding_options
@common_options
@click.pass_context
def verify(
    ctx: click.Context, settings: Settings, table: str, deep: bool, event_time: str | None, detail: Detail
) -> None:
    """Check the invariants of a table.

    Checks names, sizes, headers, and footers of TABLE; with --deep, its records too. Writes nothing. Reports what is
    damaged, how to repair it, and what was not checked: the first findings of each check, or with --verbose, --partition or
    --limit, those that they select. Exits with 1 when a check failed,
    and otherwise with 3 if a check left out what eventide does not support. A check that was not made, or not of everything,
    does not change the exit code.
    """
    with settings.having(EVENT_TIME_FIELD, event_time).table(table) as opened, settings.console.progress() as progress:
        found = opened.verify(deep=deep, progress=progress)
    settings.console.result(
        {
            "ok": found.ok,
            "deep": found.is_deep,
            "not_supported": [check.name for check in found.not_supported],
            "not_checked": [check.name for check in found.not_checked],
            "checks": [_json(check) for check in found.checks],
        },
        table_of("", ("check", "invariant", "status", "what it says"), [_row(check) for check in found.checks]),
        *_damage(found, detail),
        _sum(found),
    )
    if not found.ok:
        ctx.exit(FAILED)
    if found.not_supported:
        ctx.exit(UnsupportedTableError.exit_code)


def _json(check: CheckResult) -> dict[str, Any]:
    return {
        "name": check.name,
        "invariant": check.invariant,
        "promise": check.promise,
        "status": str(check.status),
        "findings": [{"path": f.path, "problem": f.problem, "cure": f.cure} for f in check.findings],
        "remarks": list(check.remarks),
    }


def _row(check: CheckResult) -> tuple[object, ...]:
    return (check.name, check.invariant, str(check.status), "; ".join((check.promise, *check.remarks)))


def _damage(found: Verification, detail: Detail) -> list[str]:
    return [line for check in found.failed for line in _findings(check, detail)]


def _findings(check: CheckResult, detail: Detail) -> list[str]:
    """The findings to show of a failed check, and a line that counts the others."""
    partition, limit = detail.partition, detail.limit
    if not detail.shows_files:
        limit = WORST
    chosen = [one for one in check.findings if partition is None or one.path.startswith(f"{partition}/")]
    shown = chosen if limit is None else chosen[:limit]
    return [
        *(f"{check.name}: {one.path or 'the table'} {one.problem}\n    cure: {one.cure}" for one in shown),
        *(f"{check.name}:{line[1:]}" for line in more(len(check.findings) - len(shown))),
    ]


def _sum(found: Verification) -> str:
    failed, unsupported, unchecked = len(found.failed), len(found.not_supported), len(found.not_checked)
    passed = len(found.checks) - failed - unsupported - unchecked
    told = f", {unsupported} not supported" if unsupported else ""
    return f"{counted(passed, 'check')} passed, {failed} failed{told}, {unchecked} not checked"

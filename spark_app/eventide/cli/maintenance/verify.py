"""`eventide verify`: whether the invariants of a table hold."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from eventide.cli.console import table_of
from eventide.cli.settings import (
    Settings,
    check_partition,
    common_options,
    event_time_option,
    finding_options,
    table_verb,
)
from eventide.results.detail import WORST, Detail, more
from eventide_core.action.verification.result import CheckResult, Status, Verification
from eventide_core.errors import UnsupportedTableError, counted

if TYPE_CHECKING:
    from eventide.cli.text_table import Lines

FAILED = 1
REMARK_MAX = 200
"""Characters of a remark in the short text."""


@table_verb
@click.option("--deep", is_flag=True, help="Also reads every record of the latest slices.")
@event_time_option
@finding_options
@common_options
@click.pass_context
def verify(ctx: click.Context, settings: Settings, table: str, deep: bool, detail: Detail) -> None:
    """Check the invariants of a table.

    Checks names, sizes, headers, and footers of TABLE; with --deep, its records too. Writes nothing. Reports what is
    damaged, and how to repair it: the first findings of each check, or with --verbose, --partition or --limit, those that
    they select. With --verbose, it also lists every check, and says what was not checked and why.

    Exits with 1 when a check failed, and otherwise with 3 if a check left out what eventide does not support. A check that
    was not made, or not of everything, does not change the exit code.
    """
    with settings.table(table) as opened, settings.console.progress() as progress:
        check_partition(opened, detail)
        verification = opened.verify(deep=deep, progress=progress)
    settings.console.result(
        {
            "ok": verification.ok,
            "deep": verification.is_deep,
            "not_supported": [check.name for check in verification.not_supported],
            "not_checked": [check.name for check in verification.not_checked],
            "checks": [asdict(check) for check in verification.checks],
        },
        *_checks(verification, detail),
        *(line for check in verification.failed for line in _findings(check, detail)),
        _sum(verification, detail),
    )
    if not verification.ok:
        ctx.exit(FAILED)
    if verification.not_supported:
        ctx.exit(UnsupportedTableError.exit_code)


def _checks(verification: Verification, detail: Detail) -> "Iterator[Lines | str]":
    """All checks if they are asked for; otherwise those without a clean result, and what the others remark."""
    if detail.is_verbose:
        yield table_of("", ("check", "invariant", "status", "what it says"), map(_row, verification.checks))
        return
    bad = [*verification.failed, *verification.not_supported]
    if bad:
        yield table_of("", ("check", "invariant", "status"), [_row(check)[:3] for check in bad])
    for check in verification.checks:
        if check.status is not Status.NOT_CHECKED:
            yield from (f"{check.name}: {_short(remark)}" for remark in check.remarks)


def _short(remark: str) -> str:
    return remark if len(remark) <= REMARK_MAX else f"{remark[:REMARK_MAX]}... (--verbose shows all)"


def _row(check: CheckResult) -> tuple[object, ...]:
    return (check.name, check.invariant, str(check.status), "; ".join((check.promise, *check.remarks)))


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


def _sum(verification: Verification, detail: Detail) -> str:
    failed, unchecked = len(verification.failed), len(verification.not_checked)
    unsupported = len(verification.not_supported)
    passed = len(verification.checks) - failed - unsupported - unchecked
    not_supported = f", {unsupported} not supported" if unsupported else ""
    why = " (--verbose says why)" if unchecked and not detail.is_verbose else ""
    left = f", {unchecked} not checked{why}" if unchecked else ""
    return f"{counted(passed, 'check')} passed{f', {failed} failed' if failed else ''}{not_supported}{left}"

"""`eventide repair`: mends what `verify` finds."""

from typing import Any

import click

from eventide.cli.settings import Settings, common_options
from eventide_core.errors import counted
from eventide_core.service.repair.repair import RepairResult
from eventide_core.table.repair import Repair, Unrepaired

DAMAGED = 1


@click.command()
@click.argument("table")
@click.argument("checks", nargs=-1, metavar="[CHECK]...")
@click.option("--deep", is_flag=True, help="Also repairs what is found by reading every record.")
@click.option("--apply", is_flag=True, help="Applies the repairs. Without it, only lists them.")
@click.option("--undo", is_flag=True, help="Undoes the latest repair.")
@common_options
@click.pass_context
def repair(
    ctx: click.Context, settings: Settings, table: str, checks: tuple[str, ...], deep: bool, apply: bool, undo: bool
) -> None:
    """Repair what `verify` finds.

    Lists the repairs of TABLE, or with --apply makes them, under the table lock. CHECK limits them to the findings of
    these checks. Whatever a repair changes or removes is first copied to .hoodie/.backup, from where --undo takes it, as
    long as no action has begun since. Run it again after an interruption. Exits with 1 while damage is left.
    """
    if undo and (apply or deep or checks):
        raise click.UsageError("--undo stands alone: it undoes the latest repair as a whole")
    with settings.table(table) as opened:
        if undo:
            undone = opened.undo_repair()
            settings.console.result(
                {"undone": undone.instant, "restored": list(undone.paths)},
                *(f"restored {path}" for path in undone.paths),
                f"undid the repair {undone.instant}",
            )
            return
        with settings.console.progress() as progress:
            done = opened.repair(*checks, deep=deep, apply=apply, progress=progress)
    settings.console.result(
        _json(done, is_applied=apply),
        *(_repaired(one, is_applied=apply) for one in done.repairs),
        *(_left(one) for one in done.unrepaired),
        _sum(done, is_applied=apply),
    )
    if not done.verification.ok:
        ctx.exit(DAMAGED)


def _json(done: RepairResult, *, is_applied: bool) -> dict[str, Any]:
    return {
        "ok": done.verification.ok,
        "applied": is_applied,
        "backups": list(done.backups),
        "completed": list(done.completed),
        "repairs": [
            {"check": r.check, "path": r.path, "problem": r.problem, "action": r.action, "loses": r.loses}
            for r in done.repairs
        ],
        "unrepaired": [
            {"check": u.check, "path": u.path, "problem": u.problem, "cure": u.cure} for u in done.unrepaired
        ],
    }


def _repaired(one: Repair, *, is_applied: bool) -> str:
    lost = "" if one.loses is None else f"\n    loses: {one.loses}"
    how = "repaired" if is_applied else "would repair"
    return f"{how} {one.check}: {one.path} {one.problem}\n    {one.action}{lost}"


def _left(one: Unrepaired) -> str:
    return f"not repaired, {one.check}: {one.path or 'the table'} {one.problem}\n    cure: {one.cure}"


def _sum(done: RepairResult, *, is_applied: bool) -> str:
    repairs, left = counted(len(done.repairs), "repair"), counted(len(done.unrepaired), "finding")
    if not done.repairs and not done.unrepaired:
        return "nothing to repair"
    if not is_applied:
        return f"{repairs} possible, {left} without a repair; run again with --apply to repair"
    kept = f"; what changed is in {', '.join(f'.hoodie/.backup/{b}' for b in done.backups)}" if done.backups else ""
    return f"{repairs} made, {left} without a repair{kept}"

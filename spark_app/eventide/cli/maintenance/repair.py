"""`eventide repair`: repairs what `verify` finds."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import pyarrow as pa

from eventide import Table
from eventide.cli.argument_types import FilePath
from eventide.cli.row_files import check_target, write_rows
from eventide.cli.settings import Settings, common_options, pairs_of, table_verb
from eventide_core.action.repair.lost_keys import LostKeys
from eventide_core.action.repair.repairs import Repair, Unrepaired
from eventide_core.errors import NotAHudiTableError, NothingToDoError, counted
from eventide_core.service.repair.lost_settings import RecoveredSettings
from eventide_core.service.repair.repair import RepairResult

DAMAGED = 1
LOST_KEYS = pa.schema(
    (name, pa.string()) for name in ("partition", "file_id", "record_key", "files", "commits", "source")
)
"""The columns of the file of --lost-keys; `files` and `commits` are separated by semicolons."""


@table_verb
@click.argument("checks", nargs=-1, metavar="[CHECK]...")
@click.option("--deep", is_flag=True, help="Also repairs what is found by reading every record.")
@click.option("--apply", is_flag=True, help="Applies the repairs. Without it, only lists them.")
@click.option(
    "--setting",
    "stated",
    multiple=True,
    metavar="KEY=VALUE",
    help="Of a lost hoodie.properties, a setting that no other file records; an empty value if there was none. Repeatable.",
)
@click.option(
    "--lost-keys",
    "lost_keys",
    type=FilePath(),
    metavar="FILE",
    help="Writes the keys that lost and damaged files take with them to FILE.parquet, .csv, or .jsonl, and repairs nothing.",
)
@click.option("--undo", is_flag=True, help="Undoes the latest repair.")
@common_options
@click.pass_context
def repair(
    ctx: click.Context,
    settings: Settings,
    table: str,
    checks: tuple[str, ...],
    deep: bool,
    apply: bool,
    stated: tuple[str, ...],
    lost_keys: Path | None,
    undo: bool,
) -> None:
    """Repair what `verify` finds.

    Lists the repairs of TABLE, or with --apply makes them, under the table lock. CHECK limits them to the findings of
    these checks. Whatever a repair changes or removes is first copied to .hoodie/.backup, from where --undo takes it, as
    long as no action has begun since. If hoodie.properties and its backup are lost, makes it again from the table's other
    files, and asks for what they don't record. Run it again after an interruption. Exits with 1 while damage is left.
    """
    if lost_keys is not None:
        if undo or apply or deep or checks or stated:
            raise click.UsageError("--lost-keys stands alone: it repairs nothing")
        _write_lost_keys(settings, table, lost_keys)
        return
    if undo and (apply or deep or checks or stated):
        raise click.UsageError("--undo stands alone: it undoes the latest repair as a whole")
    with suppress(NotAHudiTableError):
        Table.open(table, settings.options)
        if not stated:
            _repair(ctx, settings, table, checks, is_deep=deep, is_applied=apply, is_undone=undo)
            return
    recovered = Table.recover_settings(table, pairs_of(stated, "--setting"), settings.options, apply=apply)
    _say_recovered(settings, recovered)
    if recovered.backup is None:
        ctx.exit(DAMAGED)


def _repair(
    ctx: click.Context,
    settings: Settings,
    table: str,
    checks: tuple[str, ...],
    *,
    is_deep: bool,
    is_applied: bool,
    is_undone: bool,
) -> None:
    with settings.table(table) as opened:
        if is_undone:
            try:
                undone = opened.undo_repair()
            except NothingToDoError as nothing:
                settings.console.result({"undone": None, "restored": []}, f"nothing to undo: {nothing}")
                return
            settings.console.result(
                {"undone": undone.instant, "restored": list(undone.paths)},
                *(f"restored {path}" for path in undone.paths),
                f"undid the repair {undone.instant}",
            )
            return
        with settings.console.progress() as progress:
            done = opened.repair(*checks, deep=is_deep, apply=is_applied, progress=progress)
    settings.console.result(
        _json(done, is_applied=is_applied),
        *(_repaired(one, is_applied=is_applied) for one in done.repairs),
        *(_left(one) for one in done.unrepaired),
        _sum(done, is_applied=is_applied),
    )
    if not done.verification.ok:
        ctx.exit(DAMAGED)


def _write_lost_keys(settings: Settings, table: str, path: Path) -> None:
    check_target(path)
    with settings.table(table) as opened, settings.console.progress() as progress:
        losses = opened.lost_keys(progress=progress)
    write_rows(path, LOST_KEYS, (batch for one in losses for batch in _batches(one)))
    settings.console.result(
        {
            "file": str(path),
            "keys": sum(len(one.keys) for one in losses),
            "file_groups": [
                {
                    "partition": one.partition,
                    "file_id": one.file_id,
                    "files": list(one.paths),
                    "commits": list(one.commits),
                    "source": one.source,
                    "keys": len(one.keys),
                }
                for one in losses
            ],
        },
        *(_lost(one) for one in losses),
        f"wrote {counted(sum(len(one.keys) for one in losses), 'key')} to {path}" if losses else "no file is lost",
    )


def _batches(lost: LostKeys) -> Iterator[pa.RecordBatch]:
    keys, count = pa.array(lost.keys, pa.string()), len(lost.keys)
    texts = (lost.partition, lost.file_id, ";".join(lost.paths), ";".join(lost.commits), lost.source or "")
    partition, file_id, files, commits, source = (pa.repeat(text, count) for text in texts)
    yield pa.record_batch([partition, file_id, keys, files, commits, source], schema=LOST_KEYS)


def _lost(one: LostKeys) -> str:
    place = f"{one.partition}/{one.file_id}" if one.partition else one.file_id
    if one.source is None:
        losses = "nothing records which keys they had"
    else:
        losses = f"{counted(len(one.keys), 'key')} lost, by the {one.source.replace('_', ' ')}"
    return f"{place}: {', '.join(one.paths)}\n    {losses}"


def _say_recovered(settings: Settings, recovered: RecoveredSettings) -> None:
    known = {key: {"value": one.value, "evidence": one.evidence} for key, one in sorted(recovered.known.items())}
    missing = dict(sorted(recovered.missing.items()))
    if recovered.backup is not None:
        end = "wrote hoodie.properties; run `eventide verify --deep`, and undo it with --undo if a setting is wrong"
    elif missing:
        end = "state the settings that no file records with --setting KEY=VALUE; KEY= if the table had none"
    else:
        end = "every setting is known; run again with --apply to write hoodie.properties"
    settings.console.result(
        {"ok": recovered.backup is not None, "settings": known, "missing": missing, "backup": recovered.backup},
        *(f"{key}={one['value']}    ({one['evidence']})" for key, one in known.items()),
        *(f"not known: {key}, {hint}" for key, hint in missing.items()),
        end,
    )


def _json(done: RepairResult, *, is_applied: bool) -> dict[str, Any]:
    return {
        "ok": done.verification.ok,
        "applied": is_applied,
        "backups": list(done.backups),
        "completed": list(done.completed),
        "repairs": [one.described() for one in done.repairs],
        "unrepaired": [asdict(one) for one in done.unrepaired],
        "lost": [
            *({"check": r.check, "path": r.path, "what": r.loses} for r in done.repairs if r.loses is not None),
            *({"check": u.check, "path": u.path, "what": u.problem} for u in done.unrepaired),
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

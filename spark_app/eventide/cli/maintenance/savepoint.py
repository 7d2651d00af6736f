"""`eventide savepoint`, `tag`, `restore` and `rollback`: keep states of a table, return to one, and undo one action."""

from typing import Any

import click

from eventide import Table, at
from eventide.catalog import located
from eventide.cli.argument_types import INSTANT, NAME
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, table_verb
from eventide_core.errors import format_timestamp
from eventide_core.service.rollback.savepoint import Tag


@table_verb
@click.argument("instant", type=INSTANT)
@click.option("--tag", metavar="NAME", help="A name for `read --tag`.")
@click.option("--delete", is_flag=True, help="Deletes the savepoint.")
@common_options
def savepoint(settings: Settings, table: str, instant: str, tag: str | None, delete: bool) -> None:
    """Keep the table as of a commit.

    Until the savepoint is deleted, nothing of TABLE as of the completed write at INSTANT is cleaned, rolled back, or
    archived.
    """
    if delete and tag is not None:
        raise click.UsageError("--delete needs only the instant; to delete by tag, run `tag --delete`")
    with settings.table(table) as opened:
        if delete:
            opened.delete_savepoint(instant)
        else:
            opened.savepoint(instant, tag=tag)
    how = "deleted" if delete else "kept" if tag is None else f"kept as {tag}"
    settings.console.result({"instant": instant, "tag": tag}, f"savepoint {instant} {how}")


@table_verb
@click.argument("instant", type=INSTANT)
@common_options
def restore(settings: Settings, table: str, instant: str) -> None:
    """Undo every write after a savepoint.

    Returns TABLE to its state at the savepoint INSTANT. Stop its writers first.
    """
    with settings.table(table) as opened:
        undone = opened.restore(instant)
    settings.console.result(
        {"instant": instant, "rolled_back": list(undone)},
        *([f"rolled back {time}" for time in undone] or ["nothing to roll back"]),
    )


@table_verb
@click.argument("instant", type=INSTANT)
@click.option(
    "--force", is_flag=True, help="Also undoes a pending write without a heartbeat, whose writer must be dead."
)
@common_options
def rollback(settings: Settings, table: str, instant: str, *, force: bool) -> None:
    """Undo a pending or completed action.

    Deletes what the action at INSTANT of TABLE wrote, including links and copies. Refuses a write with a fresh heartbeat. A
    write without a heartbeat, such as a write of a Hudi writer that cleans eagerly, may be alive: it needs --force. Undoes a
    completed action only if nothing else is lost.
    """
    with settings.table(table) as opened:
        deleted = opened.rollback(instant, force=force)
    lines = [f"deleted {path}" for path in deleted] or [f"{instant} has been rolled back: nothing is left to delete"]
    settings.console.result({"instant": instant, "deleted": list(deleted)}, *lines)


@table_verb
@click.argument("words", nargs=-1, metavar="[NAME]")
@click.option(
    "--before",
    metavar="T",
    help="Keeps one cut before T of several tables, TABLE TABLE...: of each of them, or of none.",
)
@click.option("--name", type=NAME, help="With --before, the name of the tags.  [default: before-T]")
@click.option(
    "--instant",
    type=INSTANT,
    metavar="INSTANT",
    help="Keeps the table as of this commit.  [default: the last one]",
)
@click.option("--as-of-watermark", metavar="T", help="Keeps the read-optimized table as of watermark T.")
@click.option("--comment", default="", help="A comment for people.")
@click.option("--delete", is_flag=True, help="Deletes the tag and its savepoint.")
@common_options
def tag(
    settings: Settings,
    table: str,
    words: tuple[str, ...],
    before: str | None,
    name: str | None,
    instant: str | None,
    as_of_watermark: str | None,
    comment: str,
    delete: bool,
) -> None:
    """Name a state of a table and keep it.

    Without NAME, lists the tags of TABLE. With NAME, keeps the state under that name by a savepoint, which Hudi respects
    too: nothing of it is cleaned until the tag is deleted. `read --tag NAME` reads it. With --before T, every word is a
    table, and each of them is kept as of T; run it again if it was killed.
    """
    if before is not None:
        if instant or as_of_watermark or comment or delete:
            raise click.UsageError("--before excludes the other options but --name")
        _keep_cut(settings, (table, *words), before, name)
        return
    if name is not None or len(words) > 1:
        raise click.UsageError("--name and several tables need --before T")
    name = words[0] if words else None
    if name is None and (instant or as_of_watermark or comment or delete):
        raise click.UsageError("these options need the NAME of a tag")
    if instant is not None and as_of_watermark is not None:
        raise click.UsageError("give either --instant or --as-of-watermark, not both")
    if delete and (instant or as_of_watermark or comment):
        raise click.UsageError("--delete excludes the other options")
    with settings.table(table) as opened:
        if name is None:
            tags = opened.tags()
            shown = [
                (one.name, one.instant, format_timestamp(one.savepoint.saved_at_ms), one.savepoint.remarks)
                for one in tags
            ]
            settings.console.result(
                {"tags": [_json(one) for one in tags]},
                table_of("", ("tag", "instant", "kept", "comment"), shown) if shown else "no tags",
            )
        elif delete:
            gone = opened.delete_tag(name)
            settings.console.result({"tag": name, "instant": gone}, f"deleted tag {name} and its savepoint {gone}")
        else:
            kept = opened.tag(name, instant=instant, as_of_watermark=as_of_watermark, comments=comment)
            settings.console.result(_json(kept), f"tag {name} keeps {kept.instant}")


def _keep_cut(settings: Settings, tables: tuple[str, ...], before: str, name: str | None) -> None:
    cut = at(before, [Table.open(*located(uri, settings.options)) for uri in tables])
    chosen = name or f"before-{format_timestamp(cut.threshold_ms)}"
    kept = cut.tag(chosen)
    settings.console.result(
        {
            "tag": chosen,
            "cut_ms": cut.threshold_ms,
            "tables": [{"table": table.uri, **_json(one)} for table, one in zip(cut.tables, kept, strict=True)],
        },
        *(f"tag {chosen} keeps {one.instant} of {table.uri}" for table, one in zip(cut.tables, kept, strict=True)),
    )


def _json(one: Tag) -> dict[str, Any]:
    kept = one.savepoint
    return {
        "tag": one.name,
        "instant": one.instant,
        "saved_at_ms": kept.saved_at_ms,
        "saved_by": kept.saved_by,
        "comment": kept.remarks,
        "is_exact": kept.is_exact,
    }

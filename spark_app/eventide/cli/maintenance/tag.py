"""`eventide tag`: names for the table as of a commit or a watermark, each kept by a savepoint."""

from typing import Any

import click

from eventide.cli.argument_types import INSTANT
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, table_argument
from eventide_core.errors import format_timestamp
from eventide_core.service.rollback.savepoint import Tag


@click.command()
@table_argument
@click.argument("name", required=False)
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
    name: str | None,
    instant: str | None,
    as_of_watermark: str | None,
    comment: str,
    delete: bool,
) -> None:
    """Name a state of a table and keep it.

    Without NAME, lists the tags of TABLE. With NAME, keeps the state under that name by a savepoint, which Hudi respects
    too: nothing of it is cleaned until the tag is deleted. `read --tag NAME` reads it.
    """
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

"""`eventide tag`: names for the table as of a commit or a watermark, each kept by a savepoint."""

from typing import Any

import click

from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options
from eventide.formatting import format_timestamp
from eventide_core.service.rollback.savepoint import Tag


@click.command()
@click.argument("table")
@click.argument("name", required=False)
@click.option("--instant", metavar="INSTANT", help="The table as of this commit.  [default: the last one]")
@click.option("--as-of-watermark", metavar="T", help="The read-optimized table as of watermark T.")
@click.option("--comment", default="", help="What people should know of it.")
@click.option("--delete", is_flag=True, help="Keep it no longer.")
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
    """Name a state of a table, and keep it.

    Without NAME lists the tags of TABLE. With it keeps the table under that name by a savepoint, which Hudi keeps as well:
    nothing of it is cleaned until the tag is deleted. `read --tag NAME` reads it.
    """
    if name is None and (instant or as_of_watermark or comment or delete):
        raise click.UsageError("these options are about one tag: give its NAME")
    if instant is not None and as_of_watermark is not None:
        raise click.UsageError("give either --instant or --as-of-watermark, not both")
    if delete and (instant or as_of_watermark or comment):
        raise click.UsageError("--delete goes with none of the other options")
    with settings.table(table) as opened:
        if name is None:
            found = opened.tags()
            shown = (
                (one.name, one.instant, format_timestamp(one.savepoint.saved_at_ms), one.savepoint.remarks)
                for one in found
            )
            settings.console.result(
                {"tags": [_json(one) for one in found]}, table_of("", ("tag", "instant", "kept", "comment"), shown)
            )
        elif delete:
            gone = opened.delete_tag(name)
            settings.console.result({"tag": name, "instant": gone}, f"tag {name} deleted, {gone} is kept no longer")
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
    }

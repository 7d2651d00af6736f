"""`eventide sync`: the table and its freshness in a catalog."""

from typing import Any

import click

from eventide.catalog import catalogs_of
from eventide.cli.argument_types import NAME
from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options, event_time_option, option_help
from eventide_core.config import SYNC_DATABASE, SYNC_TABLE, Options
from eventide_core.errors import format_timestamp
from eventide_core.service.maintenance.sync import SyncedTable, SyncResult
from eventide_core.table.timeline.contents.compaction_extra_metadata import CUT_KEY, WATERMARK_KEY


@click.command()
@click.argument("table")
@click.option(
    "--catalog",
    metavar="NAME",
    help="hive (a Hive Metastore), glue (AWS), datahub, or the name of a package's.  [default: by the options, else hive]",
)
@click.option("--database", type=NAME, metavar="NAME", help=option_help(SYNC_DATABASE))
@click.option("--name", type=NAME, metavar="NAME", help=option_help(SYNC_TABLE))
@event_time_option
@common_options
def sync(settings: Settings, table: str, catalog: str | None, database: str | None, name: str | None) -> None:
    """Publish a table and its freshness in a catalog.

    Creates or updates the tables of TABLE in the catalog as Hudi's hive sync does: NAME_ro, read-optimized, and NAME_rt,
    with partitions, schema, and freshness as properties. In DataHub it is one dataset. Writes only what has changed. Uses
    the metastore at hoodie.datasource.hive_sync.metastore.uris.
    """
    with settings.table(table) as opened:
        done = opened.sync(catalog, database=database, name=name)
    catalogs = catalogs_of(Options(dict(settings.options))) if catalog is None else (catalog,)
    settings.console.result(_json(",".join(catalogs), done), *_summary(done))


def _json(catalog: str, done: SyncResult) -> dict[str, Any]:
    return {
        "catalog": catalog,
        "database": done.database,
        "tables": [
            {
                "name": one.name,
                "created": one.is_created,
                "altered": one.is_altered,
                "partitions_added": one.partitions_added,
                "partitions_moved": one.partitions_moved,
                "partitions_dropped": one.partitions_dropped,
            }
            for one in done.tables
        ],
        "properties": dict(done.properties),
    }


def _summary(done: SyncResult) -> tuple[Any, ...]:
    rows = [
        (
            f"{done.database}.{one.name}",
            _outcome(one),
            one.partitions_added,
            one.partitions_moved,
            one.partitions_dropped,
        )
        for one in done.tables
    ]
    columns = ("table", "was", "partitions added", "moved", "dropped")
    return (
        table_of("", columns, rows),
        *(f"{key} = {value}{_moment(key, value)}" for key, value in done.properties.items()),
    )


def _moment(key: str, value: str) -> str:
    return f" ({format_timestamp(int(value))})" if key in (CUT_KEY, WATERMARK_KEY) else ""


def _outcome(one: SyncedTable) -> str:
    if one.is_created:
        return "created"
    return "changed" if one.is_changed else "up to date"

"""The group of all verbs."""

import click

from eventide.cli.archive import archive
from eventide.cli.clean import clean
from eventide.cli.compact import compact
from eventide.cli.demo import demo
from eventide.cli.errors import GroupWithExitCodes
from eventide.cli.freshness import freshness
from eventide.cli.ingest import ingest
from eventide.cli.plan import plan
from eventide.cli.read import read
from eventide.cli.report import report
from eventide.cli.rollback import rollback
from eventide.cli.savepoint import restore, savepoint
from eventide.cli.serve import serve
from eventide.cli.show import show
from eventide.cli.sync import sync
from eventide.cli.tag import tag
from eventide.cli.verify import verify


@click.group(cls=GroupWithExitCodes, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="eventide", message="%(package)s %(version)s")
def eventide() -> None:
    """Event-time based partial compaction for Apache Hudi merge-on-read tables.

    TABLE is a path or URI. T is ISO-8601 with a zone (2026-11-21T00:00Z) or epoch milliseconds; "before T" excludes T.
    INSTANT is a Hudi instant.

    Exit codes: 0 done or met, 1 a check failed, 2 wrong usage or bad input, 3 refused because it would not be safe or is
    not supported, 4 busy: try again, 5 storage or engine failed.
    """


VERBS = (
    demo,
    show,
    read,
    ingest,
    plan,
    compact,
    clean,
    rollback,
    savepoint,
    tag,
    restore,
    archive,
    freshness,
    report,
    sync,
    verify,
    serve,
)

for verb in VERBS:
    eventide.add_command(verb)

"""`eventide demo`: the main job on real data, from scratch."""

import tempfile
import textwrap
from pathlib import Path
from typing import Any

import click

from eventide.cli.argument_types import FilePath
from eventide.cli.settings import Settings, common_options
from eventide.demo import Step, check_needs, run_demo
from eventide.demo.story import DAYS_DEFAULT, DAYS_MAX
from eventide.options.new_tables import TABLE_VERSION
from eventide_core.config import Options

_CHECK_FAILED = 1


@click.command()
@click.option(
    "--dir",
    "directory",
    type=FilePath(),
    metavar="DIR",
    help="Where to write.  [default: a new directory]",
)
@click.option(
    "--days", type=click.IntRange(2, DAYS_MAX), default=DAYS_DEFAULT, show_default=True, help="How many days of 2013."
)
@common_options
@click.pass_context
def demo(ctx: click.Context, settings: Settings, directory: Path | None, days: int) -> None:
    """Run the main job on real data, from scratch.

    Writes flights of New York as they were reported, including late reports, and compacts by event time. Shows what each
    query sees and how fresh the table is, and draws a picture.
    """
    console = settings.console
    version = Options(settings.options).get(TABLE_VERSION)
    where = Path(tempfile.mkdtemp(prefix="eventide-demo-")) if directory is None else directory
    check_needs(where)

    def tell(step: Step) -> None:
        console.tell(f"{step.name:<10} {step.sentence}")
        if step.name == "plan":
            console.tell(textwrap.indent(str(step.facts["explanation"]), " " * 11))

    with settings.session(by_default=True) as spark, console.progress() as progress:
        done = run_demo(where, days=days, table_version=version, spark=spark, progress=progress, tell=tell)
    document: dict[str, Any] = {
        "steps": [{"name": step.name, "sentence": step.sentence, **step.facts} for step in done.steps],
        "watermark_ms": done.watermark_ms,
        "watermark": done.watermark_ms,
        "table": str(done.table),
        "report": str(done.report),
        "ok": done.is_right,
    }
    console.result(
        document,
        f"table    {done.table}",
        f"picture  {done.report}",
        f"checks   {'right' if done.is_right else 'WRONG'}",
    )
    if not done.is_right:
        ctx.exit(_CHECK_FAILED)

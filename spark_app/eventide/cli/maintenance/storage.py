"""`eventide storage`: what a store guarantees and costs."""

from dataclasses import asdict
from textwrap import fill
from typing import Any, Final

import click

from eventide.cli.console import table_of
from eventide.cli.settings import Settings, common_options
from eventide.storage_check import CLOCK_OFFSET_MAX_MS, StorageCheck, check_storage

FAILED = 1

_WIDTH: Final = 80
_ROOM: Final = 38
"""The columns of a sentence beside the name and the status of its check."""


@click.group()
def storage() -> None:
    """Check what a store guarantees and costs."""


@storage.command()
@click.argument("uri")
@common_options
@click.pass_context
def check(ctx: click.Context, settings: Settings, uri: str) -> None:
    """Run the core of the storage contract against URI.

    Works in a new directory .eventide_storage_check below URI, which it removes, and touches no other file. Shows which
    guarantees the store keeps, what it supports, the requests and the time of each operation, and its clock. Run it first on
    a store that is new to you. Exits with 1 if a guarantee is broken.
    """
    with settings.console.progress() as progress:
        outcome = check_storage(uri, settings.options, progress)
    checks = [(one.name, one.status, _wrapped(one.broken or one.text, _ROOM)) for one in outcome.checks]
    costs = [(one.operation, one.milliseconds, one.requests) for one in outcome.costs]
    settings.console.result(
        _json(outcome),
        table_of("", ("check", "status", "what it says"), checks),
        table_of("", ("operation", "ms", "requests"), costs),
        f"supports {', '.join(name.replace('_', ' ') for name in outcome.capabilities) or 'nothing beyond reads'}",
        _wrapped(f"modification times in steps of {outcome.modified_step_ms:,} ms, {_clock(outcome)}", _WIDTH),
    )
    if not outcome.ok:
        ctx.exit(FAILED)


def _json(outcome: StorageCheck) -> dict[str, Any]:
    return {
        "ok": outcome.ok,
        "uri": outcome.uri,
        "checks": [
            {"name": one.name, "status": one.status, "guarantee": one.text, "broken": one.broken}
            for one in outcome.checks
        ],
        "capabilities": list(outcome.capabilities),
        "modified_step_ms": outcome.modified_step_ms,
        "clock_offset_ms": outcome.clock_offset_ms,
        "operations": [asdict(one) for one in outcome.costs],
    }


def _wrapped(sentence: str, width: int) -> str:
    """In a pipe, too, where tables have no width. A path that is longer than a line stays whole."""
    return fill(sentence, width, break_long_words=False, break_on_hyphens=False)


def _clock(outcome: StorageCheck) -> str:
    if outcome.clock_offset_ms is None:
        return "which aren't a clock's"
    way = "ahead of" if outcome.clock_offset_ms > 0 else "behind"
    text = f"the store's clock is {abs(outcome.clock_offset_ms):,} ms {way} this machine's"
    far = abs(outcome.clock_offset_ms) > CLOCK_OFFSET_MAX_MS
    return text + ("; set the clocks by NTP, because locks and leases expire by them" if far else "")

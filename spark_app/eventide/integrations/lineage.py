"""Runs compactions, and reports them as OpenLineage events if the options ask for it.

START goes out before a compaction, and COMPLETE, FAIL or ABORT after it: ABORT if Ctrl-C ends the attempt, or if another
process runs the compaction. A compaction that a dead run left and this run completed has COMPLETE only. An event that can't
be sent is logged, and nothing else fails.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from eventide.bootstrap import Application
from eventide.formatting import sanitize
from eventide.options.lineage import OPENLINEAGE_NAMESPACE
from eventide_adapters.extras import install_command
from eventide_core.errors import BusyError
from eventide_core.ports import NoProgress, Progress

if TYPE_CHECKING:
    from eventide.integrations.openlineage_events import CompactionEvents
    from eventide_core.service.compaction.result import CompactionResult, Ended
    from eventide_core.service.compaction.scheduling.draft_plan import PutPlan

_LOG = logging.getLogger(__name__)

PAUSE_SECONDS = 60
"""After an event that could not be sent: the client tries each one for ten seconds, and a fleet would miss its targets."""


def run_compaction(
    application: Application,
    instant: str,
    progress: Progress,
    *,
    may_take_over: bool = False,
    put: "PutPlan | None" = None,
) -> "CompactionResult":
    """Runs the compaction that is scheduled at the instant, as `CompactionRunner.execute` does."""
    events = _events(application)
    run = partial(application.runner.execute, instant, progress, may_take_over=may_take_over, put=put)
    if events is None:
        return run()
    _send(partial(events.start, instant))
    try:
        result = run()
    except (BusyError, KeyboardInterrupt) as error:
        _send(partial(events.abort, instant, error))
        raise
    except Exception as error:
        _send(partial(events.fail, instant, error))
        raise
    _send(lambda: events.complete(_with_sources(application, result)))
    return result


def report_resumed(application: Application, ended: "Ended") -> "Ended":
    """Reports the compactions that dead runs left and this run completed. Returns `ended`."""
    for instant in ended.resumed:
        _report_completed(application, instant)
    return ended


def _report_completed(application: Application, instant: str) -> None:
    events = _events(application)
    if events is not None:
        # Of a completed compaction, this only reads the result.
        _send(lambda: events.complete(_with_sources(application, application.runner.execute(instant, NoProgress()))))


def _with_sources(application: Application, result: "CompactionResult") -> "CompactionResult":
    """The result with a freshness that is no later than the sources of the table have come."""
    return replace(result, freshness=application.arrival.freshness(application.state(), result.freshness))


def _events(application: Application) -> "CompactionEvents | None":
    """The events of one attempt at a compaction; None if none are wanted."""
    namespace = application.options.get(OPENLINEAGE_NAMESPACE)
    if namespace is None:
        return None
    try:
        from eventide.integrations.openlineage_events import CompactionEvents

        return CompactionEvents(namespace, application.storage.root, application.clock)
    except Exception as error:  # the library is missing, or its own configuration is wrong
        _LOG.warning(
            "no OpenLineage events are sent: %s; `%s` has the client", sanitize(error), install_command("openlineage")
        )
        return None


def _send(send: Callable[[], None]) -> None:
    if time.monotonic() < _pause.until:
        return
    try:
        send()
    except Exception as error:  # any error of the client: the compaction is what counts
        _pause.until = time.monotonic() + PAUSE_SECONDS
        _LOG.warning("an OpenLineage event was not sent, nor is any in the next minute: %s", sanitize(error))


@dataclass(slots=True)
class _Pause:
    """No event is sent before this time of the monotonic clock."""

    until: float = 0.0


_pause = _Pause()

"""Measures a table, and sends the metrics to the sink in the options."""

import logging
from functools import cache, partial

from eventide.bootstrap import Application
from eventide.formatting import sanitize
from eventide.results.show import describe
from eventide_core.action.compaction.backlog import backlog
from eventide_core.ports import MetricsSink, Unreported
from eventide_core.service.common.facts.compaction_history import compaction_history, kept_bytes
from eventide_core.service.common.facts.moments import epoch_ms_of
from eventide_core.service.query.metrics import table_metrics

_LOG = logging.getLogger(__name__)


def publish_metrics(application: Application) -> None:
    """Sends the table's current metrics; does nothing if metrics are off.

    Failures are logged and don't fail the action that was measured. If metrics are on but nothing is reported, logs the
    reason once per process.
    """
    match application.metrics:
        case None:
            pass
        case Unreported(why):
            _warn_once(why)
        case sink:
            try:
                _measure(application, sink)
            except Exception as error:  # any error, of a library or of eventide: the commit is complete
                _LOG.warning("no metrics were written: %s", sanitize(error))


def _measure(application: Application, sink: MetricsSink) -> None:
    table = describe(application)
    state = table.state
    history = compaction_history(state, application.storage, application.clock)
    own = None if table.problems else application.freshness.now(state)
    fresh = None if own is None else application.arrival.freshness(state, own)
    now_ms = application.clock.now_ms()
    logs = backlog(table.file_slices, table.facts)
    kept = kept_bytes(state, history)
    moment_of = partial(epoch_ms_of, state.config, state.timeline, clock=application.clock)
    measured = table_metrics(fresh, logs, kept, history, table.metadata_table, now_ms, moment_of=moment_of)
    sink.write(state.config.name, now_ms, measured)


@cache
def _warn_once(why: str) -> None:
    _LOG.warning("metrics are on, but sent nowhere: %s", why)

"""Measures a table and tells the sink that the options name."""

import logging

from eventide.bootstrap import Application
from eventide.show import describe
from eventide_core.action.backlog import backlog
from eventide_core.errors import EventideError
from eventide_core.service.compaction_history import compaction_history, pinned_bytes
from eventide_core.service.metrics import table_metrics

_LOG = logging.getLogger(__name__)


def publish_metrics(application: Application) -> None:
    """The table's metrics as they are now; nothing where they are off.

    What fails here is logged and fails nothing else: what was measured has happened.
    """
    if application.metrics is None:
        return
    try:
        table = describe(application)
        state = table.state
        history = compaction_history(state, application.storage, application.clock)
        fresh = None if table.problems else application.freshness.now(state)
        now_ms = application.clock.now_ms()
        logs = backlog(table.file_slices, table.facts)
        metrics = table_metrics(fresh, logs, pinned_bytes(state, history), history, now_ms)
        application.metrics.write(state.config.name, now_ms, metrics)
    except EventideError as error:
        _LOG.warning("no metrics were written: %s", error)

"""A sync on request, and the one that follows a compaction automatically."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from eventide.bootstrap import Application
from eventide.catalog import tool_of
from eventide_core.action.sync.options import is_sync_enabled
from eventide_core.config import DATAHUB_DATABASE, DATAHUB_TABLE, SYNC_DATABASE, SYNC_TABLE, SYNC_TOOLS
from eventide_core.errors import EventideError
from eventide_core.service.compaction.result import CompactionResult

_LOG = logging.getLogger(__name__)


def sync_options(
    options: Mapping[str, str], catalog: str | None, database: str | None, name: str | None
) -> dict[str, str]:
    """The options, overridden by the other arguments. Raises ConfigError for an unknown catalog."""
    tool = None if catalog is None else tool_of(catalog)
    stated: dict[str, str | None] = {
        SYNC_TOOLS: tool,
        SYNC_DATABASE: database,
        DATAHUB_DATABASE: database,
        SYNC_TABLE: name,
        DATAHUB_TABLE: name,
    }
    return {**options, **{key: text for key, text in stated.items() if text is not None}}


def update_catalog(application: Application, result: CompactionResult) -> CompactionResult:
    """Syncs the catalog after a compaction if sync is on. The commit stays valid even if the sync fails."""
    try:
        if is_sync_enabled(application.options):
            application.sync.sync()
    except EventideError as error:
        _LOG.warning("the compaction at %s has completed, but the catalog was not updated: %s", result.instant, error)
        return replace(result, sync_error=error)
    return result

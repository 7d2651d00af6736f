"""All checks, in report order: those that others depend on come first."""

from eventide_core.action.verification.compactions import COMPACTIONS, FRESHNESS
from eventide_core.action.verification.content import BASE_FILES, LEAVINGS, LOG_BLOCKS, METADATA_TABLE
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.files import COMMITTED_FILES, FILE_SLICES, ORPHANS, SAVEPOINTS
from eventide_core.action.verification.links import COPIED_BYTES, COPIES, LEFT_OVERS, LINKS
from eventide_core.action.verification.records import (
    CHECKSUMS,
    COMPACTED_ROWS,
    EVENT_TIMES,
    INDEXES,
    READ_OPTIMIZED,
    READABLE,
    RECORD_COUNTS,
    VERSIONS,
)
from eventide_core.action.verification.result import Check, Verification, result_of
from eventide_core.action.verification.settings import RECORD_KEYS, SETTINGS
from eventide_core.action.verification.timeline import PENDING_PLANS, TIMELINE

CHECKS: tuple[Check, ...] = (
    SETTINGS,
    TIMELINE,
    PENDING_PLANS,
    FILE_SLICES,
    COMMITTED_FILES,
    SAVEPOINTS,
    ORPHANS,
    LINKS,
    COPIES,
    LEFT_OVERS,
    COMPACTIONS,
    FRESHNESS,
    LOG_BLOCKS,
    BASE_FILES,
    METADATA_TABLE,
    LEAVINGS,
    COPIED_BYTES,
    READABLE,
    CHECKSUMS,
    RECORD_KEYS,
    RECORD_COUNTS,
    VERSIONS,
    INDEXES,
    READ_OPTIMIZED,
    EVENT_TIMES,
    COMPACTED_ROWS,
)


def verify(facts: TableFacts) -> Verification:
    """The result of each check on these facts."""
    return Verification(tuple(result_of(check, facts) for check in CHECKS), is_deep=facts.records is not None)

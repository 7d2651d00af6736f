"""All checks, in report order: those that others depend on come first."""

from eventide_core.action.verification import compactions, content, files, links, records, settings, timeline
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Check, Verification, result_of

CHECKS: tuple[Check, ...] = (
    settings.check_settings,
    timeline.check_timeline,
    timeline.check_pending_plans,
    files.check_file_slices,
    files.check_committed_files,
    files.check_savepoints,
    files.check_orphans,
    links.check_links,
    links.check_copies,
    links.check_left_overs,
    compactions.check_compactions,
    compactions.check_freshness,
    content.check_log_blocks,
    content.check_base_files,
    content.check_metadata_table,
    content.check_markers_and_heartbeats,
    links.check_copied_bytes,
    records.check_readability,
    records.check_checksums,
    settings.check_record_keys,
    records.check_record_counts,
    records.check_versions,
    records.check_indexes,
    records.check_read_optimized,
    records.check_event_times,
    records.check_compacted_rows,
)


def verify(facts: TableFacts) -> Verification:
    """The result of each check on these facts."""
    return Verification(tuple(result_of(check, facts) for check in CHECKS), is_deep=facts.records is not None)

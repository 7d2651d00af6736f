"""Reads the active timeline of a table or of its metadata table, without the files that don't count."""

from collections.abc import Callable, Collection, Iterable

from eventide_core.access.timeline_files import TimelineFiles
from eventide_core.ports import ArchivedTimeline, Storage
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.contents.checksums import CHECKSUMS_KEY
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.outcome_file import OUTCOME_DIRECTORY, RecordedEnds, check_record
from eventide_core.table.timeline.strays import Evidence, timeline_of
from eventide_core.table.timeline.timeline import Timeline


def active_timeline(
    files: TimelineFiles,
    listed: Iterable[Instant],
    archive: Callable[[], ArchivedTimeline],
    decode: Callable[[bytes, str], CommitMetadata],
    *,
    are_plans_followed: bool = False,
) -> Timeline:
    """The timeline whose files are of these instants (table/timeline/strays.py; `are_plans_followed`: there).

    The archive and the records of undone instants are read only if these leave something in doubt. Raises
    CorruptTimelineError if the archived timeline can't be read then.
    """

    def boundary(active: Collection[str]) -> str | None:
        archived = (write.requested_time for write in archive().writes("", END_OF_TIME))
        return next((time for time in archived if time not in active), None)

    def is_of_another_engine(completed: Instant) -> bool:
        return CHECKSUMS_KEY not in decode(files.read(completed), files.path(completed)).extra_metadata

    evidence = Evidence(
        boundary,
        lambda time: archive().find(time) is not None,
        lambda: recorded_ends(files.storage).undone,
        is_of_another_engine,
        files.exists,
        are_plans_followed,
    )
    return timeline_of(listed, evidence)


def recorded_ends(storage: Storage) -> RecordedEnds:
    """Which instants have a record of their end. Raises UnsupportedTableError for a record of a later eventide."""
    files = [(entry.path, entry.size) for entry in storage.list(OUTCOME_DIRECTORY)]
    for path, size in files:
        check_record(path, size, storage.read)
    return RecordedEnds.of(files)

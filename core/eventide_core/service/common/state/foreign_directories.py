"""The directories below a table's root that have data files and are not the table's, such as a copy of a partition.

1. A directory that a commit of the active timeline names is the table's.
2. Where the metadata table has followed each completed action, no others are but those that it lists.
3. Otherwise, a directory is the table's unless it lies below a partition, where Hudi's readers look for none, and no
   archived commit of its files names it, either.
"""

from collections.abc import Iterable

from eventide_core.service.common.state.metadata_listing import metadata_listing
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.timeline import Timeline


def foreign_directories(
    files: TableFiles,
    config: TableConfig,
    timeline: Timeline,
    commits: Iterable[CommitMetadata],
    listing: Iterable[DataFile],
) -> frozenset[str]:
    """The directories of a listing that are not the table's.

    Reads the metadata table for one that no commit names, and the first time.
    """
    found = {file.partition for file in listing}
    named = {partition for commit in commits for partition in _named(commit)}
    doubtful = found - named
    if files.listed is None or not doubtful <= files.listed.keys():
        files.listed = metadata_listing(files, config, timeline)
    if files.listed is not None:
        return frozenset(doubtful - files.listed.keys())
    below = {directory for directory in doubtful if not found.isdisjoint(_above(directory))}
    written = {(f.partition, f.parsed.instant) for f in listing if f.partition in below and f.parsed is not None}
    archive = files.archive(config) if written else None
    for directory, instant in sorted(written):
        commit = archive.commit(instant) if archive is not None and timeline.is_archived(instant) else None
        if commit is not None and directory in _named(commit):
            below.discard(directory)
    return frozenset(below)


def own_files(listing: Iterable[DataFile], timeline: Timeline, foreign: frozenset[str]) -> tuple[DataFile, ...]:
    """The files outside foreign directories. What a pending action has written stays: its rollback looks for it."""

    def is_foreign(file: DataFile) -> bool:
        return file.partition in foreign and (file.parsed is None or timeline.is_completed(file.parsed.instant))

    return tuple(file for file in listing if not is_foreign(file)) if foreign else tuple(listing)


def _named(commit: CommitMetadata) -> set[str]:
    return {*commit.replaced_file_ids, *(stat.partition for stat in commit.stats)}


def _above(directory: str) -> Iterable[str]:
    while directory:
        directory = directory.rpartition("/")[0]
        yield directory

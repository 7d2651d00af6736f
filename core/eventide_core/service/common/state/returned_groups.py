"""File groups that an archived overwrite or clustering replaced, and whose files are there again, as from a backup.

Readers of the table's directories, stock Hudi's included, show their rows: only the archived timeline knows better, and no
query reads it. Nor do readers of Hudi's metadata table see them. A group may be one only if an archived instant wrote its
newest file, and no commit on the timeline names it: only then is the archived timeline read.
"""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from eventide_core.cure import Cure
from eventide_core.errors import RefusedError
from eventide_core.ports import ArchivedTimeline
from eventide_core.service.common.state.table import TableState
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup
from eventide_core.table.timeline.instant import Action
from eventide_core.table.timeline.timeline import Timeline


def returned_files(
    archives: Iterable[ArchivedTimeline],
    timeline: Timeline,
    commits: Iterable[CommitMetadata],
    listing: Iterable[DataFile],
) -> dict[str, str]:
    """The files of the listing whose groups archived writes replaced, by path: the requested times of these writes."""
    groups = _archived_groups(timeline, commits, listing)
    newest = {group: max(files.values()) for group, files in groups.items()}
    returned: dict[str, str] = {}
    for archive in archives if newest else ():
        for write in archive.writes(min(newest.values()), END_OF_TIME):
            time = write.requested_time
            commit = archive.commit(time) if write.action is Action.REPLACE_COMMIT else None
            if commit is None:
                continue
            for partition, file_ids in commit.replaced_file_ids.items():
                for group in ((partition, file_id) for file_id in file_ids):
                    if newest.get(group, time) < time:
                        returned.update(dict.fromkeys(groups[group], time))
    return returned


def refuse_returned(state: TableState, groups: AbstractSet[FileGroup] | None = None) -> None:
    """Raises RefusedError if one of the groups, by default of all, is replaced: an action would make its rows permanent."""
    listing = [f for f in state.listing if groups is None or (f.parsed and (f.partition, f.parsed.file_id) in groups)]
    returned = returned_files((state.archive,), state.timeline, state.commits.values(), listing)
    for path, time in sorted(returned.items()):
        raise RefusedError(
            f"{path} is there again: the archived write at {time} replaced its file group; {Cure.repair()} moves the files "
            "of such groups to the backup"
        )


def _archived_groups(
    timeline: Timeline, commits: Iterable[CommitMetadata], listing: Iterable[DataFile]
) -> Mapping[FileGroup, Mapping[str, str]]:
    """The groups that only archived instants wrote to: the instants in the names of their files, by path."""
    groups: dict[FileGroup, dict[str, str]] = {}
    for file in listing:
        if file.parsed is not None:
            groups.setdefault((file.partition, file.parsed.file_id), {})[file.path] = file.parsed.instant
    named = {(stat.partition, stat.file_id) for commit in commits for stat in commit.stats}
    return {
        group: files
        for group, files in groups.items()
        if group not in named and timeline.is_archived(max(files.values()))
    }

"""The files that archived writes wrote: those that exist, and of the others those that may still be in use.

A clean removes the files of older slices, and of replaced file groups. So only files from the newest base file of a file
group on are kept of a long archive, which is read from its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from eventide_core.ports import ArchivedTimeline
from eventide_core.table.files.file_name import BaseFileName, parse_data_file
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.file_system_view import DataFile, FileGroup
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.layout import Layout
from eventide_core.table.timeline.timeline import Timeline


@dataclass(slots=True)
class ArchivedFiles:
    """`files` are the files in `present` that archived writes wrote, each with the write that left most bytes of it.

    `left_overs` are the left-overs of archived compactions. `timeline` shows what is archived.
    """

    timeline: Timeline
    present: frozenset[str]
    files: dict[str, tuple[Instant, WriteStat]] = field(default_factory=dict[str, tuple[Instant, WriteStat]])
    left_overs: set[str] = field(default_factory=set[str])
    _newest: dict[FileGroup, str] = field(default_factory=dict[FileGroup, str])
    _replaced: set[FileGroup] = field(default_factory=set[FileGroup])
    _absent: dict[str, tuple[Instant, WriteStat]] = field(default_factory=dict[str, tuple[Instant, WriteStat]])

    @classmethod
    def beside(
        cls, commits: Iterable[CommitMetadata], listing: Sequence[DataFile], timeline: Timeline
    ) -> "ArchivedFiles":
        """Knows the base files that are listed, and those that active commits name."""
        known = cls(timeline, frozenset(file.path for file in listing))
        for file in listing:
            if timeline.is_completed("" if file.parsed is None else file.parsed.instant):
                known._note_base(file.path)
        for commit in commits:
            for stat in commit.stats:
                known._note_base(stat.path)
            known._note_replaced(commit.replaced_file_ids)
        return known

    def read(self, archive: ArchivedTimeline) -> None:
        """Reads all of it. Raises CorruptTimelineError."""
        for write in archive.writes("", END_OF_TIME):
            time = write.requested_time
            commit = archive.commit(time) if self.timeline.is_archived(time) else None
            if commit is None:
                continue
            publication = CompactionExtraMetadata.of(time, commit)
            self.left_overs.update(() if publication is None else publication.origins)
            for stat in commit.stats:
                self._note_base(stat.path)
                self._note(write, stat)
            self._note_replaced(commit.replaced_file_ids)

    def absent(self, layout: Layout) -> dict[str, tuple[Instant, WriteStat]]:
        """The files that don't exist and are of slices that nothing shows to be old, by path."""
        timeline = self.timeline.with_archived(write for write, _ in self._absent.values())
        absent: dict[str, tuple[Instant, WriteStat]] = {}
        for path, (write, stat) in self._absent.items():
            newest = self._newest.get(group := _group(path), "")
            slice_instant = layout.slice_of(path, (newest,), timeline)
            if group not in self._replaced and slice_instant is not None and slice_instant >= newest:
                absent[path] = write, stat
        return absent

    def _note(self, write: Instant, stat: WriteStat) -> None:
        if stat.path in self.present:
            known = self.files.get(stat.path)
            if known is None or known[1].file_size_bytes < stat.file_size_bytes:
                self.files[stat.path] = write, stat
            return
        group = _group(stat.path)
        ended = write.completion_time or write.requested_time
        if group not in self._replaced and ended >= self._newest.get(group, ""):
            self._absent.setdefault(stat.path, (write, stat))

    def _note_base(self, path: str) -> None:
        base = BaseFileName.parse(path.rpartition("/")[2])
        if base is not None and base.instant > self._newest.get(group := _group(path), ""):
            self._newest[group] = base.instant

    def _note_replaced(self, replaced: Mapping[str, Iterable[str]]) -> None:
        self._replaced.update((partition, file_id) for partition, ids in replaced.items() for file_id in ids)


def _group(path: str) -> FileGroup:
    partition, _, name = path.rpartition("/")
    parsed = parse_data_file(name)
    return partition, "" if parsed is None else parsed.file_id

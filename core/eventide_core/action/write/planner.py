"""Assigns the records of a write to file groups and files.

1. A place that has a file group gets a log file on top of its latest slice.
2. A place that has none gets a base file of a new file group, as Hudi writes the first records of a group. Deletes
   alone create no group, because there is nothing to delete.
3. Keys that an index other than buckets does not know fill up small base files, and share as many new groups as keep
   base files near their size (`base_file_sizes`). Hudi finds such keys only in base files, so they go to no log file. A
   group that gets a log file of the same write, that a pending plan compacts, or whose base file is of a later write,
   isn't filled up. A bulk insert fills up none.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eventide_core.action.compaction.log_version import LogNames
from eventide_core.action.write.base_file_sizes import BaseFileSizes, Filling, fill
from eventide_core.action.write.index import Index, IndexType
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.bucket import BUCKET_DIGITS, new_file_id
from eventide_core.table.files.file_group_write import FileGroupWrite, FileKind, Placement
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.file_system_view import FileGroup
from eventide_core.table.timeline.layout import Layout

_SHARES = 1000  # the number of parts into which the records of a place are divided among its groups


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """The facts for planning a write. `slices` are the latest ones.

    `index` decides which slice a record's place is, `log_names` what the next log file of a slice is called, and `sizes` how
    new keys are distributed over base files; the bucket index needs no sizes.
    """

    instant: str
    layout: Layout
    index: Index
    slices: Iterable[FileSlice]
    log_names: LogNames
    sizes: BaseFileSizes


def plan_write(
    placements: Iterable[Placement], facts: WriteFacts, new_uuid: Callable[[], str]
) -> tuple[FileGroupWrite, ...]:
    """The file groups of the write, numbered from 0, by partition and place.

    Raises UnsupportedTableError for a table with two file groups in one bucket.
    """
    by_place = _slices_by_place(facts)
    groups: list[FileGroupWrite] = []
    placements = sorted(placements, key=lambda p: (p.partition, p.place))
    logged = {(p.partition, p.place) for p in placements}
    for placement in placements:
        file_slice = by_place.get((placement.partition, placement.place))
        if file_slice is not None:
            groups.append(_log(len(groups), placement, file_slice, facts))
        elif placement.upserts:
            slices = (s for s in by_place.values() if s.partition == placement.partition)
            fillable = (s for s in slices if s.file_group not in logged and _is_fillable(s, facts))
            groups += _bases(len(groups), placement, facts, fillable, new_uuid)
    return tuple(groups)


def _is_fillable(file_slice: FileSlice, facts: WriteFacts) -> bool:
    """Whether readers would take a base file of this write for the slice's next one.

    A write that began later can have completed by now. Its base file has the later instant, and stays the latest.
    """
    return file_slice.file_group not in facts.log_names.planned and file_slice.base_instant < facts.instant


def _slices_by_place(facts: WriteFacts) -> Mapping[tuple[str, str], FileSlice]:
    slices: dict[tuple[str, str], FileSlice] = {}
    by_bucket = facts.index.type is IndexType.BUCKET
    for file_slice in facts.slices:
        place = (file_slice.partition, file_slice.file_id[:BUCKET_DIGITS] if by_bucket else file_slice.file_id)
        if place in slices:
            raise UnsupportedTableError(
                f"{file_slice.partition or 'the table'}: {file_slice.file_id} and {slices[place].file_id} are both of "
                "bucket "
                + place[1]
                + "; eventide cannot determine which of them holds a key: repair the table with Hudi"
            )
        slices[place] = file_slice
    return slices


def _log(number: int, placement: Placement, file_slice: FileSlice, facts: WriteFacts) -> FileGroupWrite:
    place = facts.log_names.next_log(file_slice, facts.instant, facts.layout)
    base = file_slice.base_file
    return FileGroupWrite(
        number=number,
        partition=placement.partition,
        place=placement.place,
        share=1,
        file_id=file_slice.file_id,
        kind=FileKind.LOG,
        instant=facts.instant,
        slice_instant=place.slice_instant,
        first_log_version=place.version,
        base_file=str(base.name) if base is not None and base.name.instant == place.slice_instant else None,
        earlier_logs=place.earlier,
    )


def _bases(
    number: int,
    placement: Placement,
    facts: WriteFacts,
    fillable: Iterable[FileSlice],
    new_uuid: Callable[[], str],
) -> list[FileGroupWrite]:
    is_bucket = facts.index.type is IndexType.BUCKET
    fillings = [Filling(None, placement.upserts)] if is_bucket else fill(placement.upserts, fillable, facts.sizes)
    groups: list[FileGroupWrite] = []
    for filling in fillings:
        if filling.file_slice is not None:
            file_id = filling.file_slice.file_id
        elif is_bucket:
            file_id = new_file_id(int(placement.place), new_uuid())
        else:
            file_id = f"{new_uuid()}-0"
        groups.append(
            FileGroupWrite(
                number=number + len(groups),
                partition=placement.partition,
                place=placement.place,
                share=1 if len(fillings) == 1 else max(1, filling.rows * _SHARES // placement.upserts),
                file_id=file_id,
                kind=FileKind.BASE,
                instant=facts.instant,
                slice_instant=facts.instant,
                filled_up=None if filling.file_slice is None else filling.file_slice.base_file,
            )
        )
    return groups


def groups_of(groups: Iterable[FileGroupWrite]) -> frozenset[FileGroup]:
    """The file groups that a write changes."""
    return frozenset((group.partition, group.file_id) for group in groups)

"""Which file group gets which records of a write, and as which file.

1. A place that has a file group: a log on top of its latest slice.
2. A place that has none: a base file, of a new file group (Hudi writes the first records of a group so). Deletes alone
   make no group: there is nothing to delete.
3. Keys that an index other than buckets does not know share as many new groups as keep base files near their size.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from eventide_core.action.index import Index, IndexType
from eventide_core.action.log_version import LogNames
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.bucket import BUCKET_DIGITS, new_file_id
from eventide_core.table.file_group_write import FileGroupWrite, FileKind, Placement
from eventide_core.table.file_slice import FileSlice
from eventide_core.table.file_system_view import FileGroup


@dataclass(frozen=True, slots=True)
class WriteFacts:
    """What a write is planned by. `slices` are the latest ones. `rows_per_file`: of a new base file."""

    instant: str
    table_version: int
    index: Index
    slices: Iterable[FileSlice]
    log_names: LogNames
    rows_per_file: int


def plan_write(
    placements: Iterable[Placement], facts: WriteFacts, new_uuid: Callable[[], str]
) -> tuple[FileGroupWrite, ...]:
    """The file groups of the write, numbered from 0, by partition and place.

    Raises UnsupportedTableError for a table with two file groups in one bucket.
    """
    by_place = _slices_by_place(facts)
    groups: list[FileGroupWrite] = []
    for placement in sorted(placements, key=lambda p: (p.partition, p.place)):
        found = by_place.get((placement.partition, placement.place))
        if found is not None:
            groups.append(_log(len(groups), placement, found, facts))
        elif placement.upserts:
            groups += _bases(len(groups), placement, facts, new_uuid)
    return tuple(groups)


def _slices_by_place(facts: WriteFacts) -> Mapping[tuple[str, str], FileSlice]:
    found: dict[tuple[str, str], FileSlice] = {}
    by_bucket = facts.index.type is IndexType.BUCKET
    for file_slice in facts.slices:
        place = (file_slice.partition, file_slice.file_id[:BUCKET_DIGITS] if by_bucket else file_slice.file_id)
        if place in found:
            raise UnsupportedTableError(
                f"{file_slice.partition or 'the table'}: {file_slice.file_id} and {found[place].file_id} are both of "
                "bucket " + place[1] + "; which of them holds a key cannot be told: repair the table with Hudi"
            )
        found[place] = file_slice
    return found


def _log(number: int, placement: Placement, found: FileSlice, facts: WriteFacts) -> FileGroupWrite:
    place = facts.log_names.next_log(found, facts.instant, facts.table_version)
    base = found.base_file
    return FileGroupWrite(
        number=number,
        partition=placement.partition,
        place=placement.place,
        share=1,
        file_id=found.file_id,
        kind=FileKind.LOG,
        instant=facts.instant,
        slice_instant=place.slice_instant,
        first_log_version=place.version,
        base_file=str(base.name) if base is not None and base.name.instant == place.slice_instant else None,
        earlier_logs=place.earlier,
    )


def _bases(number: int, placement: Placement, facts: WriteFacts, new_uuid: Callable[[], str]) -> list[FileGroupWrite]:
    is_bucket = facts.index.type is IndexType.BUCKET
    count = 1 if is_bucket else -(-placement.upserts // facts.rows_per_file)
    return [
        FileGroupWrite(
            number=number + ordinal,
            partition=placement.partition,
            place=placement.place,
            share=1,
            file_id=new_file_id(int(placement.place), new_uuid()) if is_bucket else f"{new_uuid()}-0",
            kind=FileKind.BASE,
            instant=facts.instant,
            slice_instant=facts.instant,
        )
        for ordinal in range(count)
    ]


def groups_of(groups: Iterable[FileGroupWrite]) -> frozenset[FileGroup]:
    """The file groups that a write changes."""
    return frozenset((group.partition, group.file_id) for group in groups)

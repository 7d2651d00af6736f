"""Which file group gets which records, and under which names."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest

from eventide_core.action.compaction.log_version import LogNames
from eventide_core.action.write.base_file_sizes import BaseFileSizes
from eventide_core.action.write.index import Index, IndexType
from eventide_core.action.write.planner import WriteFacts, plan_write
from eventide_core.errors import UnsupportedTableError
from eventide_core.table.files.file_group_write import FileGroupWrite, FileKind, Placement
from eventide_core.table.files.file_name import BaseFileName, LogFileName
from eventide_core.table.files.file_slice import BaseFile, FileSlice, LogFile
from eventide_core.table.timeline.file_system_view import DataFile
from eventide_core.table.timeline.layout import layout_of

BASE, WRITE, PLAN = "20261121000000000", "20261121000005000", "20261121000003000"
GROUP = "00000001-aaaa-4000-8000-000000000000-0"
SIZES = BaseFileSizes(bytes_max=1000, small_bytes=500, small_files_max=0, record_bytes=10)
BUCKETS = Index(IndexType.BUCKET, 2, ("id",))


def slice_with(*logs: str, file_id: str = GROUP) -> FileSlice:
    base = BaseFileName(file_id, "1-1-0", BASE)
    names = [LogFileName.parse(log) for log in logs]
    assert None not in names
    log_files = tuple(LogFile(name, f"p/{name}", 10) for name in names if name is not None)
    return FileSlice("p", file_id, BASE, BaseFile(base, f"p/{base}", 10), log_files)


def plan(
    placements: Sequence[Placement],
    *slices: FileSlice,
    version: int = 6,
    index: Index = BUCKETS,
    more: Sequence[str] = (),
    planned: str | None = None,
    sizes: BaseFileSizes = SIZES,
) -> tuple[FileGroupWrite, ...]:
    listing = [DataFile("p", log.path, 10) for s in slices for log in s.log_files]
    listing += [DataFile("p", f"p/{name}", 10) for name in more]
    names = LogNames.of(listing, {} if planned is None else {s.file_group: planned for s in slices})
    uuids = (f"bbbbbbbb-bbbb-4000-8000-{number:012d}" for number in itertools.count())
    facts = WriteFacts(WRITE, layout_of(version), index, slices, names, sizes)
    return plan_write(placements, facts, lambda: next(uuids))


@pytest.mark.parametrize(("planned", "followed"), [(PLAN, PLAN), ("20261120000000000", BASE)])
def test_a_version_6_log_goes_to_a_planned_slice_unless_a_later_one_exists(planned: str, followed: str) -> None:
    """A paused process may put its plan after others have compacted."""
    (log,) = plan([Placement("p", "00000001", 1, 0)], slice_with(), version=6, planned=planned)
    assert log.log_name(0) == f".{GROUP}_{followed}.log.1_0-5000-0"


def test_a_bucket_without_a_file_group_gets_a_base_file_and_one_with_it_a_log() -> None:
    base, log = plan([Placement("p", "00000001", 3, 1), Placement("p", "00000000", 2, 0)], slice_with())
    assert (base.kind, base.base_name) == (
        FileKind.BASE,
        f"00000000-bbbb-4000-8000-000000000000-0_0-{WRITE[8:].lstrip('0')}-0_{WRITE}.parquet",
    )
    assert (log.kind, log.log_name(0)) == (FileKind.LOG, f".{GROUP}_{BASE}.log.1_1-5000-0")


def test_deletes_alone_make_no_file_group() -> None:
    assert plan([Placement("p", "00000000", 0, 4)], slice_with()) == ()


def test_in_version_6_the_next_version_counts_logs_that_nobody_committed() -> None:
    committed, pending = f".{GROUP}_{BASE}.log.1_0-1-0", f".{GROUP}_{BASE}.log.2_7-7-7"
    (log,) = plan([Placement("p", "00000001", 1, 0)], slice_with(committed), more=[pending])
    assert log.log_name(0) == f".{GROUP}_{BASE}.log.3_0-5000-0"
    assert log.log_name(1) == f".{GROUP}_{BASE}.log.4_0-5000-0"
    assert log.earlier_logs == (committed, pending)


@pytest.mark.parametrize("left_overs", [(), (f".{GROUP}_{PLAN}.log.0_00001-0-1",)], ids=["not yet made", "made"])
def test_on_version_6_a_log_goes_behind_the_left_overs_of_a_pending_compaction(
    left_overs: tuple[str, ...],
) -> None:
    old = slice_with(f".{GROUP}_{BASE}.log.1_0-1-0")
    (log,) = plan([Placement("p", "00000001", 1, 0)], old, more=left_overs, planned=PLAN)
    assert log.log_name(0) == f".{GROUP}_{PLAN}.log.1_0-5000-0"
    assert log.base_file is None, "the base file of that slice is still to be made"


def test_from_version_8_on_a_log_file_has_its_writes_instant_whatever_is_planned() -> None:
    old = slice_with(f".{GROUP}_{WRITE[:-1]}1.log.1_0-1-0")
    (log,) = plan([Placement("p", "00000001", 1, 0)], old, version=9, planned=PLAN)
    assert log.log_name(0) == f".{GROUP}_{WRITE}.log.1_0-5000-0"


def test_new_keys_of_a_joined_table_share_file_groups_of_the_wished_size() -> None:
    simple = Index(IndexType.SIMPLE)
    made = plan([Placement("p", "", 250, 3), Placement("p", GROUP, 5, 0)], slice_with(), version=9, index=simple)
    assert [group.kind for group in made] == [FileKind.BASE] * 3 + [FileKind.LOG]
    assert len({group.file_id for group in made}) == 4


def test_two_file_groups_in_one_bucket_are_refused() -> None:
    twin = slice_with(file_id=GROUP.replace("aaaa", "cccc"))
    with pytest.raises(UnsupportedTableError, match="both of bucket 00000001"):
        plan([Placement("p", "00000001", 1, 0)], slice_with(), twin)


def small(number: int, size: int, *logs: str) -> FileSlice:
    file_id = f"{number:08x}-aaaa-4000-8000-000000000000-0"
    file_slice = slice_with(*(log.format(file_id=file_id) for log in logs), file_id=file_id)
    assert file_slice.base_file is not None
    return replace(file_slice, base_file=replace(file_slice.base_file, size=size))


def filled(
    upserts: int, *slices: FileSlice, planned: str | None = None, also: str = "", **sizes: int
) -> dict[str, int]:
    """The share of each group, by the first digits of its file id where it is an old one."""
    placements = [Placement("p", "", upserts, 0), *([Placement("p", also, 1, 0)] if also else [])]
    groups = plan(
        placements,
        *slices,
        version=9,
        index=Index(IndexType.SIMPLE),
        planned=planned,
        sizes=replace(SIZES, **{"small_files_max": 2, **sizes}),
    )
    counts: dict[str, int] = {}
    for group in groups:
        if group.kind is FileKind.BASE:
            old = group.filled_up
            assert (old is not None) == any(s.base_file == old for s in slices)
            assert old is None or old.name.file_id == group.file_id
            name = "new" if old is None else str(int(group.file_id[:8], 16))
            counts[name] = counts.get(name, 0) + group.share
    return counts


def test_new_keys_fill_up_the_smallest_base_files_before_they_make_new_ones() -> None:
    slices = [small(1, 400), small(2, 100), small(3, 499), small(4, 500)]
    assert filled(50, *slices) == {"2": 1}
    assert filled(100, *slices) == {"2": 900, "1": 100}
    assert filled(300, *slices) == {"2": 300, "1": 200, "new": 500}
    assert filled(50, *slices, small_files_max=0) == {"new": 1}


def test_a_base_file_with_logs_or_with_a_log_in_the_same_write_is_not_filled_up() -> None:
    assert filled(5, small(1, 10, f".{{file_id}}_{BASE}.log.1_0-1-0")) == {"new": 1}
    assert filled(5, small(1, 10), also=small(1, 10).file_id) == {"new": 1}


def test_a_base_file_of_a_later_instant_is_not_filled_up() -> None:
    assert filled(5, replace(small(1, 10), base_instant=f"{WRITE}1")) == {"new": 1}
    assert filled(5, small(1, 10), small(2, 20), also=small(1, 10).file_id) == {"2": 1}
    assert filled(5, small(1, 10), planned=PLAN) == {"new": 1}

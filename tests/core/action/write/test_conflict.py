"""Which writes exclude each other."""

from contextlib import nullcontext

import pytest

from eventide_core.action.write.conflict import WrittenGroups, check_batch, check_plan, check_write
from eventide_core.action.write.index import Index, IndexType
from eventide_core.errors import WriteConflictError
from eventide_core.table.settings.stream_batch import StreamBatch
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat

BEFORE, OURS, AFTER = "20261121000000000", "20261121000005000", "20261121000009000"
GROUP, TWIN = "00000001-aaaa-4000-8000-000000000000-0", "00000001-bbbb-4000-8000-000000000000-0"
OTHER = "00000002-aaaa-4000-8000-000000000000-0"


def written(index: IndexType = IndexType.SIMPLE, new_keys_in: str | None = None) -> WrittenGroups:
    looked_for = frozenset() if new_keys_in is None else frozenset({new_keys_in})
    return WrittenGroups(OURS, Index(index), frozenset({("p", GROUP)}), looked_for)


def commit(file_id: str, partition: str = "p", *, log: bool = True, compacted: bool = False) -> CommitMetadata:
    stat = WriteStat(file_id, f"{partition}/f", partition, log_version=1 if log else None)
    return CommitMetadata({partition: (stat,)}, {}, "UPSERT", is_compacted=compacted)


def test_writes_of_other_file_groups_and_partitions_go_together() -> None:
    check_write(written(), AFTER, commit(OTHER))
    check_write(written(), AFTER, commit(GROUP, "q"))
    check_write(written(IndexType.BUCKET), AFTER, commit(OTHER))


def test_two_writes_of_one_file_group_exclude_each_other_whichever_began_first() -> None:
    for instant in (BEFORE, AFTER):
        with pytest.raises(WriteConflictError, match=instant):
            check_write(written(), instant, commit(GROUP))


def test_two_new_file_groups_of_one_bucket_exclude_each_other() -> None:
    check_write(written(IndexType.SIMPLE), AFTER, commit(TWIN))
    with pytest.raises(WriteConflictError):
        check_write(written(IndexType.BUCKET), AFTER, commit(TWIN, log=False))


def test_two_writes_that_looked_for_new_keys_of_one_partition_exclude_each_other() -> None:
    check_write(written(new_keys_in="q"), AFTER, commit(OTHER, log=False))
    check_write(written(), AFTER, commit(OTHER, log=False))
    with pytest.raises(WriteConflictError, match="new keys of p"):
        check_write(written(new_keys_in="p"), AFTER, commit(OTHER, log=False))


def test_a_compaction_excludes_a_write_that_had_not_seen_its_plan() -> None:
    check_write(written(new_keys_in="p"), BEFORE, commit(GROUP, log=False, compacted=True))
    check_plan(written(), BEFORE, [("p", GROUP)])
    check_plan(written(), AFTER, [("p", OTHER)])
    with pytest.raises(WriteConflictError):
        check_write(written(), AFTER, commit(GROUP, log=False, compacted=True))
    with pytest.raises(WriteConflictError):
        check_plan(written(), AFTER, [("p", GROUP)])


def test_a_file_group_that_was_replaced_excludes_a_write_to_it() -> None:
    replaced = CommitMetadata({}, {}, "CLUSTER", replaced_file_ids={"p": (GROUP,)})
    with pytest.raises(WriteConflictError):
        check_write(written(), AFTER, replaced)


@pytest.mark.parametrize(
    ("sink", "number", "is_conflict"), [("s", 3, True), ("s", 4, True), ("s", 2, False), ("t", 3, False)]
)
def test_a_batch_that_has_been_written_or_overtaken_excludes_its_second_writing(
    sink: str, number: int, is_conflict: bool
) -> None:
    mine = CommitMetadata({}, StreamBatch("s", 3).extra_metadata, "UPSERT")
    others = [CommitMetadata({}, {}, "UPSERT"), CommitMetadata({}, StreamBatch(sink, number).extra_metadata, "UPSERT")]
    with pytest.raises(WriteConflictError, match="batch 3") if is_conflict else nullcontext():
        check_batch("i", mine, others)

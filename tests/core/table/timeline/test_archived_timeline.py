"""Names of the files of an archived timeline."""

from dataclasses import replace

import pytest

from eventide_core.table.timeline.archived_timeline import (
    HistoryFileName,
    MergeLimits,
    archive_log_number,
    files_to_merge,
    logs_to_merge,
    manifest_name,
    manifest_version,
    merged_file,
)


def _t(number: int) -> str:
    return f"202611210000000{number:02d}"


def test_the_name_of_a_history_file_states_which_instants_it_may_contain() -> None:
    file = HistoryFileName.parse(f"{_t(3)}_{_t(6)}_0.parquet")
    assert file is not None
    assert [file.may_hold(_t(n), _t(n)) for n in range(2, 8)] == [False, True, True, True, True, False]
    assert file.may_hold(_t(1), _t(9))
    assert file.may_hold("", "9")
    assert not file.may_hold(_t(7), _t(9))


def test_history_files_are_in_the_order_of_their_last_instants() -> None:
    merged, newest, oldest = (
        HistoryFileName.parse(f"{_t(a)}_{_t(b)}_{level}.parquet") for a, b, level in ((3, 6, 1), (7, 8, 0), (1, 2, 2))
    )
    assert merged is not None
    assert newest is not None
    assert oldest is not None
    assert sorted([merged, newest, oldest]) == [oldest, merged, newest]


@pytest.mark.parametrize(
    "name", [f"../{_t(1)}_{_t(2)}_0.parquet", f"{_t(1)}_{_t(2)}.parquet", f"{_t(1)}_{_t(2)}_0.orc", ""]
)
def test_no_other_name_is_a_history_file(name: str) -> None:
    assert HistoryFileName.parse(name) is None


def test_a_manifest_has_its_version_in_its_name() -> None:
    assert manifest_version(manifest_name(12)) == 12
    assert [manifest_version(name) for name in ("manifest_0", "manifest_01", "manifest_x", "_version_")] == [
        0,
        None,
        None,
        None,
    ]


def test_an_archive_log_has_its_number_in_its_name() -> None:
    assert archive_log_number(".commits_.archive.12_1-0-1") == 12
    assert [
        archive_log_number(n) for n in ("..commits_.archive.1_1-0-1.crc", "mergeArchivePlan", ".commits_.archive.")
    ] == [
        None,
        None,
        None,
    ]


LIMITS = MergeLimits(level_files=3, level_bytes_max=100, log_files=3, small_log_bytes_max=10)


def _files(*sizes: int, level: int = 0) -> list[tuple[HistoryFileName, int]]:
    """Files of one instant each, the newest first."""
    files = [(HistoryFileName(_t(n), _t(n), f"{n}", level), size) for n, size in enumerate(sizes)]
    return files[::-1]


def _merged(files: list[tuple[HistoryFileName, int]], level: int = 0) -> list[int]:
    return [int(file.name) for file in files_to_merge(files, level, LIMITS)]


def test_the_oldest_files_of_a_level_are_merged_as_soon_as_they_are_a_batch() -> None:
    assert _merged(_files(1, 1)) == []
    assert _merged(_files(1, 1, 1)) == [0, 1, 2]
    assert _merged(_files(1, 1, 1, 1)) == [0, 1, 2]
    assert _merged(_files(1, 1, 1), level=1) == []
    assert _merged([*_files(1, 1), *_files(1, 1, 1, level=1)], level=1) == [0, 1, 2]


def test_a_merge_ends_with_the_file_that_makes_it_large_and_leaves_out_a_large_one() -> None:
    assert _merged(_files(60, 60, 60)) == [0, 1]
    assert _merged(_files(101, 60, 30)) == [1, 2]
    assert _merged(_files(101, 101, 60)) == []
    assert _merged(_files(101, 101, 60, 1, 1, 1)) == [2, 3, 4]


def test_a_merged_file_covers_its_sources_one_level_up() -> None:
    sources = [HistoryFileName(_t(6), _t(1), "a", 1), HistoryFileName(_t(4), _t(2), "b", 1)]
    merged = merged_file(sources)
    assert merged.name == f"{_t(1)}_{_t(6)}_2.parquet"
    assert HistoryFileName.parse(merged.name) == merged


def test_on_version_6_the_newest_logs_up_to_a_large_one_are_merged() -> None:
    assert logs_to_merge([(1, 1), (2, 1)], LIMITS) == ()
    assert logs_to_merge([(3, 1), (1, 1), (2, 1)], LIMITS) == (1, 2, 3)
    assert logs_to_merge([(1, 1), (2, 11), (3, 1), (4, 10), (5, 1), (6, 1)], LIMITS) == (3, 4, 5, 6)
    assert logs_to_merge([(1, 1), (2, 1), (3, 11)], LIMITS) == ()
    assert logs_to_merge([(1, 1), (2, 1), (3, 1)], replace(LIMITS, log_files=None)) == ()

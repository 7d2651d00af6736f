"""Names of the files of an archived timeline."""

from __future__ import annotations

import pytest

from eventide_core.table.archived_timeline import HistoryFileName, archive_log_number, manifest_name, manifest_version


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

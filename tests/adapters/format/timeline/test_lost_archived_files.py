"""A file of the archived timeline that is lost is named; one that was merged is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from eventide_adapters.format.timeline.archived_log import LogArchivedTimeline
from eventide_adapters.format.timeline.archived_lsm import LsmArchivedTimeline
from eventide_adapters.storage.local import LocalStorage
from eventide_core.table.timeline.archived_timeline import archive_log_name
from support.pasts import archived


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [
        ([], []),
        ([1], []),
        ([1, 2, 3], []),
        ([1, 3], [2]),
        ([1, 2, 4, 6], [3, 5]),
        ([1, 12, 13], []),  # the files from 2 to 11 became one
    ],
)
def test_a_number_of_version_6_that_no_merge_explains_is_a_lost_file(
    numbers: Sequence[int], lost: Sequence[int], tmp_path: Path
) -> None:
    directory = tmp_path / "archived"
    directory.mkdir()
    for number in numbers:
        (directory / archive_log_name(number)).write_bytes(b"")
    archive = LogArchivedTimeline(LocalStorage(str(tmp_path)), "archived")
    assert [path.rpartition("/")[2] for path in archive.lost_files()] == [archive_log_name(number) for number in lost]
    (directory / "mergeArchivePlan").write_bytes(b"")
    assert not archive.lost_files(), "a merge is under way"


def test_a_file_that_the_manifest_names_and_that_is_missing_is_lost(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.mkdir()
    names = archived.write_tree(history, archived.instants(30, 1_700_000_000_000))
    archived.publish(history, names)
    archive = LsmArchivedTimeline(LocalStorage(str(tmp_path)), "history")
    assert not archive.lost_files()
    (history / names[0]).unlink()
    assert list(archive.lost_files()) == [f"history/{names[0]}"]

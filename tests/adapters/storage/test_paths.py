import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventide.testing.storage_contract.names import PARTITIONS, UNSAFE_PATHS
from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_core.errors import UnsafePathError

_PIECES = st.sampled_from(["a", "..", ".", "/", "//", "\\", "\0", "s3:", "file:", "~", " ", "%2e%2e", "=", "é"])


@given(st.lists(_PIECES, max_size=8).map("".join) | st.text(max_size=20))
@example("a/../../b")
def test_a_path_that_passes_stays_below_the_root_by_every_reading(path: str) -> None:
    try:
        checked_path(path)
    except UnsafePathError:
        return
    root = "/lake/table"
    for reading in (path, path.replace("\\", "/")):
        assert os.path.normpath(os.path.join(root, reading)) == f"{root}/{reading}"
        assert Path(root, reading).parts[:3] == ("/", "lake", "table")
    assert "\0" not in path


@pytest.mark.parametrize("path", ["", *UNSAFE_PATHS])
def test_an_unsafe_path_is_refused_with_its_reason(path: str) -> None:
    with pytest.raises(UnsafePathError, match="stays below") as refused:
        checked_path(path)
    assert repr(path) in str(refused.value)


@pytest.mark.parametrize(
    "path", ["ts=10:30/file", "10:30", "name=back\\slash", *PARTITIONS, ".hoodie/.temp", "~/file", "\udcff"]
)
def test_a_path_of_a_table_passes_unchanged(path: str) -> None:
    assert checked_path(path) == path


def test_the_root_is_a_directory_and_no_file() -> None:
    assert checked_directory("") == ""
    assert checked_directory("part=a") == "part=a"
    with pytest.raises(UnsafePathError):
        checked_directory("..")

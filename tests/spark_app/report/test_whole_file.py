"""Files that appear complete or not at all, and what stays of what was there."""

import os
import uuid
from pathlib import Path

import pytest

from eventide.report.whole_file import appearing_whole, check_file
from eventide_core.errors import ConfigError


def test_a_file_that_was_not_finished_leaves_the_old_one(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("old")
    with pytest.raises(ValueError, match="stop"), appearing_whole(tmp_path / "page"):
        raise ValueError("stop")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"page": "old"}


def test_a_link_stays_and_leads_to_the_new_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("page")
    with appearing_whole(tmp_path / "link") as file:
        file.write(b"new")
    assert os.readlink(tmp_path / "link") == "page"
    assert (tmp_path / "page").read_text() == "new"


def test_a_part_that_a_killed_process_of_this_number_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f".page.{os.getpid()}.part").write_text("half")
    with appearing_whole(tmp_path / "page") as file:
        file.write(b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "output").symlink_to("/dev/stdout")
    places = (
        tmp_path / "pipe",
        tmp_path / "output",
        *map(Path, ("/dev/null", "/dev/stdout", "/dev/fd/9", "/proc/new")),
    )
    for place in places:
        with pytest.raises(ConfigError, match="is a device or a pipe: name a file"), appearing_whole(place):
            pass
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(ConfigError, match="is a directory"), appearing_whole(tmp_path):
        pass


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="a file system in memory that Linux has")
def test_a_file_in_memory_is_a_file() -> None:
    path = Path("/dev/shm") / f"eventide-{uuid.uuid4().hex}"
    try:
        for content in (b"new", b"newer"):
            check_file(path)
            with appearing_whole(path) as file:
                file.write(content)
        assert path.read_bytes() == b"newer"
    finally:
        path.unlink(missing_ok=True)


def test_a_check_raises_as_the_write_would_and_leaves_nothing(tmp_path: Path) -> None:
    check_file(tmp_path / "page")
    with pytest.raises(ConfigError, match="cannot be written: No such file or directory"):
        check_file(tmp_path / "missing" / "page")
    (tmp_path / ".hoodie").mkdir()
    with pytest.raises(ConfigError, match="would be in the Hudi table"):
        check_file(tmp_path / "page")
    assert [path.name for path in tmp_path.iterdir()] == [".hoodie"]

"""The whole life of a table on each storage: the same rows, plans and files everywhere, except for links."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventide_adapters.storage.hdfs.webhdfs import RemoteError
from eventide_core.table.timeline.contents.plans import LinkMode
from support.pasts.life import Chapter, TableLife
from support.servers.hdfs.mini_cluster import HdfsServer
from support.tables.backends import Backend, backend


@pytest.fixture(scope="module")
def in_memory() -> list[Chapter]:
    """The life in memory, where each snapshot is what the writes before it say."""
    life = TableLife(Backend("memory://a life", {}, LinkMode.COPY))
    chapters: list[Chapter] = []
    for chapter in life.chapters():
        assert not chapter.queries or chapter.rows == life.expected, chapter.deed
        chapters.append(chapter)
        check_sound(life.there, chapter)
    return chapters


def chapters_of_life(there: Backend, in_memory: list[Chapter]) -> Iterator[Chapter]:
    """The chapters there, each found to be as in memory."""
    for chapter, known in zip(TableLife(there).chapters(), in_memory, strict=True):
        assert chapter.as_with_copies() == known.as_with_copies()
        if chapter.links or known is in_memory[-1]:
            check_sound(there, chapter)
        yield chapter


def check_sound(there: Backend, chapter: Chapter) -> None:
    verification = there.table().verify(deep=True)
    assert verification.ok, f"{chapter.deed}: {verification.failed}"


@pytest.mark.parametrize(
    "name",
    [
        *("local", "hdfs"),
        *(pytest.param(name, marks=pytest.mark.broad) for name in ("moto", "fake_gcs", "azurite")),
        pytest.param("seaweedfs", marks=pytest.mark.proof),
    ],
)
def test_a_table_lives_there_as_in_memory_with_copies_for_left_overs(
    name: str, in_memory: list[Chapter], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    for chapter in chapters_of_life(backend(name, request, tmp_path), in_memory):
        assert not chapter.links
        assert not chapter.kept


@pytest.mark.parametrize("name", ["memory_with_symlinks", "hdfs_with_symlinks"])
def test_left_overs_are_links_there_that_keep_their_targets_and_go_with_their_slice(
    name: str, in_memory: list[Chapter], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    there = backend(name, request, tmp_path)
    seen: dict[str, Chapter] = {}
    for chapter in chapters_of_life(there, in_memory):
        seen[chapter.deed] = chapter
        assert set(chapter.links.values()) <= chapter.files
        if chapter.links and name == "hdfs_with_symlinks":
            check_on_the_name_node(request.getfixturevalue(name), there, chapter)
    first, beside = seen["compacted up to the second hour"], seen["cleaned below the left-overs"]
    assert len(first.links) == 2  # north's log of the third hour, and its delete
    assert beside.links == first.links
    assert beside.kept == set(first.links.values())
    again, undone = seen["compacted again"], seen["rolled back the compaction"]
    assert again.links.items() > first.links.items()
    assert undone.links == beside.links
    assert all(path.startswith(".hoodie/") for path in undone.files ^ beside.files)
    cleaned = seen["compacted the whole day and cleaned"]
    assert not cleaned.links
    assert not cleaned.files & beside.kept


def check_on_the_name_node(server: HdfsServer, there: Backend, chapter: Chapter) -> None:
    """The NameNode lists those links and no others, and resolves each to the real path of its target."""
    web, directory = server.client(), there.uri.removeprefix(server.uri)
    targets: dict[str, str] = {}
    for partition in ("part=north", "part=south"):
        for entry in web.call("GET", "LISTSTATUS", f"{directory}/{partition}")["FileStatuses"]["FileStatus"]:
            if entry["type"] == "SYMLINK":
                targets[f"{partition}/{entry['pathSuffix']}"] = entry["symlink"]
    assert targets == {path: f"{directory}/{target}" for path, target in chapter.links.items()}
    for path, target in targets.items():
        with pytest.raises(RemoteError, match=f"UnresolvedPathException: {re.escape(target)}"):
            web.call("GET", "GETFILESTATUS", f"{directory}/{path}")

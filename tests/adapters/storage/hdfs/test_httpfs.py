"""HttpFS before a NameNode: tables are read through it, and every write is refused before a name appears."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import pytest

from eventide_core.errors import RefusedError
from eventide_core.ports import Storage
from eventide_core.table.timeline.contents.plans import LinkMode
from support.pasts.life import HOUR_MS, MIDNIGHT_MS, TableLife
from support.run.parts import Parts
from support.servers.fixtures import started
from support.servers.hdfs.httpfs import httpfs
from support.servers.hdfs.mini_cluster import HdfsServer
from support.tables.backends import Backend, files_of

pytestmark = pytest.mark.broad


@dataclass(frozen=True, slots=True)
class BothWays:
    """One table, by the NameNode's own web address and by HttpFS's."""

    directly: Backend
    through: Backend
    servers: tuple[HdfsServer, HdfsServer]


@pytest.fixture
def table(parts: Parts) -> BothWays:
    servers = started(parts, httpfs)
    at = f"/lake/{uuid.uuid4().hex}"
    directly, through = (Backend(f"{server.uri}{at}", server.options, LinkMode.COPY) for server in servers)
    return BothWays(directly, through, servers)


def test_the_rows_of_a_table_are_read_through_it(table: BothWays) -> None:
    *_, compacted = islice(TableLife(table.directly).chapters(), 3)
    read = table.through.table().snapshot().to_arrow().to_pylist()
    assert {(row["id"], row["ms"], row["word"]) for row in read} == compacted.rows
    assert files_of(table.through.storage) == files_of(table.directly.storage)


WRITES: dict[str, Callable[[Storage], object]] = {
    "put": lambda storage: storage.put("part/new", b"ours"),
    "put_if_absent": lambda storage: storage.put_if_absent("part/new", b"ours"),
    "copy_if_absent": lambda storage: storage.copy_if_absent("source", "part/new"),
}
CURE = r"localhost:\d+ is HttpFS.*set dfs\.namenode\.http-address to the web address of the NameNode .*can only be read"


@pytest.mark.parametrize("write", WRITES)
def test_a_write_through_it_is_refused_and_leaves_nothing(write: str, table: BothWays) -> None:
    assert table.directly.storage.put_if_absent("source", b"source")
    with pytest.raises(RefusedError, match=CURE):
        WRITES[write](table.through.storage)
    assert files_of(table.directly.storage) == {"source": None}


def test_a_compaction_through_it_is_refused_and_changes_nothing(table: BothWays) -> None:
    next(TableLife(table.directly).chapters())
    before = files_of(table.directly.storage)
    with pytest.raises(RefusedError, match=CURE):
        table.through.table().compact(before=MIDNIGHT_MS + 2 * HOUR_MS)
    assert files_of(table.directly.storage) == before


@pytest.mark.parametrize("replaces", [True, False])
def test_a_rename_whose_condition_was_ignored_is_refused(replaces: bool, table: BothWays) -> None:
    """Bytes may have another way than WebHDFS: then the rename is the first that HttpFS learns of a write."""
    storage = table.directly.storage
    assert storage.put_if_absent("one", b"1")
    assert storage.put_if_absent("two", b"2")
    one, two = (f"{table.directly.uri.removeprefix(table.servers[0].uri)}/{name}" for name in ("one", "two"))
    with pytest.raises(RefusedError, match=CURE):
        table.servers[1].client().rename(one, two, replaces=replaces)
    assert (storage.read("one"), storage.read("two")) == (b"1", b"2")

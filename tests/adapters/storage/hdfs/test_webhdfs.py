"""The target and the user of requests, on small fake NameNodes, for cases that a mini cluster can't be in."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import StorageAccessError
from eventide_core.ports import Storage
from support.servers.server_process import free_ports

STANDBY: tuple[int, object] = (403, {"RemoteException": {"exception": "StandbyException", "message": "not active"}})
OBSERVER: tuple[int, object] = (
    403,
    {"RemoteException": {"exception": "ObserverRetryOnActiveException", "message": "Operation category WRITE"}},
)
EMPTY: tuple[int, object] = (200, {"FileStatuses": {"FileStatus": []}})


@dataclass(slots=True)
class NameNode:
    """Answers every request alike, or changes by `of_changes`, or as `choose` says. `asked` are the queries so far."""

    answer: tuple[int, object]
    of_changes: tuple[int, object] | None = None
    choose: Callable[[Mapping[str, list[str]]], tuple[int, object]] | None = None
    address: str = ""
    asked: list[dict[str, list[str]]] = field(default_factory=list[dict[str, list[str]]])


@contextmanager
def serving(answer: tuple[int, object]) -> Iterator[NameNode]:
    node = NameNode(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(node.answer)

        def do_PUT(self) -> None:
            self._answer(node.of_changes or node.answer)

        def _answer(self, answer: tuple[int, object]) -> None:
            query = parse_qs(urlsplit(self.path).query)
            node.asked.append(query)
            status, document = answer if node.choose is None else node.choose(query)
            body = json.dumps(document).encode()
            self.send_response(status)
            if status == 307:
                self.send_header("Location", str(document))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Not to the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        node.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def nodes() -> Iterator[tuple[NameNode, NameNode]]:
    """Two of one name service, the first on standby."""
    with ExitStack() as stack:
        yield stack.enter_context(serving(STANDBY)), stack.enter_context(serving(EMPTY))


def storage_on(*nodes: NameNode, **options: str) -> Storage:
    addresses = {f"dfs.namenode.http-address.lake.nn{n}": node.address for n, node in enumerate(nodes)}
    return open_storage("hdfs://lake/trips", Options({**addresses, **options}))


def test_the_active_name_node_is_found_and_asked_first_from_then_on(nodes: tuple[NameNode, NameNode]) -> None:
    standby, active = nodes
    storage = storage_on(*nodes)
    for _ in range(3):
        assert storage.list("") == ()
    assert [query["op"] for query in standby.asked] == [["SETTIMES"]]
    assert [query["op"] for query in active.asked] == [["SETTIMES"], *[["LISTSTATUS"]] * 3]


def test_no_observer_is_asked_to_read_because_what_it_knows_may_be_old(
    nodes: tuple[NameNode, NameNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even one that was active a little while ago."""
    minutes = count(step=60.0)
    monkeypatch.setattr("eventide_adapters.storage.hdfs.webhdfs.time", SimpleNamespace(monotonic=lambda: next(minutes)))
    first, second = nodes
    first.answer, first.of_changes = EMPTY, OBSERVER
    storage = storage_on(*nodes)
    assert storage.list("") == ()
    assert (reads_of(first), reads_of(second)) == (0, 1)
    first.of_changes, second.of_changes = None, OBSERVER
    assert storage.list("") == ()
    assert (reads_of(first), reads_of(second)) == (1, 1)


def reads_of(node: NameNode) -> int:
    return sum(query["op"] == ["LISTSTATUS"] for query in node.asked)


@pytest.mark.usefixtures("short_pauses")
def test_a_fail_over_is_followed(nodes: tuple[NameNode, NameNode]) -> None:
    storage = storage_on(*nodes)
    assert storage.list("") == ()
    nodes[0].answer, nodes[1].answer = nodes[1].answer, nodes[0].answer
    assert storage.list("") == ()
    assert nodes[0].asked[-1]["op"] == ["LISTSTATUS"]


def test_a_failover_may_take_a_minute(nodes: tuple[NameNode, NameNode], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pauses are counted, not waited for."""
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if sum(waited) > 60:
            nodes[0].answer = EMPTY

    nodes[1].answer = STANDBY
    monkeypatch.setattr("eventide_adapters.storage.hdfs.webhdfs.time.sleep", sleep)
    assert storage_on(*nodes).list("") == ()
    assert max(waited) <= 10


def test_who_has_a_delegation_token_gives_it_in_place_of_a_name(nodes: tuple[NameNode, NameNode]) -> None:
    storage_on(nodes[1], **{"hdfs.delegation.token": "the-token", "hadoop.user.name": "lake"}).list("")
    storage_on(nodes[1], **{"hadoop.user.name": "lake"}).list("")
    secured, simple = nodes[1].asked
    assert (secured["delegation"], "user.name" in secured) == (["the-token"], False)
    assert (simple["user.name"], "delegation" in simple) == (["lake"], False)


def test_a_name_node_that_wants_kerberos_is_answered_with_what_to_give() -> None:
    with serving((401, {})) as node, pytest.raises(StorageAccessError, match=r"hdfs\.delegation\.token") as failure:
        storage_on(node).list("")
    assert failure.value.exit_code == 2


NO_OTHER: tuple[int, object] = (
    403,
    {"RemoteException": {"exception": "IOException", "message": "Failed to find datanode, suggest to check cluster"}},
)


@pytest.mark.usefixtures("short_pauses")
@pytest.mark.parametrize("has_others", [True, False])
@pytest.mark.parametrize("operation", ["OPEN", "CREATE"])
def test_after_a_data_node_is_lost_the_name_node_is_asked_for_another_then_for_any(
    operation: str, has_others: bool
) -> None:
    """A NameNode names the DataNode on the client's host, if there is one, until it notices that it is gone."""
    with serving((200, {})) as data_node, serving((200, {})) as name_node:
        alive, lost = f"http://{data_node.address}/file?at=dn", f"http://localhost:{free_ports(1)[0]}/file?at=dn"
        excluded: list[str] = []

        def choose(query: Mapping[str, list[str]]) -> tuple[int, object]:
            if query["op"] != [operation]:
                return name_node.answer
            excluded.append(*query.get("excludedatanodes", [""]))
            if excluded[-1]:
                return (307, alive) if has_others else NO_OTHER
            return (307, lost) if len(excluded) == 1 else (307, alive)

        name_node.choose = choose
        storage = storage_on(name_node)
        if operation == "OPEN":
            assert storage.read("file") == b"{}"
        else:
            assert storage.put_if_absent("file", b"data")
    assert excluded == (["", "127.0.0.1"] if has_others else ["", "127.0.0.1", ""])
    assert len(data_node.asked) == 1

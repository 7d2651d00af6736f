"""Lost responses and refusals between eventide and the stores of Google and Azure: nothing is lost or taken for done."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from eventide_adapters.storage.objects import PART_BYTES
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import StorageError
from eventide_core.ports import Capability, Storage
from support.servers.cloud_servers import CloudServer, GoogleServer
from support.servers.faulty_proxy import Fault, FaultyProxy, faulty_proxy

DATA = bytes(range(256)) * 8192  # 2 MiB: a copy of it is no small one
FAULTS = [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER]


@pytest.fixture(scope="module", params=["fake_gcs", "azurite"])
def server(request: pytest.FixtureRequest) -> CloudServer:
    found: CloudServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def proxy(server: CloudServer) -> Iterator[FaultyProxy]:
    with faulty_proxy(server.endpoint.removeprefix("http://")) as found:
        yield found


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    sleep = asyncio.sleep

    async def briefly(seconds: float, *more: Any) -> None:
        await sleep(min(seconds, 0.01), *more)

    monkeypatch.setattr("gcsfs.retry.asyncio", SimpleNamespace(sleep=briefly))
    monkeypatch.setattr("azure.storage.blob._shared.policies_async.ExponentialRetry.get_backoff_time", lambda *_: 0.01)


@pytest.fixture
def storage(server: CloudServer, proxy: FaultyProxy) -> Storage:
    proxy.choose = lambda _method, _path, _number: None
    through = replace(server, endpoint=f"http://{proxy.address}")
    found = open_storage(through.uri(uuid.uuid4().hex), Options(through.options))
    found.put("source", DATA)
    assert Capability.PUT_IF_ABSENT in found.capabilities
    proxy.struck.clear()
    return found


def write_output(storage: Storage, size: int = len(DATA)) -> bool:
    output = storage.open_output("new")
    output.write(DATA * (size // len(DATA)))
    return output.commit()


CREATES: dict[str, Callable[[Storage], bool]] = {
    "put_if_absent": lambda storage: storage.put_if_absent("new", DATA),
    "open_output": write_output,
    "copy_if_absent": lambda storage: storage.copy_if_absent("source", "new"),
}


def strike_next_write(proxy: FaultyProxy, fault: Fault) -> None:
    """At the request that makes the name: the last of its kind for Azure's blocks, the first otherwise."""
    struck: list[str] = []

    def choose(method: str, path: str, _number: int) -> Fault | None:
        is_last = (
            "uploadType=multipart" in path or ("upload_id=" in path) or (method == "PUT" and "comp=block&" not in path)
        )
        if struck or not is_last or method not in ("PUT", "POST"):
            return None
        struck.append(path)
        return fault

    proxy.choose = choose


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("create", CREATES)
def test_who_creates_a_file_knows_it_whatever_happens_to_one_request(
    storage: Storage, proxy: FaultyProxy, create: str, fault: Fault
) -> None:
    strike_next_write(proxy, fault)
    assert CREATES[create](storage)
    assert proxy.struck == {fault: 1}
    assert storage.read("new") == DATA
    assert not CREATES[create](storage)


@pytest.mark.parametrize("create", CREATES)
def test_a_lost_answer_does_not_make_anothers_file_ours(storage: Storage, proxy: FaultyProxy, create: str) -> None:
    # The same content: only the mark tells whose it is.
    assert storage.put_if_absent("new", DATA)
    strike_next_write(proxy, Fault.REPLY_LOST)
    assert not CREATES[create](storage)
    assert storage.read("new") == DATA


@pytest.mark.parametrize("create", CREATES)
def test_a_store_that_stays_away_is_an_error_and_leaves_no_file(
    storage: Storage, proxy: FaultyProxy, create: str
) -> None:
    proxy.choose = lambda method, _path, _number: Fault.UNAVAILABLE if method in ("PUT", "POST") else None
    with pytest.raises(StorageError, match="new"):
        CREATES[create](storage)
    proxy.choose = lambda _method, _path, _number: None
    assert storage.stat("new") is None
    assert CREATES[create](storage)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_large_file_is_whole_or_absent_whatever_happens_to_one_of_its_parts(
    server: CloudServer, storage: Storage, proxy: FaultyProxy, number: int, fault: Fault
) -> None:
    parts = {"seen": 0}

    def choose(method: str, path: str, _number: int) -> Fault | None:
        if method != "PUT" or not ("upload_id=" in path or "comp=block&" in path):
            return None
        parts["seen"] += 1
        return fault if parts["seen"] == number + 1 else None

    proxy.choose = choose
    size = 5 * PART_BYTES // 2
    # The emulator appends a part that is sent again; Google ignores what it has already.
    if isinstance(server, GoogleServer) and fault is not Fault.UNAVAILABLE and number < 2:
        with pytest.raises(StorageError, match=r"kept a part of .* twice"):
            write_output(storage, size)
        assert storage.stat("new") is None
        return
    assert write_output(storage, size)
    assert proxy.struck == {fault: 1}
    assert storage.read("new") == DATA * (size // len(DATA))
    assert not write_output(storage, size)


@pytest.mark.parametrize("fault", [*FAULTS, Fault.HALF])
def test_a_file_is_read_whole_whatever_happens_to_one_answer(
    storage: Storage, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.strike_once(fault, "GET", "source")
    assert storage.read("source") == DATA
    assert proxy.struck == {fault: 1}


@pytest.mark.parametrize("fault", FAULTS)
def test_lists_and_deletes_are_repeated(storage: Storage, proxy: FaultyProxy, fault: Fault) -> None:
    proxy.strike_once(fault, "GET", "delimiter")
    assert [info.path for info in storage.list("")] == ["source"]
    proxy.strike_once(fault, "DELETE", "source")
    assert storage.delete("source")
    assert storage.stat("source") is None

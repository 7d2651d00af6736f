"""Lost responses and refusals between eventide and the stores of Amazon, Google and Azure: nothing is lost."""

from collections.abc import Iterator

import pytest

from eventide_adapters.storage.objects.contract import PART_BYTES
from eventide_core.errors import StorageError
from eventide_core.ports import Storage
from support.faults.stores import CREATES, DATA, LOST, FaultyStore, faulty_store, write_output
from support.servers.cloud_servers import GoogleServer
from support.servers.faulty_proxy import Fault, FaultyProxy

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("short_pauses")]


@pytest.fixture(scope="module", params=["moto", "fake_gcs", "azurite"])
def store(request: pytest.FixtureRequest) -> Iterator[FaultyStore]:
    with faulty_store(request.getfixturevalue(request.param)) as faulty:
        yield faulty


@pytest.fixture
def storage(store: FaultyStore) -> Storage:
    return store.with_source()


def strike_next_write(proxy: FaultyProxy, fault: Fault) -> None:
    """At the request that makes the name, which is the last one of an upload in parts."""
    struck: list[str] = []

    def choose(method: str, path: str, _number: int) -> Fault | None:
        is_whole = method == "PUT" and "comp=block&" not in path and "partNumber=" not in path
        is_made = method == "POST" and ("uploadType=multipart" in path or "uploadId=" in path)
        if struck or not (is_whole or is_made):
            return None
        struck.append(path)
        return fault

    proxy.choose = choose


@pytest.mark.parametrize("fault", LOST)
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
    # The same content: only the mark shows whose it is.
    assert storage.put_if_absent("new", DATA)
    strike_next_write(proxy, Fault.REPLY_LOST)
    assert not CREATES[create](storage)
    assert proxy.struck == {Fault.REPLY_LOST: 1}
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


@pytest.mark.parametrize("store", ["fake_gcs", "azurite"], indirect=True)  # for S3 in test_s3_faults.py
@pytest.mark.parametrize("fault", LOST)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_large_file_is_whole_or_absent_whatever_happens_to_one_of_its_parts(
    store: FaultyStore, storage: Storage, proxy: FaultyProxy, number: int, fault: Fault
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
    if isinstance(store.server, GoogleServer) and fault is not Fault.UNAVAILABLE and number < 2:
        with pytest.raises(StorageError, match=r"kept a part of .* twice"):
            write_output(storage, size)
        assert storage.stat("new") is None
        return
    assert write_output(storage, size)
    assert proxy.struck == {fault: 1}
    assert storage.read("new") == DATA * (size // len(DATA))
    assert not write_output(storage, size)


@pytest.mark.parametrize("fault", [*LOST, Fault.HALF])
def test_a_file_is_read_whole_whatever_happens_to_one_answer(
    storage: Storage, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.strike_once(fault, "GET", "source")
    assert storage.read("source") == DATA
    assert proxy.struck == {fault: 1}
    with storage.open_input("source") as stream:
        proxy.strike_once(fault, "GET", "source")
        assert stream.read() == DATA


@pytest.mark.parametrize("fault", LOST)
def test_lists_and_deletes_are_repeated(storage: Storage, proxy: FaultyProxy, fault: Fault) -> None:
    proxy.strike_once(fault, "GET", "delimiter")
    assert [info.path for info in storage.list("")] == ["source"]
    proxy.strike_once(fault, "DELETE", "source")
    assert storage.delete("source")
    assert storage.stat("source") is None


WAITS: dict[str, str] = {"fsspec.requests_timeout": "1", "fsspec.read_timeout": "1"}
"""Of gcsfs and of adlfs, in seconds."""


@pytest.mark.parametrize("store", ["fake_gcs", "azurite"], indirect=True)  # for S3 in test_s3_faults.py
def test_a_silent_store_is_asked_again(store: FaultyStore, proxy: FaultyProxy) -> None:
    is_google = isinstance(store.server, GoogleServer)
    (option,) = (name for name in WAITS if ("requests" in name) == is_google)
    storage = store.with_source({option: WAITS[option]})
    proxy.strike_once(Fault.SILENT, "GET", "source")
    assert storage.read("source") == DATA
    strike_next_write(proxy, Fault.SILENT)
    assert storage.put_if_absent("new", DATA)
    assert proxy.struck == {Fault.SILENT: 2}
    assert storage.read("new") == DATA

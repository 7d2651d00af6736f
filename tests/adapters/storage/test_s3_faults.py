"""Lost responses, refusals and timeouts between eventide and an S3 store: nothing is lost, duplicated or misread."""

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from eventide_adapters.storage.open import open_storage
from eventide_adapters.storage.s3_objects import S3Objects
from eventide_core.config import Options
from eventide_core.errors import StorageError
from eventide_core.ports import Capability, Storage
from support.servers.faulty_proxy import Fault, FaultyProxy, faulty_proxy
from support.servers.s3_servers import BUCKET, S3Server

DATA = bytes(range(256)) * 8192  # 2 MiB: a copy of it is made inside the store


@pytest.fixture(scope="module")
def proxy(moto: S3Server) -> Iterator[FaultyProxy]:
    with faulty_proxy(moto.endpoint.removeprefix("http://")) as found:
        yield found


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda *_: 0.01)


@pytest.fixture
def storage(moto: S3Server, proxy: FaultyProxy) -> Storage:
    return _opened(moto, proxy, timeout_seconds=1)


@pytest.fixture
def patient(moto: S3Server, proxy: FaultyProxy) -> Storage:
    """A storage for large requests, which take longer on a busy machine."""
    return _opened(moto, proxy, timeout_seconds=60)


def _opened(moto: S3Server, proxy: FaultyProxy, *, timeout_seconds: int) -> Storage:
    proxy.choose = lambda _method, _path, _number: None
    options = {**moto.options, "fs.s3a.endpoint": f"http://{proxy.address}", "s3.request-timeout": str(timeout_seconds)}
    found = open_storage(f"s3://{BUCKET}/{uuid.uuid4().hex}", Options(options))
    found.put("source", DATA)
    assert Capability.PUT_IF_ABSENT in found.capabilities
    proxy.struck.clear()
    return found


def write_output(storage: Storage) -> bool:
    output = storage.open_output("new")
    output.write(DATA)
    return output.commit()


CREATES: dict[str, Callable[[Storage], bool]] = {
    "put_if_absent": lambda storage: storage.put_if_absent("new", DATA),
    "open_output": write_output,
    "copy_if_absent": lambda storage: storage.copy_if_absent("source", "new"),
}

# What each create asks of the store, in order: by method and what is in the path.
REQUESTS = [
    ("put_if_absent", "PUT", "/new"),
    ("open_output", "PUT", "/new"),
    ("copy_if_absent", "POST", "uploads"),
    ("copy_if_absent", "PUT", "partNumber"),
    ("copy_if_absent", "POST", "uploadId"),
]
WRITE_FAULTS = [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER, Fault.SILENT]


@pytest.mark.parametrize("fault", WRITE_FAULTS)
@pytest.mark.parametrize(("create", "method", "path"), REQUESTS)
def test_who_creates_a_file_knows_it_whatever_happens_to_one_request(
    storage: Storage, proxy: FaultyProxy, create: str, method: str, path: str, fault: Fault
) -> None:
    proxy.strike_once(fault, method, path)
    assert CREATES[create](storage)
    assert proxy.struck == {fault: 1}
    assert storage.read("new") == DATA
    assert not CREATES[create](storage)


@pytest.mark.parametrize("create", CREATES)
def test_a_lost_answer_does_not_make_anothers_file_ours(storage: Storage, proxy: FaultyProxy, create: str) -> None:
    # The same content: only the mark tells whose it is.
    assert storage.put_if_absent("new", DATA)
    proxy.strike_once(Fault.REPLY_LOST, "POST" if create == "copy_if_absent" else "PUT")
    assert not CREATES[create](storage)
    assert proxy.struck == {Fault.REPLY_LOST: 1}


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


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The content of a file of six parts, more than are uploaded at once."""
    monkeypatch.setattr("eventide_adapters.storage.s3_objects.PART_BYTES", 5 << 20)
    monkeypatch.setattr("eventide_adapters.storage.remote_streams.PART_BYTES", 5 << 20)
    return b"".join(number.to_bytes(8) for number in range((26 << 20) // 8))


def _write(storage: Storage, data: bytes) -> bool:
    output = storage.open_output("new")
    output.write(data)
    return output.commit()


def _unfinished(server: S3Server, storage: Storage) -> list[str]:
    uploads = server.client().list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return [found["Key"] for found in uploads if storage.root.endswith(found["Key"].removesuffix("/new"))]


@pytest.mark.parametrize("fault", [None, Fault.REPLY_LOST, Fault.UNAVAILABLE])
def test_parts_that_are_uploaded_side_by_side_are_in_order(
    patient: Storage, proxy: FaultyProxy, large: bytes, fault: Fault | None
) -> None:
    if fault is not None:
        proxy.strike_once(fault, "PUT", "partNumber=2")
    assert _write(patient, large)
    assert proxy.struck == ({} if fault is None else {fault: 1})
    assert patient.read("new") == large
    assert not _write(patient, large)


@pytest.mark.parametrize("number", [1, 6])
def test_a_part_that_stays_away_is_an_error_and_leaves_no_file(
    moto: S3Server, patient: Storage, proxy: FaultyProxy, large: bytes, number: int
) -> None:
    proxy.choose = lambda _method, path, _number: Fault.UNAVAILABLE if f"partNumber={number}" in path else None
    with pytest.raises(StorageError, match="new"):
        _write(patient, large)
    assert patient.stat("new") is None
    assert _unfinished(moto, patient) == []


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER])
@pytest.mark.parametrize(("method", "path"), [("POST", "uploads"), ("PUT", "partNumber=6"), ("POST", "uploadId")])
def test_who_uploads_a_large_file_knows_it_whatever_happens_to_one_request(
    patient: Storage, proxy: FaultyProxy, large: bytes, method: str, path: str, fault: Fault
) -> None:
    proxy.strike_once(fault, method, path)
    assert _write(patient, large)
    assert proxy.struck == {fault: 1}
    assert patient.read("new") == large
    assert not _write(patient, large)


def test_a_lost_answer_does_not_make_anothers_large_file_ours(
    patient: Storage, proxy: FaultyProxy, large: bytes
) -> None:
    output = patient.open_output("new")
    output.write(large)
    assert patient.put_if_absent("new", large)  # the same content: only the mark tells whose it is
    proxy.strike_once(Fault.REPLY_LOST, "POST", "uploadId")
    assert not output.commit()
    assert proxy.struck == {Fault.REPLY_LOST: 1}
    assert patient.read("new") == large


def test_a_completion_that_stays_away_is_an_error_and_leaves_no_file(
    moto: S3Server, patient: Storage, proxy: FaultyProxy, large: bytes
) -> None:
    proxy.choose = lambda method, path, _: Fault.UNAVAILABLE if (method, "uploadId" in path) == ("POST", True) else None
    with pytest.raises(StorageError, match="new"):
        _write(patient, large)
    assert _unfinished(moto, patient) == []
    assert patient.stat("new") is None
    proxy.choose = lambda _method, _path, _number: None
    assert _write(patient, large)


def test_a_writer_that_dies_between_parts_leaves_no_file_and_is_in_nobodys_way(
    moto: S3Server, patient: Storage, large: bytes
) -> None:
    dead, aborted = patient.open_output("new"), patient.open_output("new")
    for output in (dead, aborted):
        output.write(large[: 17 << 20])
    aborted.abort()
    assert len(_unfinished(moto, patient)) == 1  # the parts were sent before a commit
    assert patient.stat("new") is None
    assert [info.path for info in patient.list("")] == ["source"]
    assert _write(patient, large)
    assert patient.read("new") == large
    dead.abort()
    assert _unfinished(moto, patient) == []


def test_an_upload_that_the_store_wants_repeated_is_sent_again(
    moto: S3Server, patient: Storage, large: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, completions = S3Objects._call, 0

    def conflicting_once(objects: S3Objects, operation: str, **arguments: Any) -> dict[str, Any]:
        nonlocal completions
        if operation == "complete_multipart_upload":
            completions += 1
            if completions == 1:
                conflict = {"Error": {"Code": "ConditionalRequestConflict", "Message": ""}}
                raise OSError("conflict") from ClientError(conflict, operation)  # as s3fs raises it
        return call(objects, operation, **arguments)

    monkeypatch.setattr(S3Objects, "_call", conflicting_once)
    assert _write(patient, large)
    assert completions == 2
    assert patient.read("new") == large
    assert _unfinished(moto, patient) == []


@pytest.mark.parametrize("fault", [*WRITE_FAULTS, Fault.HALF])
def test_a_file_is_read_whole_whatever_happens_to_one_answer(
    storage: Storage, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.strike_once(fault, "GET", "/source")
    assert storage.read("source") == DATA
    assert proxy.struck == {fault: 1}
    with storage.open_input("source") as stream:
        proxy.strike_once(fault, "GET", "/source")
        assert stream.read() == DATA


@pytest.mark.parametrize("fault", [Fault.REPLY_LOST, Fault.UNAVAILABLE, Fault.FAILED_AFTER])
def test_lists_and_deletes_are_repeated(storage: Storage, proxy: FaultyProxy, fault: Fault) -> None:
    proxy.strike_once(fault, "GET", "list-type=2")
    assert [info.path for info in storage.list("")] == ["source"]
    proxy.strike_once(fault, "DELETE", "/source")
    assert storage.delete("source")
    assert storage.stat("source") is None

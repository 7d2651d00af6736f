"""What only S3 has of lost responses: timeouts, uploads side by side, copies inside the store, repeated completions."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from s3fs import S3FileSystem

from eventide_core.errors import StorageError
from eventide_core.ports import Storage
from support.faults.stores import CREATES, DATA, LOST, FaultyStore, faulty_store
from support.servers.faulty_proxy import Fault, FaultyProxy
from support.servers.s3_servers import BUCKET, S3Server

pytestmark = pytest.mark.usefixtures("short_pauses")


@pytest.fixture(scope="module")
def store(moto: S3Server) -> Iterator[FaultyStore]:
    with faulty_store(moto) as faulty:
        yield faulty


@pytest.fixture
def storage(store: FaultyStore) -> Storage:
    return store.with_source({"s3.request-timeout": "1"})


@pytest.fixture
def patient(store: FaultyStore) -> Storage:
    """A storage for large requests, which take longer on a busy machine."""
    return store.with_source()


# What each create asks of the store, in order, by method and what is in the path; test_store_faults.py strikes the last.
REQUESTS = [
    ("put_if_absent", "PUT", "/new"),
    ("open_output", "PUT", "/new"),
    ("copy_if_absent", "POST", "uploads"),
    ("copy_if_absent", "PUT", "partNumber"),
    ("copy_if_absent", "POST", "uploadId"),
]


@pytest.mark.parametrize(
    ("create", "method", "path", "fault"),
    [
        *((*request, Fault.SILENT) for request in REQUESTS),
        *((*request, fault) for request in REQUESTS[2:4] for fault in LOST),
    ],
)
def test_who_creates_a_file_knows_it_whatever_happens_to_one_request(
    storage: Storage, proxy: FaultyProxy, create: str, method: str, path: str, fault: Fault
) -> None:
    proxy.strike_once(fault, method, path)
    assert CREATES[create](storage)
    assert proxy.struck == {fault: 1}
    assert storage.read("new") == DATA
    assert not CREATES[create](storage)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The content of a file of six parts, more than are uploaded at once."""
    monkeypatch.setattr("eventide_adapters.storage.objects.s3.PART_BYTES", 5 << 20)
    monkeypatch.setattr("eventide_adapters.storage.remote_streams.PART_BYTES", 5 << 20)
    return b"".join(number.to_bytes(8) for number in range((26 << 20) // 8))


def _write(storage: Storage, data: bytes) -> bool:
    output = storage.open_output("new")
    output.write(data)
    return output.commit()


def _unfinished(server: S3Server, storage: Storage) -> list[str]:
    uploads = server.client().list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    return [upload["Key"] for upload in uploads if storage.root.endswith(upload["Key"].removesuffix("/new"))]


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


@pytest.mark.parametrize("fault", LOST)
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
    assert patient.put_if_absent("new", large)  # the same content: only the mark shows whose it is
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
    completions, call = 0, cast(Any, S3FileSystem.call_s3)

    def conflicting_once(client: S3FileSystem, operation: str, **arguments: Any) -> Any:
        nonlocal completions
        if operation == "complete_multipart_upload":
            completions += 1
            if completions == 1:
                conflict = {"Error": {"Code": "ConditionalRequestConflict", "Message": ""}}
                raise OSError("conflict") from ClientError(conflict, operation)  # as s3fs raises it
        return call(client, operation, **arguments)

    monkeypatch.setattr(S3FileSystem, "call_s3", conflicting_once)
    assert _write(patient, large)
    assert completions == 2
    assert patient.read("new") == large
    assert _unfinished(moto, patient) == []


def test_a_file_is_read_whole_if_the_store_falls_silent_once(storage: Storage, proxy: FaultyProxy) -> None:
    proxy.strike_once(Fault.SILENT, "GET", "/source")
    assert storage.read("source") == DATA
    assert proxy.struck == {Fault.SILENT: 1}

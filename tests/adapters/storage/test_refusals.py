"""Which failures of a storage are refusals: wrong input (2), not a reason to try again (5)."""

import errno
import os
from pathlib import Path
from ssl import SSLError

import pytest
from botocore.exceptions import ClientError, NoCredentialsError, ProfileNotFound

from eventide_adapters.storage.hdfs.webhdfs import RemoteError
from eventide_adapters.storage.local.streams import answering
from eventide_adapters.storage.refusals import is_refusal, storage_error
from eventide_core.errors import StorageAccessError, StorageError
from support.run.command_line import run


class HttpError(Exception):
    """As gcsfs has it."""

    def __init__(self, code: int) -> None:
        super().__init__(f"error {code}")
        self.code = code


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (PermissionError("Access Denied"), True),
        (OSError(errno.EACCES, "Permission denied"), True),
        (OSError(errno.EROFS, "Read-only file system"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (NoCredentialsError(), True),
        (HttpError(401), True),
        (HttpError(403), True),
        (HttpError(503), False),
        (OSError("Forbidden: b/lake/o/x\nno access to the object"), True),  # as gcsfs has it
        (RemoteError("AccessControlException", "Permission denied: user=guest"), True),
        (RemoteError("StandbyException", "not active"), False),
        (ProfileNotFound(profile="nobody"), True),
        (TimeoutError(), False),
        (ClientError({"Error": {"Code": "SlowDown", "Message": ""}}, "PutObject"), False),
    ],
    ids=repr,
)
def test_a_refusal_is_told_from_a_failure(failure: Exception, expected: bool) -> None:
    assert is_refusal(failure) is expected
    error = storage_error("cannot read 'x'", failure)
    assert isinstance(error, StorageAccessError) is expected
    assert error.exit_code == (2 if expected else 5)
    assert ("credentials" in str(error)) is expected


def test_an_operating_systems_refusal_is_typed() -> None:
    with (
        pytest.raises(StorageAccessError, match=r"cannot read 'x'.*check the permissions"),
        answering("cannot read 'x'"),
    ):
        raise PermissionError(errno.EACCES, "Permission denied")
    with pytest.raises(StorageError) as failed, answering("cannot read 'x'"):
        raise OSError(errno.EIO, "Input/output error")
    assert failed.value.exit_code == 5


def test_a_command_that_may_not_write_is_wrong_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opening = os.open

    def refused(path: object, flags: int, *words: object, **more: object) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opening(path, flags, *words, **more)  # type: ignore[arg-type]

    source = tmp_path / "rows.json"
    source.write_text('{"id": "a", "ms": 1700000000000}\n')
    monkeypatch.setattr(os, "open", refused)
    words = ("--create", "--record-key", "id", "--event-time", "ms")
    answer = run("ingest", tmp_path / "t", source, "--op", "upsert", *words)
    assert answer.exit_code == 2
    assert "check the permissions" in answer.stderr


@pytest.mark.parametrize(
    ("said", "cure"),
    [
        ("The difference between the request time and the current time is too large.", "by NTP"),
        ("Object 'x' is subject to bucket's retention policy and cannot be deleted", "remove the retention"),
        ("Object 'x' is under active Event-Based hold and cannot be deleted", "remove the retention"),
    ],
)
def test_a_refusal_that_no_permission_cures_names_its_cure(said: str, cure: str) -> None:
    error = storage_error("cannot delete 'x'", PermissionError(said))
    assert isinstance(error, StorageAccessError)
    assert cure in str(error)
    assert "permissions" not in str(error)
    assert cure not in str(storage_error("cannot delete 'x'", OSError(said)))


@pytest.mark.parametrize(
    ("failure", "exit_code", "cure"),
    [
        (SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number"), 2, "begin its address with http://"),
        (NotADirectoryError(errno.ENOTDIR, "Not a directory"), 2, "correct the path"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), 5, "check the address and the network"),
        (OSError("Cannot connect to host store:443 [Name or service not known]"), 5, "check the address"),
        (SSLError(1, "[SSL: UNEXPECTED_EOF] EOF occurred"), 5, "EOF occurred"),
    ],
    ids=repr,
)
def test_an_address_that_is_wrong_or_reaches_nobody_is_told_from_a_refusal(
    failure: OSError, exit_code: int, cure: str
) -> None:
    error = storage_error(f"cannot read 'x': {failure}", failure)
    assert error.exit_code == exit_code
    assert cure in str(error)
    assert "permissions" not in str(error)

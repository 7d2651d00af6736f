"""Stores with versions, retention or a lock on what is written, and clocks that are off by an hour.

One line that names what, where and the cure, and exit code 2; or the store works as any other.
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import botocore.auth
import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.core.pipeline.transport import AioHttpTransport
from gcsfs.core import GCSFileSystem
from gcsfs.retry import validate_response
from google.auth.exceptions import RefreshError

from eventide_adapters.storage.guarantees import GUARANTEES
from eventide_adapters.storage.objects.azure import AzureObjects
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.faults.stores import shorten_pauses
from support.run.command_line import run
from support.servers.cloud_servers import AzureServer, GoogleServer
from support.servers.s3_servers import S3Server
from support.tables.backends import files_of

CREATE = ("--op", "upsert", "--create", "--record-key", "id", "--event-time", "ms")
RETAINED = b"""{"error": {"code": 403, "message": "Object 'lake/x' is subject to bucket's retention policy or object
retention and cannot be deleted or overwritten until 2027-01-01T00:00:00Z"}}"""
IMMUTABLE = """This operation is not permitted as the blob is immutable due to a policy.
RequestId:3f0c
ErrorCode:BlobImmutableDueToPolicy"""


def words_of(options: dict[str, str]) -> list[str]:
    return [word for key, text in options.items() for word in ("--option", f"{key}={text}")]


def refused(uri: str, options: dict[str, str], directory: Path) -> str:
    """The line with which a first write is refused."""
    source = directory / "rows.json"
    source.write_text('{"id": "a", "ms": 1700000000000}\n')
    answer = run("ingest", uri, source, *CREATE, *words_of(options))
    assert (answer.exit_code, answer.stdout) == (2, ""), answer
    (line,) = answer.stderr.splitlines()
    return line


def check_only_a_probe_is_left(uri: str, options: dict[str, str]) -> None:
    assert [path for path in files_of(open_storage(uri, Options(options))) if "/probe-" not in path] == []


def test_google_with_a_retention_policy_is_refused_before_a_table_is_written(
    fake_gcs: GoogleServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Google answers; the emulator keeps no retention."""
    call = GCSFileSystem.call

    def keep(client: GCSFileSystem, method: str, path: str, *names: str, **parts: Any) -> Any:
        if method == "DELETE":
            validate_response(403, RETAINED, path, names)
        return call(client, method, path, *names, **parts)

    uri = fake_gcs.uri(uuid.uuid4().hex)
    monkeypatch.setattr(GCSFileSystem, "call", keep)
    line = refused(uri, fake_gcs.options, tmp_path)
    assert "gs://lake" in line
    assert "remove the retention, immutability policy or hold there" in line
    check_only_a_probe_is_left(uri, fake_gcs.options)


def test_azure_with_an_immutability_policy_is_refused_before_a_table_is_written(
    azurite: AzureServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Azure answers; the emulator has no such policies."""

    def keep(objects: AzureObjects, key: str) -> None:
        failure = HttpResponseError(IMMUTABLE)
        failure.status_code = 409
        with objects._answering("delete", key):
            raise failure

    uri = azurite.uri(uuid.uuid4().hex)
    monkeypatch.setattr(AzureObjects, "delete", keep)
    line = refused(uri, azurite.options, tmp_path)
    assert "abfs://lake" in line
    assert "remove the retention, immutability policy or hold there" in line
    check_only_a_probe_is_left(uri, azurite.options)


@pytest.mark.parametrize("is_locked", [False, True], ids=["versions", "object lock"])
def test_s3_with_versions_or_object_lock_works_as_any_bucket(is_locked: bool, moto: S3Server) -> None:
    client, bucket = moto.client(), f"kept-{uuid.uuid4().hex}"
    client.create_bucket(Bucket=bucket, ObjectLockEnabledForBucket=is_locked)
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    if is_locked:
        rule = {"ObjectLockEnabled": "Enabled", "Rule": {"DefaultRetention": {"Mode": "COMPLIANCE", "Days": 1}}}
        client.put_object_lock_configuration(Bucket=bucket, ObjectLockConfiguration=rule)
    # Without the clean-up of `storage check`: in such a bucket, Moto lists the directories of deleted files.
    storage = open_storage(f"s3://{bucket}/t", Options(moto.options))
    for number, guarantee in enumerate(GUARANTEES):
        if guarantee.needs(storage):
            assert guarantee.broken_by(storage, f"check-{number}") is None, guarantee.name
    assert client.list_object_versions(Bucket=bucket)["DeleteMarkers"]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_off_is_named_with_its_cure(
    hours: int, seaweedfs: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = seaweedfs.uri(uuid.uuid4().hex)
    now: Callable[[], datetime] = botocore.auth.get_current_datetime
    with monkeypatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: now() + timedelta(hours=hours))
        line = refused(uri, seaweedfs.options, tmp_path)
    assert seaweedfs.endpoint in line
    assert "set this machine's clock by NTP" in line
    assert files_of(open_storage(uri, Options(seaweedfs.options))) == {}


TOO_OLD = "Server failed to authenticate the request.\nAuthenticationErrorDetail:Request date header too old: 'Thu'"
NO_TOKEN = "('invalid_grant: Invalid JWT: Token must be a short-lived token and in a reasonable timeframe.', {})"


@pytest.mark.parametrize("name", ["azurite", "fake_gcs"])
def test_a_clock_that_is_off_is_named_at_azure_and_google(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they answer; the emulators compare no times."""

    def refuse(failure: Exception) -> Callable[..., Any]:
        def call(*_: Any, **__: Any) -> Any:
            raise failure

        return call

    shorten_pauses(monkeypatch)
    monkeypatch.setattr(AioHttpTransport, "send", refuse(ClientAuthenticationError(TOO_OLD)))
    monkeypatch.setattr(GCSFileSystem, "call", refuse(RefreshError(NO_TOKEN)))  # type: ignore[no-untyped-call]
    server: AzureServer | GoogleServer = request.getfixturevalue(name)
    line = refused(server.uri(uuid.uuid4().hex), server.options, tmp_path)
    assert "set this machine's clock by NTP" in line

"""A wrong bucket, container, account, credential or address: one line that names what, where and the cure; exit code 2."""

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from s3fs import S3FileSystem

from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from support.run.command_line import run
from support.servers.cloud_servers import ACCOUNT, ACCOUNT_KEY, AzureServer, GoogleServer
from support.servers.hdfs.mini_cluster import HdfsServer
from support.servers.s3_servers import ACCESS_KEY, SECRET_KEY, S3Server
from support.tables.backends import files_of

OTHER_KEY = "b3RoZXIga2V5IG9mIHRoZSB0ZXN0cw=="


@dataclass(frozen=True, slots=True)
class Wrong:
    """A place, the options with which a user reaches for it, and what the answer names."""

    uri: str
    options: Mapping[str, str]
    named: tuple[str, ...]


def _google(server: GoogleServer, what: str, directory: Path) -> Wrong:
    match what:
        case "bucket":
            return Wrong("gs://no-such-bucket/t", server.options, ("no bucket 'no-such-bucket'", "URI"))
        case "file of no key":
            return Wrong(
                "gs://lake/t", {**server.options, "fsspec.token": __file__}, ("a file that isn't a key", "issued")
            )
        case "key without its parts" | "key that is cut off":
            key = {"type": "service_account", "client_email": "a@b", "token_uri": "https://x"}
            if what == "key that is cut off":
                key["private_key"] = "-----BEGIN PRIVATE KEY-----\nMIIE"
            place = directory / "key.json"
            place.write_text(json.dumps(key))
            wrong = {**server.options, "fsspec.token": str(place)}
            return Wrong("gs://lake/t", wrong, ("a file that isn't a key", "issued"))
        case _:
            wrong = {**server.options, "fsspec.token": "/no/such/secret-key.json"}
            return Wrong("gs://lake/t", wrong, ("fsspec.token names a file that is not there",))


def _azure(server: AzureServer, what: str) -> Wrong:
    connection = "fsspec.connection_string"
    match what:
        case "container":
            return Wrong("abfs://no-such-container/t", server.options, ("no container 'no-such-container'", "URI"))
        case "key":
            wrong = server.connection_string.replace(ACCOUNT_KEY, OTHER_KEY)
            return Wrong("abfs://lake/t", {connection: wrong}, ("abfs://lake", "failed to authenticate", "credentials"))
        case "text for a key":
            wrong = server.connection_string.replace(ACCOUNT_KEY, "no-base64-at-all!")
            return Wrong("abfs://lake/t", {connection: wrong}, ("abfs://lake", "check the permissions", "credentials"))
        case "account":
            wrong = server.connection_string.replace(ACCOUNT, "anotheraccount")
            return Wrong("abfs://lake/t", {connection: wrong}, ("no container 'lake'", "the account and the endpoint"))
        case "text for a connection":
            return Wrong(
                "abfs://lake/t", {connection: OTHER_KEY}, ("Connection string", "set the account and its credentials")
            )
        case _:
            return Wrong("abfs://lake/t", {}, ("Must provide", "set the account and its credentials"))


def _s3(server: S3Server, what: str) -> Wrong:
    if what == "bucket":
        return Wrong("s3://no-such-bucket/t", server.options, ("no-such-bucket", server.endpoint, "the endpoint"))
    without = {key: text for key, text in server.options.items() if ".key" not in key}
    if what == "profile":
        without["s3.profile-name"] = "nobody"
        return Wrong("s3://lake/t", without, ("profile (nobody) could not be found", server.endpoint, "credentials"))
    return Wrong("s3://lake/t", without, ("lake", server.endpoint, "locate credentials"))


CASES = {
    "fake_gcs": ("bucket", "file of a key", "file of no key", "key without its parts", "key that is cut off"),
    "azurite": ("container", "key", "text for a key", "account", "text for a connection", "nothing"),
    "moto": ("bucket", "nothing", "profile"),
}


def forget_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides the credentials and the configuration of AWS that the machine may have."""
    for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/no/such/file")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/no/such/file")


@pytest.fixture
def wrong(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Wrong:
    name, what = request.param
    forget_this_machine(monkeypatch)
    server = request.getfixturevalue(name)
    if isinstance(server, GoogleServer):
        return _google(server, what, tmp_path)
    return _azure(server, what) if isinstance(server, AzureServer) else _s3(server, what)


@pytest.mark.parametrize(
    "wrong",
    [pytest.param((name, what), id=f"{name}, {what}") for name, kinds in CASES.items() for what in kinds],
    indirect=True,
)
def test_a_wrong_place_or_credential_is_named_with_its_cure(wrong: Wrong, tmp_path: Path) -> None:
    source = tmp_path / "rows.json"
    source.write_text('{"id": "a", "ms": 1700000000000}\n')
    words = [word for key, text in wrong.options.items() for word in ("--option", f"{key}={text}")]
    create = ("--op", "upsert", "--create", "--record-key", "id", "--event-time", "ms")
    for verb in (("ingest", wrong.uri, source, *create), ("storage", "check", wrong.uri)):
        answer = run(*verb, *words)
        assert (answer.exit_code, answer.stdout) == (2, ""), answer
        (line,) = answer.stderr.splitlines()
        assert all(part in line for part in wrong.named), line
        for secret in (ACCOUNT_KEY, OTHER_KEY, "no-base64-at-all!", SECRET_KEY, ACCESS_KEY, "secret-key.json"):
            assert secret not in line
    answer = run("show", wrong.uri, *words)
    assert (answer.exit_code, len(answer.stderr.splitlines())) == (2, 1), answer
    assert wrong.uri in answer.stderr or all(part in answer.stderr for part in wrong.named)


KEYS: dict[str, str | None] = {
    "missing": None,
    "no JSON": "no JSON",
    "list": "[1]",
    "no type": "{}",
    "service account": '{"type": "service_account", "client_email": "a@b"}',
    "user": '{"type": "authorized_user"}',
    "external account": '{"type": "external_account"}',
}


@pytest.mark.parametrize("key", KEYS)
def test_a_malformed_key_of_google_in_the_environment_is_wrong_input(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, content = tmp_path / "key.json", KEYS[key]
    if content is not None:
        place.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(place))
    answer = run("show", f"gs://{uuid.uuid4()}/t")
    assert answer.exit_code == 2
    cure = "correct its path" if content is None else "issued for a service account"
    assert re.search(f"GOOGLE_APPLICATION_CREDENTIALS names a file .*: .*{cure}", answer.stderr)


CONFIGURATIONS = {
    "no end of a section": ("[default", "Unable to parse config file"),
    "a profile that is not there": ("[default]\nrole_arn = arn:x\nsource_profile = q", 'source_profile "q"'),
    "a session that is not there": ("[default]\nsso_session = q\nsso_account_id = 1\nsso_role_name = r", "sso-session"),
    "a source that is none": ("[default]\nrole_arn = arn:x\ncredential_source = q", 'credential source "q"'),
    "a process that says nothing": ("[default]\ncredential_process = echo", "AWS tools"),
    "a process that is not there": ("[default]\ncredential_process = /no/such/file", "AWS tools"),
    "a region that is none": ("[default]\nregion = no region", "region_name 'no region'"),
    "an endpoint that is none": ("[default]\nendpoint_url = nowhere", "Invalid endpoint"),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_malformed_configuration_of_aws_is_wrong_input(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, named = CONFIGURATIONS[case]
    (tmp_path / "config").write_text(content)
    forget_this_machine(monkeypatch)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    answer = run("show", f"s3://lake/{uuid.uuid4()}")
    assert (answer.exit_code, len(answer.stderr.splitlines())) == (2, 1), answer
    assert named in answer.stderr


@pytest.mark.parametrize("code", ["AuthorizationHeaderMalformed", "PermanentRedirect"])
def test_a_wrong_region_of_s3_is_wrong_input(code: str, moto: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Amazon answers; the servers of the tests know no regions."""

    def refuse(client: S3FileSystem, operation: str, **_: Any) -> dict[str, Any]:
        del client
        answer: Any = {"Error": {"Code": code, "Message": "the region 'us-east-1' is wrong; expecting 'eu-west-1'"}}
        raise OSError(22, "the region 'us-east-1' is wrong") from ClientError(answer, operation)

    monkeypatch.setattr(S3FileSystem, "call_s3", refuse)
    words = [word for key, text in moto.options.items() for word in ("--option", f"{key}={text}")]
    answer = run("show", f"s3://lake/{uuid.uuid4().hex}", *words)
    assert answer.exit_code == 2
    (line,) = answer.stderr.splitlines()
    assert "check the bucket in the table's URI, the endpoint and the region" in line


def test_what_hdfs_forbids_is_wrong_input(hdfs: HdfsServer, tmp_path: Path) -> None:
    uri = f"{hdfs.uri}/lake/{uuid.uuid4().hex}"
    ours = open_storage(uri, Options(hdfs.options))
    ours.put("file", b"data")
    source = tmp_path / "rows.json"
    source.write_text('{"id": "a", "ms": 1700000000000}\n')
    options = {**hdfs.options, "hadoop.user.name": "a-guest"}
    words = [word for key, text in options.items() for word in ("--option", f"{key}={text}")]
    create = ("--op", "upsert", "--create", "--record-key", "id", "--event-time", "ms")
    answer = run("ingest", uri, source, *create, *words)
    assert answer.exit_code == 2, answer
    (line,) = answer.stderr.splitlines()
    assert "user=a-guest" in line
    assert "check the permissions there and the credentials in use" in line
    # Its own probe of `.hoodie` made a directory, and no file.
    assert set(files_of(ours)) == {"file"}


def test_an_address_without_webhdfs_is_wrong_input(moto: S3Server) -> None:
    address = moto.endpoint.removeprefix("http://")
    answer = run("show", "hdfs://lake/t", "--option", f"dfs.namenode.http-address={address}")
    assert answer.exit_code == 2, answer
    (line,) = answer.stderr.splitlines()
    assert f"no WebHDFS is at http://{address}: set dfs.namenode.http-address to the web address" in line


@pytest.mark.parametrize(
    ("variable", "region"),  # a process has one client for each region
    [("AWS_WEB_IDENTITY_TOKEN_FILE", "us-west-1"), ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "us-west-2")],
)
def test_a_missing_file_of_a_token_does_not_look_like_a_missing_object(
    variable: str, region: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_this_machine(monkeypatch)
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/eventide")
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://localhost:1/")
    monkeypatch.setenv(variable, str(tmp_path / "token"))
    answer = run("show", f"s3://lake/{uuid.uuid4()}", "--option", f"fs.s3a.endpoint.region={region}")
    assert (answer.exit_code, len(answer.stderr.splitlines())) == (2, 1), answer
    assert str(tmp_path / "token") in answer.stderr

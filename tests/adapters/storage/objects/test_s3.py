"""S3 stores: those without conditional writes, their configuration, and that their secrets are shown nowhere."""

import pickle
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from s3fs import S3FileSystem

from eventide import Table
from eventide.storage_check import check_storage
from eventide_adapters.storage.objects.contract import UNSAFE_WRITES
from eventide_adapters.storage.objects.s3_config import S3Config
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, MissingFileError, RefusedError, StorageError
from eventide_core.ports import Capability, Storage
from support.servers.faulty_proxy import Fault, faulty_proxy
from support.servers.s3_servers import BUCKET, SECRET_KEY, S3Server
from support.servers.server_process import free_ports


def storage_on(server: S3Server, **options: str) -> Storage:
    return open_storage(f"s3a://{BUCKET}/{uuid.uuid4().hex}", Options(server.options | options))


def test_a_store_that_keeps_conditions_is_found_to(moto: S3Server) -> None:
    storage = storage_on(moto)
    assert storage.capabilities == Capability.PUT_IF_ABSENT | Capability.SERVER_COPY
    assert storage.list("") == ()  # the probe has left nothing


def test_a_store_that_ignores_conditions_is_refused_before_the_first_create(rclone: S3Server) -> None:
    storage = storage_on(rclone)
    storage.put("source", b"data")
    creates: tuple[Callable[[], bool], ...] = (
        lambda: storage.put_if_absent("file", b"ours"),
        lambda: storage.copy_if_absent("source", "file"),
        lambda: storage.open_output("file").commit(),
    )
    for create in creates:
        with pytest.raises(RefusedError, match=f"ignores or refuses the condition.*{UNSAFE_WRITES}=true"):
            create()
    assert storage.stat("file") is None
    assert storage.read("source") == b"data"


@pytest.mark.parametrize("status", [501, 400])
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_store_that_refuses_conditions_is_no_failure_to_try_again(moto: S3Server, method: str, status: int) -> None:
    """By PutObject, or only at the end of an upload in parts."""
    with faulty_proxy(moto.endpoint.removeprefix("http://")) as proxy:
        proxy.refused_conditions = {method: status}
        behind = replace(moto, endpoint=f"http://{proxy.address}")
        storage = storage_on(behind)
        with pytest.raises(RefusedError, match=f"ignores or refuses the condition.*{UNSAFE_WRITES}=true") as refused:
            storage.put_if_absent("file", b"ours")
        assert refused.value.exit_code == 3
        assert storage.list("") == ()
        declared = storage_on(behind, **{UNSAFE_WRITES: "true"})
        assert declared.put_if_absent("file", b"ours")
        assert not declared.put_if_absent("file", b"second")


def test_a_check_of_a_store_that_refuses_conditions_names_what_it_lacks(moto: S3Server) -> None:
    with faulty_proxy(moto.endpoint.removeprefix("http://")) as proxy:
        proxy.refused_conditions = {"PUT": 501, "POST": 501}
        behind = replace(moto, endpoint=f"http://{proxy.address}")
        check = check_storage(behind.uri("checked"), behind.options)
        assert not check.ok
        broken = {one.name: one.broken or "" for one in check.checks if one.broken is not None}
        assert UNSAFE_WRITES in broken["exclusive create"]
        assert "read after write" not in broken


@pytest.mark.usefixtures("short_pauses")
def test_a_store_that_fails_for_a_while_is_not_taken_for_one_that_refuses_conditions(moto: S3Server) -> None:
    with faulty_proxy(moto.endpoint.removeprefix("http://")) as proxy:
        storage = storage_on(replace(moto, endpoint=f"http://{proxy.address}"))
        tries = 6  # of the client, for one request
        proxy.choose = lambda method, _, number: Fault.UNAVAILABLE if method == "PUT" and number < tries else None
        with pytest.raises(StorageError, match="Service Unavailable") as failed:
            storage.put_if_absent("file", b"ours")
        assert failed.value.exit_code == 5
        assert storage.put_if_absent("file", b"ours")


def test_a_user_who_declares_exclusive_use_may_write_to_such_a_store(rclone: S3Server) -> None:
    storage = storage_on(rclone, **{UNSAFE_WRITES: "true"})
    large = b"0123456789abcdef" * (1 << 17)
    assert storage.put_if_absent("file", large)
    assert not storage.put_if_absent("file", b"second")
    assert storage.copy_if_absent("file", "copy")
    assert not storage.copy_if_absent("file", "copy")
    assert storage.read("copy") == storage.read("file") == large


def test_a_file_above_one_part_is_created_in_parts_and_once(moto: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventide_adapters.storage.objects.s3.PART_BYTES", 5 << 20)
    monkeypatch.setattr("eventide_adapters.storage.remote_streams.PART_BYTES", 5 << 20)
    monkeypatch.setattr("eventide_adapters.storage.objects.s3.COPY_PART_BYTES", 5 << 20)
    storage = storage_on(moto)
    data = bytes(range(256)) * (44 << 10)
    for expected in (True, False):
        output = storage.open_output("file")
        output.write(data)
        assert output.commit() is expected
        assert storage.copy_if_absent("file", "copy") is expected
    head = moto.client().head_object(Bucket=BUCKET, Key=f"{storage.root.partition(BUCKET)[2][1:]}/copy")
    assert head["ETag"].strip('"').endswith("-3")  # parts
    assert storage.read("file") == storage.read("copy") == data


def test_a_large_range_comes_in_pieces_and_is_the_same(moto: S3Server) -> None:
    storage = storage_on(moto)
    data = bytes(range(251)) * (80 << 10)  # 20 MB, of which a request reads 8 MiB at most
    storage.put("file", data)
    assert storage.read_range("file", 100, len(data)) == data[100:]
    with storage.open_input("file") as stream:
        stream.seek(70_001)
        assert stream.read(18_000_000) == data[70_001:18_070_001]
        storage.delete("file")
        with pytest.raises(MissingFileError, match="file"):
            stream.read(300_000)


def test_more_entries_than_a_page_holds_are_listed(moto: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_on(moto)
    for number in range(5):
        storage.put(f"part=a/{number}", b"")
    call: Any = S3FileSystem.call_s3

    def in_pages_of_two(client: S3FileSystem, operation: str, **arguments: Any) -> Any:
        page = {"MaxKeys": 2} if operation == "list_objects_v2" else {}
        return call(client, operation, **arguments, **page)

    monkeypatch.setattr(S3FileSystem, "call_s3", in_pages_of_two)
    assert [info.path for info in storage.list("part=a")] == [f"part=a/{number}" for number in range(5)]


def test_the_key_that_marks_a_directory_is_no_file(moto: S3Server) -> None:
    storage = storage_on(moto)
    prefix = storage.root.partition(f"{BUCKET}/")[2]
    moto.client().put_object(Bucket=BUCKET, Key=f"{prefix}/part=a/", Body=b"")
    assert storage.list("part=a") == ()
    info = storage.stat("part=a")
    assert info is not None
    assert info.is_directory
    assert storage.delete("part=a")
    assert storage.stat("part=a") is None


def test_keys_that_are_no_path_are_in_no_listing(moto: S3Server) -> None:
    """Other tools may put them below a table, and a table may be a whole bucket."""
    bucket = uuid.uuid4().hex
    moto.client().create_bucket(Bucket=bucket)
    for key in ("/leading", "//twice", "/", "a//b", "a/../b", "a/..", "a/./b", "..", "../b", ".", "a/b", "b"):
        moto.client().put_object(Bucket=bucket, Key=key, Body=b"of others")
    storage = open_storage(f"s3://{bucket}", Options(moto.options))
    assert [(info.path, info.is_directory) for info in storage.list("")] == [("a", True), ("b", False)]
    assert [info.path for info in storage.list("a")] == ["a/b"]


def test_a_bucket_that_is_not_there_is_named(moto: S3Server) -> None:
    with pytest.raises(StorageError, match=r"in the bucket none-such at .* does not exist; check the bucket"):
        Table.open("s3://none-such/trips", moto.options)
    with pytest.raises(StorageError, match="none-such"):
        open_storage("s3://none-such/trips", Options(moto.options | {UNSAFE_WRITES: "true"})).put("file", b"")


@pytest.mark.usefixtures("short_pauses")
def test_a_server_that_is_gone_is_named(moto: S3Server) -> None:
    (port,) = free_ports(1)
    options = moto.options | {"fs.s3a.endpoint": f"127.0.0.1:{port}", "fs.s3a.connection.ssl.enabled": "false"}
    with pytest.raises(StorageError, match=f"cannot read 'trips/file' in the bucket lake at http://127.0.0.1:{port}"):
        open_storage("s3://lake/trips", Options(options)).read("file")


def test_no_secret_is_shown(moto: S3Server) -> None:
    options = Options(moto.options | {"fs.s3a.session.token": "a-token"})
    storage = open_storage(f"s3://{BUCKET}/none", options)
    with pytest.raises(MissingFileError) as failure:
        storage.read("file")
    for shown in (repr(options), repr(S3Config.of(options)), repr(storage), storage.root, str(failure.value)):
        assert SECRET_KEY not in shown
        assert "a-token" not in shown
    with pytest.raises(ConfigError) as refused:
        open_storage(f"s3://key:{SECRET_KEY}@{BUCKET}/trips", options)
    assert SECRET_KEY not in str(refused.value)


def test_a_table_shows_no_secret(moto: S3Server) -> None:
    storage = storage_on(moto)
    table = "hoodie.table.name=t\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.version=6\nhoodie.table.checksum=498511606\n"
    storage.put(".hoodie/hoodie.properties", table.encode())
    assert SECRET_KEY not in repr(Table.open(storage.root, moto.options))


def test_an_executors_copy_asks_the_store_nothing_again(moto: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_on(moto)
    capabilities = storage.capabilities

    def fail(*_: object, **__: object) -> dict[str, object]:
        raise AssertionError("a request")

    copy = pickle.loads(pickle.dumps(storage))
    monkeypatch.setattr(S3FileSystem, "call_s3", fail)
    assert copy.capabilities == capabilities


@pytest.mark.parametrize("prefix", ["", "spark.hadoop."])
def test_hadoops_keys_are_understood(prefix: str) -> None:
    options = {
        "fs.s3a.endpoint": "minio:9000",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.endpoint.region": "eu-central-1",
        "fs.s3a.access.key": "id",
        "fs.s3a.secret.key": "secret",
        "fs.s3a.session.token": "token",
    }
    config = S3Config.of(Options({prefix + key: value for key, value in options.items()}))
    assert (config.endpoint, config.region) == ("http://minio:9000", "eu-central-1")
    assert (config.access_key, config.secret_key, config.session_token) == ("id", "secret", "token")
    assert config.has_path_style


def test_icebergs_keys_are_understood_and_amazon_is_the_default() -> None:
    config = S3Config.of(
        Options({"s3.access-key-id": "id", "s3.secret-access-key": "secret", "s3.region": "us-west-2"})
    )
    assert (config.access_key, config.secret_key, config.region) == ("id", "secret", "us-west-2")
    assert config.endpoint is None
    assert not config.has_path_style
    assert S3Config.of(Options({"s3.profile-name": "lake"})).profile == "lake"
    at_amazon = Options({"s3.endpoint": "https://s3.eu-west-1.amazonaws.com"})
    assert not S3Config.of(at_amazon).has_path_style


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"fs.s3a.access.key": "hidden"}, "fs.s3a.secret.key"),
        ({"s3.secret-access-key": "hidden"}, "s3.access-key-id"),
        ({"s3.request-timeout": "0"}, "s3.request-timeout"),
        ({"fs.s3a.path.style.access": "perhaps"}, "is not true or false"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused(options: dict[str, str], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as refused:
        S3Config.of(Options(options))
    assert "hidden" not in str(refused.value)

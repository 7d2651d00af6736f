"""What Google Cloud Storage and Azure need: packages, settings, and requests that only they have."""

import sys
import uuid
from typing import Any

import pytest
from gcsfs.core import GCSFileSystem

from eventide_adapters.storage.objects.azure import AzureObjects
from eventide_adapters.storage.objects.cloud import keywords
from eventide_adapters.storage.objects.contract import PART_BYTES
from eventide_adapters.storage.objects.google import GoogleObjects
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.ports import Capability, Storage
from support.servers.cloud_servers import CloudServer, GoogleServer


@pytest.fixture(params=["fake_gcs", "azurite"])
def server(request: pytest.FixtureRequest) -> CloudServer:
    cloud: CloudServer = request.getfixturevalue(request.param)
    return cloud


def opened(server: CloudServer, place: str | None = None, **more: str) -> Storage:
    return open_storage(server.uri(place or uuid.uuid4().hex), Options({**server.options, **more}))


@pytest.mark.parametrize(
    ("uri", "package"),
    [
        ("gs://bucket/trips", r"gcsfs.*pip install .*\[gs\]"),
        ("abfs://container@account.dfs.core.windows.net/trips", r"adlfs.*pip install .*\[abfs\]"),
        ("abfss://container/trips", r"adlfs.*pip install .*\[abfs\]"),
    ],
)
def test_a_store_whose_package_is_missing_names_it(uri: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("google", "azure"):
        monkeypatch.delitem(sys.modules, f"eventide_adapters.storage.objects.{name}", raising=False)
    for name in ("gcsfs", "gcsfs.core", "adlfs"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=package):
        open_storage(uri, Options({}))


def test_settings_are_keywords_of_the_package_and_are_not_shown() -> None:
    options = Options({"fsspec.account_key": "hidden", "fsspec.anon": "False", "fsspec.read_timeout": "7"})
    storage = open_storage("abfss://lake@account.dfs.core.windows.net/trips/", options)
    assert storage.root == "abfss://lake@account.dfs.core.windows.net/trips"
    objects: AzureObjects = vars(storage)["_objects"]
    expected = {"account_name": "account", "account_key": "hidden", "anon": False, "read_timeout": 7}
    assert (objects.bucket, keywords(objects.settings)) == ("lake", expected)
    assert "hidden" not in repr(vars(storage))


def test_the_store_is_found_to_keep_conditions(server: CloudServer) -> None:
    storage = opened(server)
    assert storage.capabilities == Capability.PUT_IF_ABSENT
    assert storage.list("") == ()


@pytest.mark.parametrize("kind", [GoogleObjects, AzureObjects], ids=lambda kind: kind.scheme)
def test_a_store_that_ignores_conditions_is_refused_and_left_clean(
    kind: type, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server: CloudServer = request.getfixturevalue("fake_gcs" if kind is GoogleObjects else "azurite")
    create = kind.create  # type: ignore[attr-defined]

    def careless(objects: Any, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        del is_conditional
        answer: bool = create(objects, key, data, is_conditional=False)
        return answer

    monkeypatch.setattr(kind, "create", careless)
    storage = opened(server)
    with pytest.raises(RefusedError, match=r"ignores or refuses the condition.*unsafe\.writes=true"):
        storage.put_if_absent("file", b"data")
    assert storage.list("") == ()


def test_a_file_above_one_part_is_sent_in_parts_and_appears_once(server: CloudServer) -> None:
    storage, data = opened(server), bytes(range(256)) * (5 * PART_BYTES // 512)  # two parts and a half
    outputs = [storage.open_output("large") for _ in range(2)]
    for output in outputs:
        for start in range(0, len(data), 1 << 20):
            output.write(data[start : start + (1 << 20)])
    assert storage.stat("large") is None
    assert [output.commit() for output in outputs] == [True, False]
    assert storage.read("large") == data
    assert storage.copy_if_absent("large", "copy")
    assert not storage.copy_if_absent("large", "copy")
    assert storage.read("copy") == data


def test_a_writer_that_dies_between_parts_is_in_nobodys_way(server: CloudServer) -> None:
    storage, data = opened(server), bytes(3 * PART_BYTES)
    dead = storage.open_output("large")
    dead.write(data)
    assert storage.list("") == ()
    output = storage.open_output("large")
    output.write(data)
    assert output.commit()
    assert not dead.commit()


def test_more_entries_than_a_page_holds_are_listed(server: CloudServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from azure.storage.blob.aio import ContainerClient

    call, walk = GCSFileSystem.call, ContainerClient.walk_blobs

    def small_pages(client: GCSFileSystem, method: str, path: str, *names: str, **parts: Any) -> Any:
        more = {**parts, "maxResults": 2} if "maxResults" in parts else parts
        return call(client, method, path, *names, **more)

    monkeypatch.setattr(GCSFileSystem, "call", small_pages)
    monkeypatch.setattr(
        ContainerClient, "walk_blobs", lambda container, **more: walk(container, **{**more, "results_per_page": 2})
    )
    storage = opened(server)
    names = [f"p={number}/f" for number in range(3)] + [f"file{number}" for number in range(4)]
    for name in names:
        storage.put(name, b"data")
    assert [info.path for info in storage.list("")] == [*(f"file{n}" for n in range(4)), *(f"p={n}" for n in range(3))]


def test_a_name_that_is_taken_when_its_upload_begins_is_known_at_the_commit(
    fake_gcs: GoogleServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Google answers; the emulator checks the condition only at the end."""
    call = GCSFileSystem.call

    def taken(client: GCSFileSystem, method: str, path: str, *names: str, **parts: Any) -> Any:
        if parts.get("uploadType") == "resumable":
            raise FileExistsError(path)
        return call(client, method, path, *names, **parts)

    monkeypatch.setattr(GCSFileSystem, "call", taken)
    output = opened(fake_gcs).open_output("large")
    for _ in range(4):
        output.write(bytes(PART_BYTES))
    assert not output.commit()


def test_a_key_that_the_store_would_list_with_another_letter_is_refused(server: CloudServer) -> None:
    storage = opened(server)
    path, long = r"name=a\b/file", r"name=a\b/long"
    if server.uri("x").startswith("gs:"):
        assert storage.put_if_absent(path, b"1")
        assert [info.path for info in storage.list(r"name=a\b")] == [path]
        return
    with pytest.raises(RefusedError, match=r"lists a backslash as a slash, so '.*file' would not be found again"):
        storage.put_if_absent(path, b"1")
    output = storage.open_output(long)
    with pytest.raises(RefusedError, match="would not be found again"):
        output.write(bytes(2 * PART_BYTES))
    output.abort()
    assert storage.list("") == ()

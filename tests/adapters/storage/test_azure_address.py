"""An Azure account that does not exist, or does not respond, is reported before Azure's library repeats requests."""

import socket
from typing import Any, NoReturn

import pytest

from eventide_adapters.storage.objects import azure
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import StorageAccessError, StorageError

KEY = {"fsspec.account_key": "b3RoZXIga2V5"}


@pytest.fixture(autouse=True)
def no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("Azure's library was asked")

    monkeypatch.setattr(azure, "sync", refuse)
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def _fail_with(failure: OSError, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    asked: list[Any] = []

    def connect(address: Any, *_: object) -> NoReturn:
        asked.append(address)
        raise failure

    monkeypatch.setattr(socket, "create_connection", connect)
    return asked


def test_an_account_without_a_host_is_wrong_input(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _fail_with(socket.gaierror(socket.EAI_NONAME, "Name or service not known"), monkeypatch)
    storage = open_storage("abfs://lake@nosuch.dfs.core.windows.net/t", Options(KEY))
    with pytest.raises(
        StorageAccessError, match=r"there is no host 'nosuch\.blob\.core\.windows\.net': check the account"
    ):
        storage.list("")
    assert asked == [("nosuch.blob.core.windows.net", 443)]


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), "cannot be resolved: Temporary"),
        (ConnectionRefusedError(111, "Connection refused"), "cannot connect to nosuch.*:443: .*Connection refused"),
        (TimeoutError("timed out"), "cannot connect to nosuch.*:443: timed out"),
    ],
)
def test_a_store_that_does_not_respond_is_a_failure(
    failure: OSError, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fail_with(failure, monkeypatch)
    storage = open_storage("abfs://lake@nosuch.dfs.core.windows.net/t", Options(KEY))
    with pytest.raises(StorageError, match=f"{message}.*check the address and the network") as raised:
        storage.stat("x")
    assert raised.value.exit_code == 5


def test_behind_a_proxy_the_proxy_finds_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    asked = _fail_with(socket.gaierror(socket.EAI_NONAME, "Name or service not known"), monkeypatch)
    with pytest.raises(StorageError, match="was asked"):
        open_storage("abfs://lake@nosuch.dfs.core.windows.net/t", Options(KEY)).list("")
    assert asked == []

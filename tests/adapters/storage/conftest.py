"""What the tests of faulty stores share. `store` is theirs: a store behind a proxy."""

import pytest

from support.faults.stores import FaultyStore, shorten_pauses
from support.servers.faulty_proxy import FaultyProxy


@pytest.fixture
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clients repeat a request soon."""
    shorten_pauses(monkeypatch)


@pytest.fixture
def proxy(store: FaultyStore) -> FaultyProxy:
    return store.proxy

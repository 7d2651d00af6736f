"""The contract of `ports.Storage` as tests, for every storage.

To test your own storage, for example one with symbolic links:

    class TestMyStorage(StorageContract, SymbolicLinkContract):
        @pytest.fixture
        def case(self) -> StorageCase:
            return StorageCase(MyStorage(...))

Not checked: the state after a loss of power, and whether two machines see each other's writes.
"""

import pytest

from eventide.testing.storage_contract.case import StorageCase
from eventide.testing.storage_contract.content import BehindContract, ContentContract
from eventide.testing.storage_contract.keys import KeyContract
from eventide.testing.storage_contract.links import HardLinkContract, LinkContract, SymbolicLinkContract
from eventide.testing.storage_contract.names import NameContract
from eventide.testing.storage_contract.races import RaceContract
from eventide.testing.storage_contract.versions import VersionContract
from eventide_adapters.storage.guarantees import GUARANTEES, Guarantee
from eventide_core.ports import Capability, KeyedFiles, Storage, VersionedFiles

__all__ = [
    "BehindContract",
    "HardLinkContract",
    "KeyContract",
    "LinkContract",
    "StorageCase",
    "StorageContract",
    "SymbolicLinkContract",
    "VersionContract",
]


class StorageContract(ContentContract, RaceContract, NameContract):
    """The contract of every storage.

    Inherit it, add the contract of the supported links, and override the fixture `case`.
    """

    @pytest.mark.parametrize("guarantee", GUARANTEES, ids=lambda guarantee: guarantee.name)
    def test_the_storage_keeps_what_storage_check_tries(self, storage: Storage, guarantee: Guarantee) -> None:
        if guarantee.needs(storage):
            assert guarantee.broken_by(storage, "check") is None

    def test_the_contract_covers_every_capability_of_the_storage(self, storage: Storage) -> None:
        assert Capability.PUT_IF_ABSENT in storage.capabilities
        assert (Capability.SYMLINK in storage.capabilities) == isinstance(self, SymbolicLinkContract)
        assert (Capability.HARDLINK in storage.capabilities) == isinstance(self, HardLinkContract)
        assert isinstance(storage, VersionedFiles) == isinstance(self, VersionContract)
        assert isinstance(storage, KeyedFiles) == isinstance(self, KeyContract)

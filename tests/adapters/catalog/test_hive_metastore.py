"""A missing metastore. For a real one, see tests/core/service/maintenance/test_sync.py."""

import pytest

from eventide_adapters.catalog.hive_metastore import HiveMetastore
from eventide_adapters.catalog.metastore_address import Address, metastore_addresses
from eventide_core.errors import CatalogError, ConfigError
from support.servers.server_process import free_ports


def test_addresses_stand_behind_commas_and_have_hives_port() -> None:
    addresses = metastore_addresses("thrift://one:1234, thrift://two", "o")

    assert [str(address) for address in addresses] == ["thrift://one:1234", "thrift://two:9083"]


@pytest.mark.parametrize("uris", ["http://one:9083", "one:9083", "thrift://", "thrift://one:port"])
def test_what_is_no_address_is_refused(uris: str) -> None:
    with pytest.raises(ConfigError, match="option o: "):
        metastore_addresses(uris, "o")


def test_an_unreachable_metastore_is_a_typed_error_that_names_every_address() -> None:
    one, two = (Address("127.0.0.1", port) for port in free_ports(2))

    with pytest.raises(CatalogError, match=rf"no Hive Metastore responds: {one}: .*; {two}: ") as told:
        HiveMetastore((one, two))
    assert told.value.exit_code == 5

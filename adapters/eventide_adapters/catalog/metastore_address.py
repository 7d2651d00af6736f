"""The addresses of a Hive Metastore: `thrift://host:9083`, several separated by commas."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from eventide_core.errors import ConfigError

PORT_DEFAULT = 9083  # Hive's
URIS_DEFAULT = f"thrift://localhost:{PORT_DEFAULT}"  # Hudi's


@dataclass(frozen=True, slots=True)
class Address:
    """One address of a Metastore. `port` is Hive's 9083 if the URI states none.

    `host` is a name or an IP address, without brackets.
    """

    host: str
    port: int

    def __str__(self) -> str:
        return f"thrift://{self.host}:{self.port}"


def metastore_addresses(uris: str, option: str) -> tuple[Address, ...]:
    """The addresses, in order. Raises ConfigError, naming `option`."""
    return tuple(_address(uri.strip(), option) for uri in uris.split(",") if uri.strip())


def _address(uri: str, option: str) -> Address:
    try:
        parts = urlsplit(uri)
        if parts.scheme == "thrift" and parts.hostname:
            return Address(parts.hostname, parts.port or PORT_DEFAULT)
    except ValueError:
        pass
    raise ConfigError(f"option {option}: {uri!r} is not of the form thrift://host:{PORT_DEFAULT}")

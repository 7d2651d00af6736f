"""The certificate of a store's server, which the clients of the stores ask for again and again while it isn't trusted."""

import os
import socket
import ssl
from contextlib import suppress
from typing import Final
from urllib.parse import urlsplit

from eventide_core.errors import StorageAccessError

_TIMEOUT_SECONDS: Final = 5
_PROXIES: Final = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def untrusted_certificate(message: str, why: str) -> StorageAccessError:
    """The error for a server whose certificate is not trusted."""
    return StorageAccessError(
        f"{message}: its certificate is not trusted ({why}); here and on executors, let SSL_CERT_FILE (S3: AWS_CA_BUNDLE) "
        "name a PEM file with the certificate of its authority, and reach the server by a name that its certificate has"
    )


def why_untrusted(address: str, authorities: str | None = None) -> str | None:
    """Why the certificate at an `https://` address isn't trusted; None if it is, or if nobody answers there.

    `authorities` is a PEM file, by default the system's. Where a proxy stands in between, its client has to find out.
    """
    parts = urlsplit(address)
    if parts.scheme != "https" or parts.hostname is None or any(map(os.environ.get, _PROXIES)):
        return None
    place = (parts.hostname, parts.port or 443)
    with suppress(OSError):
        try:
            with socket.create_connection(place, _TIMEOUT_SECONDS) as connection:
                ssl.create_default_context(cafile=authorities).wrap_socket(
                    connection, server_hostname=parts.hostname
                ).close()
        except ssl.SSLCertVerificationError as failure:
            return failure.verify_message
    return None

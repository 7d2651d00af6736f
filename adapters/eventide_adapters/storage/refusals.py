"""Distinguishes a storage's refusal, which another try doesn't change, from its failure."""

import errno
import re
import ssl
from typing import Final

from eventide_adapters.aws_credentials import MISSING
from eventide_adapters.storage.certificates import untrusted_certificate
from eventide_core.errors import StorageAccessError, StorageError

_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_STATUSES: Final = (401, 403)
# With which Azure answers a delete or a replacement that a policy forbids.
_CONFLICT: Final = 409
_KINDS: Final = frozenset(
    {
        *MISSING,
        # google-auth and azure-core.
        "DefaultCredentialsError",
        "RefreshError",
        "ClientAuthenticationError",
        "CredentialUnavailableError",
        # A malformed account key.
        "AzureSigningError",
        # HDFS's names, as WebHDFS returns them.
        "AccessControlException",
        "AuthorizationException",
        "SecurityException",
        "InvalidToken",
    }
)


# Words of the stores' messages, in lower case, for a refusal that other permissions or credentials don't cure.
_CURES: Final = (
    (
        (
            "difference between the request time",  # S3
            "date header too old",  # Azure
            "reasonable timeframe",  # Google
        ),
        "the clocks of this machine and of the store differ too much: set this machine's clock by NTP",
    ),
    (
        (
            "retention policy",  # Google, of buckets and of objects
            "-based hold",
            "temporary hold",
            "immutable due to",  # Azure, by a policy or by a legal hold
        ),
        "the store keeps what a table must delete: remove the retention, immutability policy or hold there",
    ),
)

_UNTRUSTED: Final = re.compile(r"certificate verify failed(?:: )?(?P<why>[^(\]]*)")

# Words of the messages of Python's clients, in lower case, if nobody accepted their request.
_UNREACHED: Final = (
    "connection refused",
    "could not connect to the endpoint",
    "cannot connect to host",
    "name or service not known",
    "failed to resolve",
    "no route to host",
    "network is unreachable",
)


def storage_error(message: str, failure: BaseException) -> StorageError:
    """The typed error of a failure: StorageAccessError if the storage refused the access or the credentials."""
    is_refused, text = is_refusal(failure), str(failure).lower()
    if "wrong_version_number" in text:
        return StorageAccessError(
            f"{message}; the server there answers without TLS: begin its address with http:// (HDFS: "
            "dfs.http.policy=HTTP_ONLY), or name its address with TLS"
        )
    if (untrusted := _UNTRUSTED.search(text)) is not None:
        return untrusted_certificate(message, untrusted["why"].strip())
    if isinstance(failure, OSError) and failure.errno == errno.ENOTDIR:
        return StorageAccessError(f"{message}; a directory of this path is a file: correct the path")
    if is_refused or getattr(failure, "status_code", None) == _CONFLICT:
        for words, cure in _CURES:
            if any(word in text for word in words):
                return StorageAccessError(f"{message}; {cure}")
    if is_refused:
        return StorageAccessError(f"{message}; check the permissions there and the credentials in use")
    if any(words in text for words in _UNREACHED):
        return StorageError(f"{message}; check the address and the network, and whether the store runs")
    return StorageError(message)


def is_refusal(failure: BaseException) -> bool:
    """Whether the storage, or its client library, refused the access or the credentials."""
    # The number of an SSLError is OpenSSL's.
    number = failure.errno if isinstance(failure, OSError) and not isinstance(failure, ssl.SSLError) else None
    if isinstance(failure, PermissionError) or number in _REFUSED:
        return True
    if type(failure) is OSError and str(failure).startswith("Forbidden:"):  # gcsfs
        return True
    # `kind` is the kind of WebHDFS's errors; the packages of the object stores name the status of a response differently.
    if not _KINDS.isdisjoint({type(failure).__name__, getattr(failure, "kind", None)}):
        return True
    return any(getattr(failure, name, None) in _STATUSES for name in ("status_code", "code", "status"))

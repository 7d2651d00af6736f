"""Tells a storage's refusal, which another try doesn't change, from its failure."""

import errno
from typing import Final

from eventide_core.errors import StorageAccessError, StorageError

_REFUSED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_STATUSES: Final = (401, 403)
_KINDS: Final = frozenset(
    {
        # botocore: there are no credentials, or only a part of them.
        "NoCredentialsError",
        "PartialCredentialsError",
        "CredentialRetrievalError",
        "TokenRetrievalError",
        "UnauthorizedSSOTokenError",
        # google-auth and azure-core.
        "DefaultCredentialsError",
        "RefreshError",
        "ClientAuthenticationError",
        "CredentialUnavailableError",
        # An account key that is no key.
        "AzureSigningError",
        # HDFS's names, as WebHDFS returns them.
        "AccessControlException",
        "AuthorizationException",
        "SecurityException",
        "InvalidToken",
    }
)


def storage_error(message: str, failure: BaseException) -> StorageError:
    """The typed error of a failure: StorageAccessError if the storage refused the access or the credentials."""
    if is_refusal(failure):
        return StorageAccessError(f"{message}; check the permissions there and the credentials in use")
    return StorageError(message)


def is_refusal(failure: BaseException) -> bool:
    """Whether the storage, or the library that speaks to it, refused the access or the credentials."""
    if isinstance(failure, PermissionError) or (isinstance(failure, OSError) and failure.errno in _REFUSED):
        return True
    if type(failure) is OSError and str(failure).startswith("Forbidden:"):  # gcsfs
        return True
    # `kind` is that of WebHDFS's errors; the packages of the object stores name the status of a response differently.
    if not _KINDS.isdisjoint({type(failure).__name__, getattr(failure, "kind", None)}):
        return True
    return any(getattr(failure, name, None) in _STATUSES for name in ("status_code", "code", "status"))

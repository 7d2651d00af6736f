"""What the objects of Google Cloud Storage and Azure have in common: marked creates, and settings of fsspec's packages.

The packages repeat requests without reporting it, so "the name is taken" can be the response to the repeat of a create
that succeeded. Therefore, each create gives its object a unique mark as metadata, as on S3 (s3.py).
"""

import json
import os
import uuid
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from eventide_adapters.storage.certificates import untrusted_certificate, why_untrusted
from eventide_adapters.storage.objects.contract import PART_BYTES, StoredObject, Upload
from eventide_adapters.storage.refusals import storage_error
from eventide_adapters.storage.secret_texts import harmless, secrets_in, without_secrets
from eventide_core.errors import EventideError, StorageAccessError, StorageError

# Azure allows no hyphen in the name of a metadatum.
MARK: Final = "eventide_write"

_DEFAULT_KEY: Final = "GOOGLE_APPLICATION_CREDENTIALS"
_OF_USER: Final = {"refresh_token", "client_id", "client_secret"}
_FLAGS: Final = {"true": True, "false": False}
_NUMBERS: Final = ("timeout", "concurrency", "blocksize", "block_size")


@dataclass(frozen=True, slots=True)
class CloudObjects(ABC):
    """The common part of contract.Objects.

    `bucket` is a bucket of Google Cloud Storage or a container of Azure, and `scheme` is the URI's. `settings` are
    keywords of the store's package, which may include secrets. `allows_unsafe_writes`: the user promises that nobody else
    writes, so the store need not support conditional requests.
    """

    bucket: str
    settings: tuple[tuple[str, str], ...] = field(repr=False)
    allows_unsafe_writes: bool

    scheme: ClassVar[str]
    container: ClassVar[str]
    """What the store calls a bucket."""

    @property
    def where(self) -> str:
        return f"the store of {self.scheme}://{self.bucket}"

    @abstractmethod
    def head(self, key: str) -> StoredObject | None: ...

    @abstractmethod
    def _read(self, key: str, offset: int = 0, length: int | None = None) -> tuple[bytes, str] | None:
        """The object, or a range of it, and its version; None if it is absent."""

    @abstractmethod
    def upload(self, key: str) -> Upload: ...

    @abstractmethod
    def _is_taken(self, failure: Exception, stored: StoredObject | None) -> bool:
        """Whether this is the response to a create of a name that exists. `stored` is what has the name now."""

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        content = self._read(key, offset, length)
        return None if content is None else content[0]

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object and its version; None if it is absent."""
        return self._read(key)

    def copy(self, source: StoredObject, key: str, *, is_conditional: bool = True) -> bool:
        """Copies through the client, in parts."""
        upload = self.upload(key)
        content = BytesIO()  # neither store requires that an upload is repeated
        try:
            for start in range(0, source.size, PART_BYTES):
                part = self._read(source.key, start, min(PART_BYTES, source.size - start))
                if part is None or part[1] != source.etag:
                    raise StorageError(f"{source.key!r} in {self.where} was changed or removed while it was copied")
                upload.send(part[0])
            return upload.complete(content, is_conditional=is_conditional)
        finally:
            upload.abort()

    def _create(self, key: str, send: Callable[[dict[str, str]], object], mark: str | None = None) -> bool:
        """Sends a create with a mark as metadata. Returns False if the name is taken by another create."""
        mark = mark or uuid.uuid4().hex
        with self._answering("write", key):
            try:
                send({MARK: mark})
            except Exception as failure:  # each package has different errors
                stored = self.head(key)
                if stored is not None and stored.mark == mark:
                    return True
                if self._is_taken(failure, stored):
                    return False
                raise
        return True

    def _no_bucket(self) -> StorageAccessError:
        return StorageAccessError(
            f"{self.where} has no {self.container} {self.bucket!r}: check the table's URI, the account and the endpoint"
        )

    def _answering(self, verb: str, key: str) -> AbstractContextManager[None]:
        return answering(verb, key, self.where, self.settings)


@contextmanager
def answering(verb: str, key: str, where: str, settings: tuple[tuple[str, str], ...]) -> Iterator[None]:
    """Turns the errors of a store's package into a storage's, without the secrets in the settings."""
    secrets = secrets_in(settings)
    try:
        yield
    except EventideError:
        raise
    except Exception as failure:  # each package has different errors
        # Azure adds the whole response to its words.
        text = str(failure).partition("\nRequestId:")[0] or type(failure).__name__
        shown = " ".join(without_secrets(text, secrets).split())
        raise storage_error(f"cannot {verb} {key!r} in {where}: {shown}", failure) from harmless(failure, secrets)


@lru_cache(maxsize=32)
def opened(kind: Callable[..., Any], settings: tuple[tuple[str, str], ...], process: int) -> Any:  # noqa: ARG001
    """The package's file system: one per process, because a fork must not use its parent's. Raises StorageAccessError.

    A cached listing would not show later writes of other processes.
    """
    token = dict(settings).get("token", "")
    if token.startswith("/"):
        _check_key_file("option fsspec.token", token)
    elif not token and kind.__module__.startswith("gcsfs") and _DEFAULT_KEY in os.environ:
        _check_key_file(_DEFAULT_KEY, os.environ[_DEFAULT_KEY])
    for address in _addresses(dict(settings)):
        if (why := why_untrusted(address)) is not None:
            raise untrusted_certificate(f"cannot reach {urlsplit(address).netloc}", why)
    try:
        return kind(use_listings_cache=False, skip_instance_cache=True, **keywords(settings))
    except (ValueError, TypeError) as failure:
        secrets = secrets_in(settings)
        raise StorageAccessError(
            f"{kind.__module__.partition('.')[0]} takes no account from the options fsspec.* and the environment: "
            f"{without_secrets(str(failure), secrets)}; set the account and its credentials (docs/storage.md)"
        ) from None


def _addresses(arguments: Mapping[str, str]) -> Iterator[str]:
    """The addresses that the options name."""
    parts = (part.partition("=") for part in arguments.get("connection_string", "").split(";"))
    yield from (address for name, _, address in parts if name.strip() == "BlobEndpoint")
    yield arguments.get("endpoint_url", "")
    yield f"https://{arguments['account_host']}" if "account_host" in arguments else ""


def _check_key_file(named: str, path: str) -> None:
    """Raises StorageAccessError if Google's credentials are to come from a file that has none.

    gcsfs takes the name of a missing file for an access token, or goes on without credentials, and asks Google about them.
    """
    from google.auth import load_credentials_from_file
    from google.auth.exceptions import GoogleAuthError

    try:
        content = json.loads(Path(path).read_bytes())
        if not content.keys() >= _OF_USER:
            load: Callable[[str], object] = load_credentials_from_file
            with warnings.catch_warnings(action="ignore"):  # of keys from others: this file is only looked at
                load(path)
    except FileNotFoundError:
        raise StorageAccessError(f"{named} names a file that is not there: correct its path") from None
    except (OSError, ValueError, AttributeError, GoogleAuthError):
        raise StorageAccessError(
            f"{named} names a file that isn't a key: name the JSON file that Google issued for a service account or a user"
        ) from None


def keywords(settings: tuple[tuple[str, str], ...]) -> dict[str, object]:
    """The settings as values: the packages take no text for flags and numbers."""
    return {
        name: int(text) if name.endswith(_NUMBERS) and text.isdigit() else _FLAGS.get(text.lower(), text)
        for name, text in settings
    }

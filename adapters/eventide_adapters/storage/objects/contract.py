"""The objects of one bucket in any store: the interface that ../object_storage.py uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from eventide_core.config.option import FLAG, TEXT, Option, optional

UNSAFE_WRITES = Option(
    "eventide.storage.unsafe.writes",
    FLAG,
    False,
    "Promises that nobody else writes, which allows a store that ignores `If-None-Match` and similar conditions.",
)
FSSPEC = optional(
    "fsspec.*", TEXT, "On gs:// and abfs://, keywords of gcsfs and adlfs.", otherwise="credentials from the environment"
)

# A larger object is sent in parts of this size if the store supports it. S3 allows 10,000 parts of at least 5 MiB (the last
# may be smaller).
PART_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One object with its metadata from a listing or a lookup.

    `key` is the whole key in the bucket, without a slash in front; `modified_ms` is by the store's clock. `etag` and `mark`
    are set if the store has them: the version of the content, and the text by which a create recognizes its own object.
    """

    key: str
    size: int
    modified_ms: int
    etag: str = ""
    mark: str | None = None


class Upload(Protocol):
    """An object that is sent in parts. Nobody sees it until `complete`."""

    def send(self, part: bytes) -> None:
        """Begins to send the next part. Waits if many are being sent. Raises StorageError if an earlier one failed."""
        ...

    def complete(self, content: BinaryIO, *, is_conditional: bool = True) -> bool:
        """Creates the object from all parts. Returns False if the key is taken, unless it is unconditional.

        `content` is the whole content again, because a store may require the upload to be repeated.
        """
        ...

    def abort(self) -> None:
        """Removes what was sent. Does nothing after `complete`."""
        ...


class Objects(Protocol):
    """Objects by key.

    Picklable. Every failure except absence is a StorageError that names the key and contains no secret.
    """

    @property
    def bucket(self) -> str: ...

    @property
    def where(self) -> str:
        """The store, for messages."""
        ...

    @property
    def address(self) -> str | None:
        """The URL that requests go to, whether a setting, the environment or a file has named it; None if unknown."""
        ...

    @property
    def has_server_copy(self) -> bool:
        """Whether a copy stays inside the store."""
        ...

    @property
    def allows_unsafe_writes(self) -> bool:
        """Whether the user promises that nobody else writes, so that a store may ignore conditions."""
        ...

    def head(self, key: str) -> StoredObject | None: ...

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The object, or a range of it, which is shorter if the object ends before; None if it is absent."""
        ...

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        """The objects directly below a prefix that ends with `/` or is empty, and the prefixes below it.

        If there are more than `limit`, may omit some.
        """
        ...

    def keys_below(self, prefix: str) -> Sequence[str]:
        """The keys of all objects below a prefix that ends with `/`, at any depth; also keys that mark directories."""
        ...

    def delete(self, key: str) -> None: ...

    def replace(self, key: str, data: bytes) -> None: ...

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        """Creates a whole object. Returns False if the key is taken, which an unconditional create does not check."""
        ...

    def upload(self, key: str) -> "Upload | None":
        """Begins an object that is sent in parts while it is made; None if the store needs it whole."""
        ...

    def copy(self, source: StoredObject, key: str, *, is_conditional: bool = True) -> bool:
        """Copies a source that is not empty. Returns False if the key is taken."""
        ...


class VersionedObjects(Objects, Protocol):
    """The objects of a store that can replace an object on the condition of its ETag."""

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object and its ETag; None if it is absent."""
        ...

    def replace_version(self, key: str, data: bytes, version: str) -> bool:
        """Replaces the object. Returns False if it is absent or now has another version."""
        ...

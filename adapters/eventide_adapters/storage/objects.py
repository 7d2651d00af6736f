"""The objects of one bucket, whatever store keeps them: all that object_storage.py asks of one."""

from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

from eventide_core.config.option import FLAG, TEXT, Option

UNSAFE_WRITES = Option(
    "eventide.storage.unsafe.writes",
    FLAG,
    False,
    "Promises that nobody else writes, which allows a store that ignores `If-None-Match` and similar conditions.",
)
FSSPEC = Option(
    "fsspec.*",
    TEXT,
    None,
    "On gs:// and abfs://, keywords of gcsfs and adlfs.",
    otherwise="credentials from the environment",
)

# What is larger is sent in parts where the store has any. S3 allows 10,000 of at least 5 MiB (the last may be smaller).
PART_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One key, and what a listing or a look at it says; `etag` and `mark` where the store has them."""

    key: str
    size: int
    modified_ms: int
    etag: str = ""
    mark: str | None = None


class Objects(Protocol):
    """Objects by key. Picklable. Every failure but absence is a StorageError that names the key and holds no secret."""

    @property
    def bucket(self) -> str: ...

    @property
    def where(self) -> str:
        """The store, for messages."""
        ...

    @property
    def has_server_copy(self) -> bool:
        """Whether a copy's bytes stay inside the store."""
        ...

    @property
    def allows_unsafe_writes(self) -> bool:
        """Whether the user promises that nobody else writes, so that a store may ignore conditions."""
        ...

    def head(self, key: str) -> StoredObject | None: ...

    def read(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """The object, or that range of it, shorter where it ends before; None if it is absent."""
        ...

    def list_below(self, prefix: str, *, limit: int | None = None) -> tuple[tuple[StoredObject, ...], tuple[str, ...]]:
        """The objects right below a prefix that ends with `/` or is empty, and the prefixes below it.

        Of more than `limit` some may be left out.
        """
        ...

    def delete(self, key: str) -> None: ...

    def replace(self, key: str, data: bytes) -> None: ...

    def create(self, key: str, data: bytes, *, is_conditional: bool = True) -> bool:
        """Creates an object, whole; False if the key is taken, which nobody looks for where it is unconditional."""
        ...

    def create_large(self, key: str, stream: BinaryIO, *, is_conditional: bool = True) -> bool:
        """The same of what may be too large for one request."""
        ...

    def copy(self, source: StoredObject, key: str, *, is_conditional: bool = True) -> bool:
        """Copies a source that is not empty; False if the key is taken."""
        ...


class VersionedObjects(Objects, Protocol):
    """Of a store that replaces an object on the condition of its ETag."""

    def read_version(self, key: str) -> tuple[bytes, str] | None:
        """The object and its ETag; None if it is absent."""
        ...

    def replace_version(self, key: str, data: bytes, etag: str) -> bool:
        """Replaces the object; False if it is absent or has another ETag by now."""
        ...

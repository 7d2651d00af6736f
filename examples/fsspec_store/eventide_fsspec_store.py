"""A storage for eventide on any file system of fsspec: an example of a package that adds URI schemes.

eventide looks up `open_store` by the entry points in pyproject.toml, and tries the storage before it writes anything. A file
system whose `pipe_file(..., mode="create")` replaces an existing file is refused then. `eventide storage check URI` shows
which checks it passes.
"""

from eventide_adapters.storage.fsspec_objects import FsspecObjects
from eventide_adapters.storage.object_storage import ObjectStorage
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage


def open_store(uri: str, options: Options) -> Storage:
    """The storage of PROTOCOL://BUCKET/PATH. Options `fsspec.*` are keywords of the file system. Sends no request."""
    scheme, _, name = uri.rstrip("/").partition("://")
    bucket, _, path = name.partition("/")
    if not bucket:
        raise ConfigError(f"{uri!r} has no bucket: write {scheme}://BUCKET/PATH")
    keywords = {key.removeprefix("fsspec."): text for key, text in options.values.items() if key.startswith("fsspec.")}
    objects = FsspecObjects(scheme.removeprefix("lake+"), bucket, tuple(sorted(keywords.items())), False)
    return ObjectStorage(uri.rstrip("/"), f"{path}/" if path else "", objects)

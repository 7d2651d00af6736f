"""Opens the storage for a table's URI, by its scheme.

The module of a storage and its packages are imported when a URI needs them, so that local tables need none.
"""

import os
import re
from pathlib import Path
from typing import Final

from eventide_adapters.entry_points import Adapter, Adapters
from eventide_adapters.storage.secret_texts import refuse_user, secrets_in, without_secrets
from eventide_core.config import Options
from eventide_core.errors import ConfigError, EventideError
from eventide_core.ports import Storage

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
# All that precedes `@` after a scheme is masked in output, so the form of Azure's URIs is described.
_KNOWN: Final = (
    "directories (/lake/trips), file:///lake/trips, s3://bucket/trips (or s3a://), "
    "hdfs://namenode:8020/trips (or webhdfs://, swebhdfs://), gs://bucket/trips, "
    "abfs:// (or abfss://) with container@account.dfs.core.windows.net/trips, and memory://trips"
)

STORAGES: Final = Adapters(
    "eventide.storages",
    {
        "file": "eventide_adapters.storage.built_in:open_local",
        "memory": "eventide_adapters.storage.built_in:open_memory",
        "s3": "eventide_adapters.storage.built_in:open_s3",
        "s3a": "eventide_adapters.storage.built_in:open_s3",
        "gs": "eventide_adapters.storage.built_in:open_google",
        "gcs": "eventide_adapters.storage.built_in:open_google",
        "abfs": "eventide_adapters.storage.built_in:open_azure",
        "abfss": "eventide_adapters.storage.built_in:open_azure",
        "hdfs": "eventide_adapters.storage.built_in:open_hdfs",
        "webhdfs": "eventide_adapters.storage.built_in:open_hdfs",
        "swebhdfs": "eventide_adapters.storage.built_in:open_hdfs",
    },
)
"""The storages by scheme. A factory gets the URI and the options. A built-in one returns None for a URI without a bucket."""


def open_storage(uri: str, options: Options, *, what: str = "table") -> Storage:
    """The storage of a table: a path or `file:` URI, or a URI of one of the schemes above, unescaped. Sends no request.

    `what` it is in messages, if it is not a table.

    Raises ConfigError for any other scheme, for a file, for secrets in the URI, and for options that cannot be used.
    """
    if not uri.strip():
        raise ConfigError(f"the {what} has no path: use a directory such as /lake/trips")
    _refuse_half_a_scheme(uri, what)
    scheme = _SCHEME.match(uri)
    name = "file" if scheme is None else scheme[1].lower()
    # An Azure URI has the container before the account.
    if scheme is not None and name not in ("abfs", "abfss"):
        refuse_user(uri[scheme.end() :].partition("/")[0], what)
    adapter = STORAGES.find(name)
    if adapter is not None and adapter.package is not None:
        return _of_package(adapter, uri, options)
    storage: Storage | None = None if adapter is None else adapter.load()(uri, options)
    if storage is None:
        wrong = _unknown(name) if adapter is None else f"no full address after {name}://: eventide opens {_KNOWN}"
        raise ConfigError(f"the {what} {without_secrets(uri, ())!r} has {wrong}")
    if name == "file":
        _refuse_no_directory(Path(storage.root.removeprefix("file://")), uri, what)
    return storage


def _refuse_half_a_scheme(uri: str, what: str) -> None:
    """Raises ConfigError for `s3:/bucket/trips` and `file:trips`, which are valid paths of local directories, too."""
    name, colon, path = uri.partition(":")
    if not colon or path.startswith("/" if name.lower() == "file" else "//") or name.lower() not in STORAGES.names():
        return
    cure = "/lake/trips" if name.lower() == "file" else f"//{path.lstrip('/')}"
    raise ConfigError(
        f"the {what} {without_secrets(uri, ())!r} isn't a URI: write {without_secrets(f'{name}:{cure}', ())}, "
        f"or ./{without_secrets(uri, ())} for a local directory of that name"
    )


def _refuse_no_directory(path: Path, uri: str, what: str) -> None:
    """Raises ConfigError where no directory is, and none can be made."""
    if uri.split("/", 1)[0] == "~":
        raise ConfigError(
            f"the {what} {uri!r} begins with ~, which is a directory's name without a shell: write {Path(uri).expanduser()}"
        )
    if os.path.isdir(path):
        return
    if os.path.isfile(path):
        raise ConfigError(
            f"the {what} {uri!r} is a file: name the directory that has .hoodie, before any other argument"
        )
    for place in (path, *path.parents):
        if os.path.islink(place) and not os.path.exists(place):
            raise ConfigError(f"the {what} {uri!r}: {place} is a link that leads nowhere: correct it, or remove it")
        if os.path.isfile(place):
            raise ConfigError(f"the {what} {uri!r}: {place} is a file, and no directory: use another path")


def _unknown(scheme: str) -> str:
    if scheme == "viewfs":
        return (
            "a scheme that only Hadoop's clients resolve: open the table by the hdfs:// URI that its mount point leads to, "
            "which fs.viewfs.mounttable.* in core-site.xml names"
        )
    packages = [f"{name}://" for name in STORAGES.names() if name not in STORAGES.built_in]
    of_packages = f", and with the installed packages {', '.join(packages)}" if packages else ""
    return (
        f"an unknown scheme: eventide opens {_KNOWN}{of_packages}; to add {scheme}://, install a package that declares it "
        f'as an entry point of "{STORAGES.group}" (docs/storage.md)'
    )


def _of_package(adapter: Adapter, uri: str, options: Options) -> Storage:
    from eventide_adapters.storage.packaged import packaged

    assert adapter.package is not None
    factory = adapter.load()
    secrets = secrets_in(options.values.items())
    try:
        storage = factory(uri, options)
    except EventideError:
        raise
    except Exception as failure:  # whatever the code of others raises
        shown = without_secrets(f"{type(failure).__name__}: {failure}", secrets)
        raise ConfigError(f"the package {adapter.package} cannot open {without_secrets(uri, ())!r}: {shown}") from None
    methods = [name for name, method in vars(Storage).items() if callable(method) and not name.startswith("_")]
    absent = [name for name in methods if not hasattr(type(storage), name)]
    # A property of the class or of the instance. To look for `capabilities` would try the store out.
    absent += [] if hasattr(storage, "is_remote") else ["is_remote"]
    if absent:
        raise ConfigError(
            f"the package {adapter.package} declares {adapter.name}:// as {adapter.factory}, which returned a "
            f"{type(storage).__name__} instead of an eventide_core.ports.Storage: it lacks {', '.join(absent)}"
        )
    return packaged(storage, adapter.package)

"""The factories of the built-in storages, as open.py and pyproject.toml declare them.

The only module that knows all storages. Each returns None for a URI without the bucket, host or name that it needs.
"""

import re
from collections.abc import Mapping
from typing import Final

from eventide_adapters.extras import install_command
from eventide_adapters.storage.objects.contract import FSSPEC, UNSAFE_WRITES, VersionedObjects
from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_adapters.storage.secret_texts import refuse_user
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage

# Hadoop writes `file:/lake/trips` as well as `file:///lake/trips`.
_FILE: Final = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))", re.IGNORECASE)
_BUCKET: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
# Hadoop's form, with the container before the account.
_AZURE: Final = re.compile(r"([a-z0-9-]+)@([a-z0-9]+)\.(?:dfs|blob)\.core\.windows\.net")


def open_local(uri: str, options: Options) -> Storage | None:  # noqa: ARG001  # as every factory
    """The local storage of a `file:` URI or of a path; None for another scheme."""
    from eventide_adapters.storage.local import LocalStorage

    return None if "://" in uri and not _FILE.match(uri) else LocalStorage(_FILE.sub("", uri, count=1))


def open_memory(uri: str, options: Options) -> Storage | None:  # noqa: ARG001  # as every factory
    from eventide_adapters.storage.memory import MemoryStorage

    _, name = _split(uri)
    return MemoryStorage(name) if name else None


def open_s3(uri: str, options: Options) -> Storage | None:
    bucket, path = _located(uri)
    if not _BUCKET.fullmatch(bucket):
        return None
    try:
        from eventide_adapters.storage.objects.s3 import S3Objects
        from eventide_adapters.storage.objects.s3_config import S3Config
    except ModuleNotFoundError as missing:
        raise ConfigError(f"a table on S3 needs the package {missing.name}: run `{install_command('s3')}`") from missing
    return _versioned(uri, path, S3Objects(bucket, S3Config.of(options)))


def open_google(uri: str, options: Options) -> Storage | None:
    bucket, path = _located(uri)
    if not _BUCKET.fullmatch(bucket):
        return None
    try:
        from eventide_adapters.storage.objects.google import GoogleObjects
    except ModuleNotFoundError as missing:
        raise _needs("gs", "gcsfs", missing) from missing
    return _versioned(uri, path, GoogleObjects(bucket, _keywords(options), options.get(UNSAFE_WRITES)))


def open_azure(uri: str, options: Options) -> Storage | None:
    container, path = _located(uri)
    settings = {}
    if azure := _AZURE.fullmatch(container):
        container, settings = azure[1], {"account_name": azure[2]}
    refuse_user(container)
    if not _BUCKET.fullmatch(container):
        return None
    try:
        from eventide_adapters.storage.objects.azure import AzureObjects
    except ModuleNotFoundError as missing:
        raise _needs("abfs", "adlfs", missing) from missing
    objects = AzureObjects(container, _keywords(options, settings), options.get(UNSAFE_WRITES))
    return _versioned(uri, path, objects)


def open_hdfs(uri: str, options: Options) -> Storage | None:
    from eventide_adapters.storage.hdfs.config import HdfsConfig
    from eventide_adapters.storage.hdfs.storage import HdfsStorage

    scheme, _ = _split(uri)
    authority, path = _located(uri)
    if not authority:
        return None
    return HdfsStorage(scheme, authority, checked_directory(path), HdfsConfig.of(scheme, authority, options))


def _keywords(options: Options, of_uri: Mapping[str, str] | None = None) -> tuple[tuple[str, str], ...]:
    """The options `fsspec.` as keywords of a package. They precede what comes from the URI."""
    given = {key.removeprefix("fsspec."): text for key, text in options.below(FSSPEC).items()}
    return tuple(sorted({**(of_uri or {}), **given}.items()))


def _versioned(uri: str, path: str, objects: VersionedObjects) -> Storage:
    from eventide_adapters.storage.object_storage import VersionedObjectStorage

    return VersionedObjectStorage(uri.rstrip("/"), f"{checked_path(path)}/" if path else "", objects)


def _needs(scheme: str, package: str, missing: ModuleNotFoundError) -> ConfigError:
    of_it = "" if (missing.name or package).startswith(package) else f" with {missing.name}"
    return ConfigError(f"a table on {scheme}:// needs the package {package}{of_it}: run `{install_command(scheme)}`")


def _split(uri: str) -> tuple[str, str]:
    """The scheme in lower case, and what follows it."""
    scheme, _, name = uri.partition("://")
    return scheme.lower(), name.rstrip("/")


def _located(uri: str) -> tuple[str, str]:
    """The bucket or host, and the path below it."""
    authority, _, path = _split(uri)[1].partition("/")
    return authority, path

"""Opens the storage for a table's URI. This is the only module that knows all storages.

The packages of a storage are imported when a URI needs them, so that local tables need none.
"""

import re
from collections.abc import Mapping

from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.objects import FSSPEC, UNSAFE_WRITES
from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_adapters.storage.secret_texts import without_secrets
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage

# Hadoop writes `file:/lake/trips` as well as `file:///lake/trips`.
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
# Hadoop's form, with the container before the account.
_AZURE = re.compile(r"([a-z0-9-]+)@([a-z0-9]+)\.(?:dfs|blob)\.core\.windows\.net")
_KNOWN = (
    "directories (/lake/trips), file:///lake/trips, s3://bucket/trips (or s3a://), "
    "hdfs://namenode:8020/trips (or webhdfs://, swebhdfs://), gs://bucket/trips, "
    "abfs://container@account.dfs.core.windows.net/trips (or abfss://) and memory://trips"
)


def open_storage(uri: str, options: Options, *, what: str = "table") -> Storage:
    """The storage of a table: a path or `file:` URI, or a URI of one of the schemes below, unescaped. Sends no request.

    `what` it is in messages, if it is not a table.

    Raises ConfigError for any other scheme, for secrets in the URI, and for options that cannot be used.
    """
    if not uri.strip():
        raise ConfigError(f"the {what} has no path: use a directory such as /lake/trips")
    if scheme := _SCHEME.match(uri):
        name = uri[scheme.end() :].rstrip("/")
        authority, _, path = name.partition("/")
        if scheme[1].lower() in ("abfs", "abfss") and (azure := _AZURE.fullmatch(authority)):
            return _open_fsspec("abfs", "adlfs", uri, azure[1], path, options, {"account_name": azure[2]})
        if "@" in authority:
            raise ConfigError(
                f"the {what}'s URI contains a user or a secret before `@`: set it as an option, or in the environment"
            )
        match scheme[1].lower():
            case "memory" if name:
                from eventide_adapters.storage.memory import MemoryStorage

                return MemoryStorage(name)
            case "s3" | "s3a" if _BUCKET.fullmatch(authority):
                return _open_s3(uri, authority, path, options)
            case "gs" | "gcs" if _BUCKET.fullmatch(authority):
                return _open_fsspec("gs", "gcsfs", uri, authority, path, options, {})
            case "abfs" | "abfss" if _BUCKET.fullmatch(authority):
                return _open_fsspec("abfs", "adlfs", uri, authority, path, options, {})
            case "hdfs" | "webhdfs" | "swebhdfs" as kind if authority:
                return _open_hdfs(kind, authority, path, options)
            case "file" if _FILE.match(uri):
                pass
            case _:
                shown = without_secrets(uri, ())
                raise ConfigError(f"the {what} {shown!r} has an unknown scheme: eventide opens {_KNOWN}")
    return LocalStorage(_FILE.sub("", uri, count=1))


def _open_s3(uri: str, bucket: str, path: str, options: Options) -> Storage:
    try:
        from eventide_adapters.storage.object_storage import VersionedObjectStorage
        from eventide_adapters.storage.s3_config import S3Config
        from eventide_adapters.storage.s3_objects import S3Objects
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"a table on S3 needs the package {missing.name}: run `pip install 'eventide[s3]'`"
        ) from missing
    return VersionedObjectStorage(*_below(uri, path), S3Objects(bucket, S3Config.of(options)))


def _open_fsspec(
    protocol: str, package: str, uri: str, bucket: str, path: str, options: Options, settings: Mapping[str, str]
) -> Storage:
    """`fsspec.` options are passed to the package as keywords. They precede `settings`, which come from the URI."""
    import fsspec

    from eventide_adapters.storage.fsspec_objects import FsspecObjects
    from eventide_adapters.storage.object_storage import ObjectStorage

    try:
        fsspec.get_filesystem_class(protocol)
    except ImportError as missing:
        raise ConfigError(
            f"a table on {protocol}:// needs the package {package}: run `pip install 'eventide[{protocol}]'`"
        ) from missing
    given = {key.removeprefix("fsspec."): text for key, text in options.below(FSSPEC).items()}
    keywords = tuple(sorted({**settings, **given}.items()))
    return ObjectStorage(*_below(uri, path), FsspecObjects(protocol, bucket, keywords, options.get(UNSAFE_WRITES)))


def _below(uri: str, path: str) -> tuple[str, str]:
    """The table's URI as shown to users, and the prefix of its keys."""
    return uri.rstrip("/"), f"{checked_path(path)}/" if path else ""


def _open_hdfs(scheme: str, authority: str, path: str, options: Options) -> Storage:
    from eventide_adapters.storage.hdfs import HdfsStorage
    from eventide_adapters.storage.hdfs_config import HdfsConfig

    return HdfsStorage(scheme, authority, checked_directory(path), HdfsConfig.of(scheme, authority, options))

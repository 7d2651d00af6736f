"""Which storage a table's URI means: the one place that knows them all.

What a storage needs is imported when a URI asks for it, so that local tables need none of it.
"""

import re

from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.paths import checked_directory, checked_path
from eventide_core.config import Options
from eventide_core.errors import ConfigError
from eventide_core.ports import Storage

# Hadoop writes `file:/lake/trips` as well as `file:///lake/trips`.
_FILE = re.compile(r"file:(?://(?:localhost)?(?=/)|(?=/[^/]))")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


_S3_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_KNOWN = (
    "folders (/lake/trips), file:///lake/trips, s3://bucket/trips (or s3a://), hdfs://namenode:8020/trips (or webhdfs://, "
    "swebhdfs://) and memory://trips"
)


def open_storage(uri: str, options: Options) -> Storage:
    """The storage of a table: a path or `file:` URI, or one of the schemes below, nothing in it escaped. Touches nothing.

    Raises ConfigError for any other scheme, for secrets in the URI, and for options that cannot be used.
    """
    if not uri.strip():
        raise ConfigError("the table has no path: give a folder such as /lake/trips")
    if scheme := _SCHEME.match(uri):
        name = uri[scheme.end() :].rstrip("/")
        authority, _, path = name.partition("/")
        if "@" in authority:
            raise ConfigError(
                "the table's URI holds a user or a secret before `@`: give it as an option, or by environment"
            )
        match scheme[1].lower():
            case "memory" if name:
                return MemoryStorage(name)
            case "s3" | "s3a" as kind if _S3_BUCKET.fullmatch(authority):
                return _open_s3(kind, authority, path, options)
            case "hdfs" | "webhdfs" | "swebhdfs" as kind if authority:
                return _open_hdfs(kind, authority, path, options)
            case "file" if _FILE.match(uri):
                pass
            case _:
                raise ConfigError(f"the table {uri!r} has a scheme that eventide does not know: it opens {_KNOWN}")
    return LocalStorage(_FILE.sub("", uri, count=1))


def _open_s3(scheme: str, bucket: str, path: str, options: Options) -> Storage:
    try:
        from eventide_adapters.storage.s3 import S3Storage
        from eventide_adapters.storage.s3_config import S3Config
    except ModuleNotFoundError as missing:
        raise ConfigError(
            f"a table on S3 needs the package {missing.name}: run `pip install 'eventide[s3]'`"
        ) from missing
    return S3Storage(scheme, bucket, f"{checked_path(path)}/" if path else "", S3Config.of(options))


def _open_hdfs(scheme: str, authority: str, path: str, options: Options) -> Storage:
    from eventide_adapters.storage.hdfs import HdfsStorage
    from eventide_adapters.storage.hdfs_config import HdfsConfig

    return HdfsStorage(scheme, authority, checked_directory(path), HdfsConfig.of(scheme, authority, options))

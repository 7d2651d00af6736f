"""Bytes of files on HDFS through libhdfs, Hadoop's own client, by pyarrow's HadoopFileSystem.

libhdfs does not know links: a listing shows a link as an empty file, a write follows it, and a move overwrites.
Therefore, it only gets real paths, each after the NameNode was asked what exists there, and never a name that others
can see.
"""

import os
import shutil
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, Final

from eventide_adapters.storage.hdfs.config import BYTES, NativeConfig
from eventide_adapters.storage.hdfs.webhdfs import RemoteError, WebHdfs
from eventide_core.errors import ConfigError

if TYPE_CHECKING:
    from pyarrow.fs import HadoopFileSystem

_WRITE_BYTES: Final = 4 << 20
# The settings of the client or the NameNode, which pyarrow would override.
_REPLICATION_OF_HADOOP: Final = 0
# The pause before a writer asks again whether its file is complete. Hadoop's default is 400 ms; most files here are
# small.
_SETTINGS: Final = {"dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10"}

# By a part of the error message of pyarrow or of its import.
_CURES: Final = (
    ("libjvm", "JAVA_HOME to the directory of a JVM"),
    ("libhdfs", "ARROW_LIBHDFS_DIR to the directory of libhdfs.so, or HADOOP_HOME to Hadoop's directory"),
    ("", "CLASSPATH to all of Hadoop's jars, as `hadoop classpath --glob` prints them"),
)


class LibHdfs:
    """publishing.HdfsBytes. `names` looks up paths. Raises ConfigError if libhdfs cannot be loaded."""

    def __init__(self, config: NativeConfig, names: WebHdfs) -> None:
        self._files = _connected(config)
        self._names = names

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        status = self._names.call("GET", "GETFILESTATUS", path)["FileStatus"]
        if status["type"] != "FILE":
            raise RemoteError("FileNotFoundException", f"{path} is a directory")
        rest = status["length"] - offset
        if rest <= 0:
            return b""
        try:
            with self._files.open_input_file(path) as file:
                file.seek(offset)
                return file.read(rest if length is None else min(length, rest))
        except FileNotFoundError as gone:
            raise RemoteError("FileNotFoundException", str(gone)) from gone

    def write(self, path: str, content: BinaryIO, size: int) -> None:
        self._check_new(path)
        with self._files.open_output_stream(path, compression=None) as file:
            shutil.copyfileobj(content, file, _WRITE_BYTES)
            written = file.tell()
        if written != size:
            raise OSError(f"only {written} of {size} bytes were written to {path}")

    def _check_new(self, path: str) -> None:
        """Raises RemoteError if the name exists, even as a link, or if a link is on the way to it."""
        try:
            self._names.call("GET", "GETFILESTATUS", path)
        except RemoteError as refused:
            if refused.is_absent:
                return
            raise
        raise RemoteError("FileAlreadyExistsException", f"{path} already exists")


@cache
def _connected(config: NativeConfig) -> "HadoopFileSystem":
    """One connection per process for each configuration: libhdfs keeps its JVM until the process ends."""
    if not os.environ.get("CLASSPATH"):
        raise _unusable("the environment variable CLASSPATH, which names Hadoop's jars, is not set")
    try:
        from pyarrow.fs import HadoopFileSystem

        return HadoopFileSystem(
            config.host,
            config.port,
            user=config.user,
            replication=_REPLICATION_OF_HADOOP,
            extra_conf={**_SETTINGS, **dict(config.settings)},
        )
    except (ImportError, OSError) as failure:
        # The lines after the first list the places where a library was searched.
        raise _unusable(str(failure).partition("\n")[0].strip()) from failure


def _unusable(missing: str) -> ConfigError:
    cure = next(cure for part, cure in _CURES if part in missing)
    return ConfigError(
        f"option {BYTES}='libhdfs' cannot be used: {missing}; set {cure} for the driver and every "
        f"executor, or use {BYTES}=webhdfs, which needs no library"
    )

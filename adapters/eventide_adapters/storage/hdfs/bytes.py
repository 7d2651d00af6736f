"""Transfers the bytes of files on HDFS: by WebHDFS, or by libhdfs if the option BYTES requests it."""

from typing import BinaryIO, Protocol

from eventide_adapters.storage.hdfs.config import HdfsConfig
from eventide_adapters.storage.hdfs.webhdfs import WebHdfs


class HdfsBytes(Protocol):
    """Contents of files at absolute paths. Raises RemoteError; OSError or HTTPException if nothing answers.

    Refuses a path that is a link, or is below one, with a RemoteError that names the link's target.
    """

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's content, or a range of it, which is shorter if the file ends before."""
        ...

    def write(self, path: str, content: BinaryIO, size: int) -> None:
        """Creates a file under a name that no other writer uses. A reader may see an incomplete file."""
        ...


def hdfs_bytes(config: HdfsConfig, names: WebHdfs) -> HdfsBytes:
    """The transport that the configuration selects. Raises ConfigError if libhdfs is requested and not available."""
    if config.native is None:
        return names
    # Imported here, because it needs pyarrow's HDFS module.
    from eventide_adapters.storage.hdfs.libhdfs import LibHdfs

    return LibHdfs(config.native, names)

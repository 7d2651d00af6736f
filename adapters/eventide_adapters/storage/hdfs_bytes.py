"""Transfers the bytes of files on HDFS: by WebHDFS, or by libhdfs if the option BYTES requests it."""

from typing import BinaryIO, Protocol

from eventide_adapters.storage.hdfs_config import HdfsConfig
from eventide_adapters.storage.webhdfs import WebHdfs


class HdfsBytes(Protocol):
    """Contents of files at absolute paths. Raises RemoteError; OSError or HTTPException where nobody answers.

    A path that is a link, or lies behind one, is refused with the RemoteError that says where it leads.
    """

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's content, or that range of it, shorter where it ends before."""
        ...

    def write(self, path: str, content: BinaryIO, size: int) -> None:
        """Creates a file under a name that nobody else writes to; a reader may see it before it is whole."""
        ...


def hdfs_bytes(config: HdfsConfig, names: WebHdfs) -> HdfsBytes:
    """As the configuration says. Raises ConfigError if libhdfs is requested and not to be had."""
    if config.native is None:
        return names
    # It needs pyarrow's own HDFS module, which nothing else needs.
    from eventide_adapters.storage.libhdfs import LibHdfs

    return LibHdfs(config.native, names)

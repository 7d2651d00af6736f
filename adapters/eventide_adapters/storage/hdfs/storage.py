"""Tables on HDFS, including symbolic links.

publishing.py describes how a name appears with complete content and for only one writer.

Symbolic links have absolute targets without an authority, which survive a failover of the NameNode. This module asks
the NameNode to resolve them, so code that reads bytes never gets a link. A delete removes only the name, and never uses
the trash.
"""

import io
import posixpath
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any, BinaryIO, TypeVar

from eventide_adapters.storage.hdfs.config import HTTP_ADDRESS, HdfsConfig
from eventide_adapters.storage.hdfs.libhdfs import LibHdfs
from eventide_adapters.storage.hdfs.publishing import HdfsBytes, HdfsPublisher
from eventide_adapters.storage.hdfs.webhdfs import RemoteError, WebHdfs
from eventide_adapters.storage.paths import TEMPORARY, check_whole, checked_directory, checked_path
from eventide_adapters.storage.refusals import storage_error
from eventide_adapters.storage.remote_streams import SpooledOutput, in_pieces, open_ranges
from eventide_adapters.storage.secret_texts import harmless, without_secrets
from eventide_core.errors import EventideError, MissingFileError, StorageAccessError, StorageError, UnsafePathError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX, Capability, FileInfo, OutputFile

# HDFS itself uses the same limit.
_LINKS_MAX = 32

T = TypeVar("T")


class HdfsStorage:
    """ports.Storage over a directory of the namespace `scheme://authority`. `path` has no slashes at its ends.

    Pickles its configuration, the detected capabilities, and the delegation token. An executor opens its own connections.
    """

    is_remote = True

    def __init__(
        self,
        scheme: str,
        authority: str,
        path: str,
        config: HdfsConfig,
        capabilities: Capability | None = None,
        token: str | None = None,
    ) -> None:
        self._place = (scheme, authority, path)
        self._root_path = f"/{path}" if path else ""
        self._config = config
        self._web = WebHdfs(config, token)
        self._bytes: HdfsBytes = self._web if config.native is None else LibHdfs(config.native, self._web)
        self._publisher = HdfsPublisher(self._web, self._bytes, self._root_path)
        self._capabilities = capabilities

    def __reduce__(
        self,
    ) -> tuple[type["HdfsStorage"], tuple[str, str, str, HdfsConfig, Capability | None, str | None]]:
        return HdfsStorage, (*self._place, self._config, self._capabilities, self._web.login.token)

    @property
    def root(self) -> str:
        scheme, authority, _ = self._place
        return f"{scheme}://{authority}{self._root_path}"

    @property
    def capabilities(self) -> Capability:
        """Tested on first use, by creating and deleting a link. NONE on a read-only table."""
        if self._capabilities is None:
            self._capabilities = self._publisher.try_out()
        return self._capabilities

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        """Omits files that are being written."""
        with self._answering("list", directory):
            listing = self._followed(self._directory(directory), lambda at: self._web.call("GET", "LISTSTATUS", at))
        if listing is None:
            return ()
        entries = {entry["pathSuffix"]: entry for entry in listing["FileStatuses"]["FileStatus"]}
        if "" in entries:  # a listing of a file returns the file
            return ()
        below = f"{directory}/" if directory else ""
        names = sorted(name for name in entries if below + name != TEMPORARY)
        return tuple(self._info(below + name, entries[name], entries) for name in names)

    def stat(self, path: str) -> FileInfo | None:
        with self._answering("look at", path):
            at = self._directory(path)
            try:
                return self._info(path, self._web.call("GET", "GETFILESTATUS", at)["FileStatus"], {})
            except RemoteError as refused:
                if refused.is_absent:
                    return None
                if not refused.is_link:
                    raise
            if self._status(at) is None:
                return None
        # A link, or something behind one: only a listing returns the link itself.
        return next((info for info in self.list(posixpath.dirname(path)) if info.path == path), None)

    def read(self, path: str) -> bytes:
        data = self._read(path, 0, WHOLE_FILE_BYTES_MAX + 1)
        check_whole(len(data), path, self.root)
        return data

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        if length == 0:
            self._require(path)
            return b""
        return in_pieces(lambda start, size: self._read(path, start, size), offset, length)

    def open_input(self, path: str) -> BinaryIO:
        at, size = self._require(path)

        def read_range(offset: int, length: int) -> bytes:
            with self._answering("read", path):
                return self._bytes.read(at, offset, length)

        return open_ranges(size, lambda offset, length: in_pieces(read_range, offset, length))

    def open_output(self, path: str) -> OutputFile:
        self._at(path)
        return SpooledOutput(lambda file, size: self._create(path, file, size))

    def put(self, path: str, data: bytes) -> None:
        with self._answering("write", path):
            self._publisher.replace(self._at(path), io.BytesIO(data), len(data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return self._create(path, io.BytesIO(data), len(data))

    def copy_if_absent(self, source: str, target: str) -> bool:
        self._at(target)
        _, size = self._require(source)
        with self.open_input(source) as stream:
            return self._create(target, stream, size)

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        content, _ = self._require(source)
        at = self._at(target)
        if not is_symbolic:
            raise StorageError(f"{self.root} doesn't support hard links: copy {source!r} to {target!r} instead")
        with self._answering("link to", source):
            return self._publisher.link(content, at)

    def delete(self, path: str) -> bool:
        with self._answering("delete", path):
            try:
                return bool(self._web.call("DELETE", "DELETE", self._at(path), recursive="false")["boolean"])
            except RemoteError as refused:
                if refused.is_absent:
                    return False
                raise

    def _create(self, path: str, content: BinaryIO, size: int) -> bool:
        with self._answering("write", path):
            return self._publisher.create(self._at(path), content, size)

    def _read(self, path: str, offset: int, length: int) -> bytes:
        with self._answering("read", path):
            try:
                data = self._followed(self._at(path), lambda at: self._bytes.read(at, offset, length))
            except RemoteError as refused:
                if "out of the range" in refused.message:
                    return b""
                raise
        if data is None:
            raise self._missing(path)
        return data

    def _status(self, at: str) -> tuple[str, Mapping[str, Any]] | None:
        """The path after all links, and its status; None if nothing exists there."""

        def look(resolved: str) -> tuple[str, Mapping[str, Any]]:
            return resolved, self._web.call("GET", "GETFILESTATUS", resolved)["FileStatus"]

        return self._followed(at, look)

    def _followed(self, at: str, ask: Callable[[str], T]) -> T | None:
        """The answer for the end of all links; None if nothing exists there. Raises UnsafePathError outside the root."""
        for _ in range(_LINKS_MAX):
            try:
                return ask(at)
            except RemoteError as refused:
                if refused.is_absent:
                    return None
                if not refused.is_link:
                    raise
                resolved = _path_of(refused.message)
            if not self._is_inside(resolved):
                raise UnsafePathError(
                    f"{at!r} points to {resolved!r}, which is outside {self.root}: remove the link, or open the "
                    "table there"
                )
            at = resolved
        raise StorageError(f"{at!r} is an endless chain of links: remove one of them")

    def _require(self, path: str) -> tuple[str, int]:
        """The path of the file's content after all links, and its size."""
        at = self._at(path)
        with self._answering("look at", path):
            resolved = self._status(at)
        if resolved is None or resolved[1]["type"] != "FILE":
            raise self._missing(path)
        return resolved[0], resolved[1]["length"]

    def _info(self, path: str, status: Mapping[str, Any], beside: Mapping[str, Mapping[str, Any]]) -> FileInfo:
        """One name. `beside` is the listing that contains it, and usually also the target of a link."""
        is_directory, link_target = status["type"] == "DIRECTORY", None
        size = 0 if is_directory else status["length"]
        if status["type"] == "SYMLINK":
            parent = posixpath.dirname(self._directory(path))
            target = posixpath.normpath(posixpath.join(parent, _path_of(status["symlink"])))
            is_inside = self._is_inside(target)
            link_target = target.removeprefix(f"{self._root_path}/") if is_inside else target
            sibling = beside.get(posixpath.basename(target)) if posixpath.dirname(target) == parent else None
            if sibling is not None and sibling["type"] == "FILE":
                size = sibling["length"]
            elif is_inside:
                with self._answering("look at", path):
                    resolved = self._status(target)
                size = 0 if resolved is None else resolved[1]["length"]
        return FileInfo(path, size, is_directory, status["modificationTime"], link_target)

    def _at(self, path: str) -> str:
        return f"{self._root_path}/{checked_path(path)}"

    def _directory(self, path: str) -> str:
        return self._at(path) if checked_directory(path) else self._root_path or "/"

    def _is_inside(self, at: str) -> bool:
        return at.startswith(f"{self._root_path}/")

    def _missing(self, path: str) -> MissingFileError:
        return MissingFileError(f"there is no file {path!r} in {self.root}")

    @contextmanager
    def _answering(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except EventideError:
            raise
        except (RemoteError, OSError, HTTPException) as failure:
            secrets = self._web.login.secrets
            shown = without_secrets(str(failure), secrets)
            where = self.root
            if isinstance(failure, OSError):
                where += f" by WebHDFS at {' and '.join(self._config.addresses)}"
            message = f"cannot {verb} {path!r} in {where}: {shown}"
            if isinstance(failure, RemoteError) and failure.is_of_another_server:
                raise StorageAccessError(
                    f"{message}; no WebHDFS is at {' and '.join(self._config.addresses)}: set {HTTP_ADDRESS} to the web "
                    "address of the NameNode (usually port 9870), whose dfs.webhdfs.enabled must be true"
                ) from harmless(failure, secrets)
            raise storage_error(message, failure) from harmless(failure, secrets)
        except (ValueError, KeyError, TypeError) as failure:
            raise StorageError(
                f"cannot {verb} {path!r} in {self.root}: an unexpected response of HDFS ({failure!r})"
            ) from failure


def _path_of(uri: str) -> str:
    """The path of a link's target, which may be a path or a URI, unescaped."""
    _, separator, rest = uri.partition("://")
    return f"/{rest.partition('/')[2]}" if separator else uri

"""Publishes names on HDFS: with complete content, and for only one writer.

A file is written below TEMPORARY, and an exclusive rename gives it its name. The rename decides races, and also
resolves lost responses: if there is no response, or "exists" for a repeated request, the writer checks the temporary
name, which nobody else renames. If it is gone, this rename succeeded; if it still exists, it failed. A link is
published in the same way.
"""

import posixpath
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from typing import BinaryIO, Final, Protocol

from eventide_adapters.storage.hdfs.webhdfs import RemoteError, WebHdfs
from eventide_adapters.storage.paths import TEMPORARY
from eventide_core.errors import RefusedError
from eventide_core.ports import Capability

# A writer that has not finished its file after this time is dead.
_ABANDONED_AFTER_MS: Final = 24 * 60 * 60 * 1000
_RENAME_TRIES: Final = 4
_TAKEN: Final = "FileAlreadyExistsException"


class HdfsBytes(Protocol):
    """The contents of files at absolute paths, by WebHDFS or by libhdfs.

    Raises RemoteError; OSError or HTTPException if nothing answers. Refuses a path that is a link, or is below one,
    with a RemoteError that names the link's target.
    """

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's content, or a range of it, which is shorter if the file ends before."""
        ...

    def write(self, path: str, content: BinaryIO, size: int) -> None:
        """Creates a file under a name that no other writer uses. A reader may see an incomplete file."""
        ...


@dataclass(frozen=True, slots=True)
class HdfsPublisher:
    """Names of one table, whose root is the absolute path `directory`. Raises RemoteError, OSError, HTTPException.

    `web` renames, links and deletes. `content` writes the bytes of files, by WebHDFS or libhdfs.
    """

    web: WebHdfs
    content: HdfsBytes
    directory: str

    def create(self, at: str, content: BinaryIO, size: int) -> bool:
        """Creates the complete file at an absolute path. Returns False if the name is taken."""
        return self._publish(self._write(content, size), at)

    def replace(self, at: str, content: BinaryIO, size: int) -> None:
        """Creates or replaces the complete file."""
        self._rename(self._write(content, size), at, replaces=True)

    def link(self, target: str, at: str) -> bool:
        """Creates a symbolic link to an absolute path. Returns False if its name is taken."""
        temporary = self._temporary()
        try:
            self.web.call("PUT", "CREATESYMLINK", temporary, destination=target, createParent="true")
        except RemoteError:
            # A repeated request finds the link of the first one.
            if not self._exists(temporary):
                raise
        return self._publish(temporary, at)

    def try_out(self) -> Capability:
        """The NameNode's capabilities, tested by creating and deleting a link. NONE if nothing may be written."""
        link = self._temporary()
        try:
            self.web.call("PUT", "MKDIRS", posixpath.dirname(link))
        except RemoteError:
            return Capability.NONE
        with suppress(RemoteError):
            self._remove_abandoned()
        try:
            self.web.call("PUT", "CREATESYMLINK", link, destination=link, createParent="false")
            self.web.call("DELETE", "DELETE", link, recursive="false")
        except RemoteError:
            return Capability.PUT_IF_ABSENT
        return Capability.PUT_IF_ABSENT | Capability.SYMLINK

    def _remove_abandoned(self) -> None:
        """Removes unfinished files of dead writers."""
        directory = f"{self.directory}/{TEMPORARY}"
        now = time.time() * 1000
        for entry in self.web.call("GET", "LISTSTATUS", directory)["FileStatuses"]["FileStatus"]:
            if entry["modificationTime"] < now - _ABANDONED_AFTER_MS:
                self.web.call("DELETE", "DELETE", f"{directory}/{entry['pathSuffix']}", recursive="false")

    def _write(self, content: BinaryIO, size: int) -> str:
        """Writes a temporary file. Returns its path."""
        temporary = self._temporary()
        self.content.write(temporary, content, size)
        return temporary

    def _publish(self, temporary: str, at: str) -> bool:
        try:
            self._rename(temporary, at, replaces=False)
        except RemoteError as refused:
            if refused.kind != _TAKEN:
                raise
            self.web.call("DELETE", "DELETE", temporary, recursive="false")
            return False
        return True

    def _rename(self, temporary: str, at: str, *, replaces: bool) -> None:
        """Renames a temporary name to its final name exactly once, however often a request or its response is lost."""
        for attempt in range(_RENAME_TRIES):
            try:
                self.web.rename(temporary, at, replaces=replaces)
            except RefusedError:
                raise
            except (RemoteError, OSError, HTTPException) as failure:
                if not self._exists(temporary):
                    return
                if attempt + 1 == _RENAME_TRIES:
                    raise
                if isinstance(failure, RemoteError):
                    if not failure.is_absent:
                        raise
                    self.web.call("PUT", "MKDIRS", posixpath.dirname(at))
            else:
                return

    def _exists(self, temporary: str) -> bool:
        """Whether a temporary name still exists, as a file or a link."""
        try:
            self.web.call("GET", "GETFILESTATUS", temporary)
        except RemoteError as refused:
            if refused.is_absent:
                return False
            if not refused.is_link:
                raise
        return True

    def _temporary(self) -> str:
        return f"{self.directory}/{TEMPORARY}/{uuid.uuid4().hex}"

"""One HDFS namespace over WebHDFS, with the standard library: names at the NameNode, bytes at its DataNodes.

Each request goes to the NameNode that answered last, and then to the others if it is gone or on standby, in several
rounds with growing pauses. So an operation may have happened although its response was lost. Callers for which that
matters find out themselves (storage.py).

An observer answers reads over WebHDFS, without Hadoop's check of its age: a listing may be minutes old. So a NameNode of
several is asked to read only if it has just taken a change, or would take one. Only the active one does.
"""

import json
import os
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from eventide_adapters.storage.certificates import untrusted_certificate
from eventide_adapters.storage.hdfs.config import HTTP_ADDRESS, HdfsConfig
from eventide_adapters.storage.hdfs.login import HdfsLogin
from eventide_adapters.storage.hdfs.spnego import KerberosError
from eventide_adapters.storage.request_count import count_request
from eventide_core.errors import RefusedError, StorageAccessError

_ROUNDS: Final = 5
# A failover takes as long as ZooKeeper and the fencing of the old NameNode: half a minute is usual.
_ROUNDS_OF_SEVERAL: Final = 12
_AUTHORITIES = "SSL_CERT_FILE"  # OpenSSL's own variable for the file of trusted certificates
_PAUSE_SECONDS: Final = 0.2
_PAUSE_SECONDS_MAX: Final = 10.0
_SEND_BYTES: Final = 4 << 20
# The errors of a NameNode that cannot answer now, but another NameNode, or the same one a little later, can.
_TRY_ANOTHER: Final = frozenset({"StandbyException", "RetriableException", "ObserverRetryOnActiveException"})
# How long a NameNode counts as active after it has taken a change: no operator makes it an observer so soon.
_ACTIVE_SECONDS: Final = 10.0
# Changes nothing if the file exists, and it doesn't.
_PROBE: Final = ("PUT", "SETTIMES", "/.eventide_is_active")
_NO_HEADERS: Final[Mapping[str, str]] = {}
# The answer of HttpFS, with status 500, to an operation that it doesn't have.
_UNKNOWN_OPERATION: Final = "QueryParamException"
_ABSENT: Final = frozenset({"FileNotFoundException", "ParentNotDirectoryException"})


class RemoteError(Exception):
    """The error that HDFS returned: the simple name of Java's exception, and its first line."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message

    @property
    def is_absent(self) -> bool:
        """Whether nothing has that name. Below a file, HDFS reports that by refusing to traverse it."""
        if self.kind == "AccessControlException":
            return "is not a directory" in self.message
        return self.kind in _ABSENT

    @property
    def is_login(self) -> bool:
        """Whether the request has no valid authentication: none, or a token that the NameNode doesn't accept."""
        # The second kind is how a NameNode fails at a text that isn't a token.
        refused = self.kind in ("HTTP 401", "NegativeArraySizeException")
        return refused or self.message.startswith("Failed to obtain user group information")

    @property
    def is_of_another_server(self) -> bool:
        """Whether this isn't an answer of WebHDFS, which would say what is absent or not understood."""
        return self.kind in ("HTTP 404", "HTTP 405")

    @property
    def is_link(self) -> bool:
        """Whether the name is a link, or is behind one. The message is the target's path."""
        return self.kind == "UnresolvedPathException"


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    reason: str
    location: str | None
    body: bytes

    def error(self) -> RemoteError | None:
        if self.status < 400:
            return None
        try:
            exception = json.loads(self.body)["RemoteException"]
            return RemoteError(exception["exception"], str(exception["message"]).split("\n")[0])
        except (ValueError, KeyError, TypeError):
            return RemoteError(f"HTTP {self.status}", self.reason)


class WebHdfs:
    """A name node's WebHDFS. Paths are absolute. `token` is a delegation token that another process obtained.

    Raises RemoteError; StorageAccessError without a login; OSError or HTTPException if nothing answers.
    """

    def __init__(self, config: HdfsConfig, token: str | None = None) -> None:
        self.config = config
        self.login = HdfsLogin(config, token)
        self._answered_last: str | None = None
        self._active_until = 0.0

    @property
    def _rounds(self) -> int:
        return _ROUNDS if len(self.config.addresses) == 1 else _ROUNDS_OF_SEVERAL

    def call(self, method: str, operation: str, path: str, **parameters: str) -> dict[str, Any]:
        """The NameNode's answer to an operation on names."""
        answer = self._ask(method, operation, path, parameters)
        return json.loads(answer.body) if answer.body else {}

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """The file's content, or a range of it, which is shorter if the file ends before."""
        parameters = {"offset": str(offset)} | ({} if length is None else {"length": str(length)})
        return self._transfer("GET", "OPEN", path, parameters, None, 0)

    def write(self, path: str, content: BinaryIO, size: int) -> None:
        """Creates or replaces the file. A reader may see an incomplete file."""
        self._transfer("PUT", "CREATE", path, {"overwrite": "true"}, content, size)

    def rename(self, source: str, target: str, *, replaces: bool) -> None:
        """Renames a file or link, in one step. Raises RemoteError if the target exists and is not to be replaced.

        Raises RefusedError if the server ignores that, as HttpFS does.
        """
        options = "OVERWRITE" if replaces else "NONE"
        answer = self.call("PUT", "RENAME", source, destination=target, renameoptions=options)
        # A NameNode answers so only without options, and then says False instead of refusing.
        if "boolean" in answer:
            raise _http_fs_refused(self._answered_last or "")

    def _transfer(
        self, method: str, operation: str, path: str, parameters: Mapping[str, str], content: BinaryIO | None, size: int
    ) -> bytes:
        """An operation that the NameNode redirects to a DataNode. Starts again if that one fails."""
        failure: Exception | None = None
        lost_nodes: list[str] = []
        for attempt in range(self._rounds):
            if failure is not None:
                _pause(attempt)
            try:
                answer = self._ask(method, operation, path, {**parameters, **_excluded(lost_nodes)})
            except RemoteError as refused:
                if not lost_nodes:
                    raise
                # It has no others: one of those may be back.
                failure = refused
                lost_nodes.clear()
                continue
            location = answer.location
            if location is None:
                return answer.body
            if content is not None:
                if "data" in parse_qs(urlsplit(location).query):
                    raise _http_fs_refused(location)
                content.seek(0)
            try:
                answer = self._exchange(method, location, content, size)
            except (OSError, HTTPException) as lost:
                failure = ConnectionError(f"the DataNode at {urlsplit(location).netloc} does not answer: {lost}")
                lost_nodes.append(location)
                continue
            failure = answer.error()
            if failure is None:
                return answer.body
            if answer.status < 500 and failure.kind not in _TRY_ANOTHER and not failure.is_login:
                break
        assert failure is not None
        raise failure

    def _ask(self, method: str, operation: str, path: str, parameters: Mapping[str, str]) -> _Answer:
        failure: Exception | None = None
        for attempt in range(self._rounds):
            if failure is not None:
                _pause(attempt)
            denied: StorageAccessError | None = None
            for address in sorted(self.config.addresses, key=lambda one: one != self._answered_last):
                try:
                    answer = self._of_active(address) if method == "GET" else None
                    if answer is None:
                        answer = self._authenticated(address, method, operation, path, parameters)
                except StorageAccessError as refused:  # a standby NameNode may not know the token yet
                    denied = refused
                    continue
                except (OSError, HTTPException) as lost:
                    failure = lost
                    continue
                failure = answer.error()
                if _is_final(answer, failure):
                    self._answered_last = address
                    if method != "GET":
                        self._active_until = time.monotonic() + _ACTIVE_SECONDS
                    if failure is not None:
                        raise failure
                    return answer
            if denied is not None:
                raise denied
        assert failure is not None
        raise failure

    def _of_active(self, address: str) -> _Answer | None:
        """None if this is the active NameNode, otherwise its refusal."""
        is_known = address == self._answered_last and time.monotonic() < self._active_until
        if is_known or len(self.config.addresses) == 1:
            return None
        answer = self._authenticated(address, *_PROBE, {})
        if not _is_final(answer, answer.error()):
            return answer
        self._answered_last, self._active_until = address, time.monotonic() + _ACTIVE_SECONDS
        return None

    def _authenticated(
        self, address: str, method: str, operation: str, path: str, parameters: Mapping[str, str]
    ) -> _Answer:
        """The answer of one NameNode. Logs in if it requires that. Raises StorageAccessError if that is impossible."""

        def ask(token: str | None) -> _Answer:
            identity = {"user.name": self.config.user} if token is None else {"delegation": token}
            query = urlencode({"op": operation, **parameters, **identity})
            return self._exchange(method, f"{address}/webhdfs/v1{quote(path)}?{query}", None, 0)

        token = self.login.token
        answer = ask(token)
        failure = answer.error()
        if failure is None or not failure.is_login:
            return answer
        url = f"{address}/webhdfs/v1/?op=GETDELEGATIONTOKEN"
        issued: list[_Answer] = []

        def fetch_token(header: str) -> str | None:
            """None if this NameNode issues none now."""
            issued[:] = [self._exchange("GET", url, None, 0, {"Authorization": header})]
            refused = issued[0].error()
            if refused is None:
                return str(json.loads(issued[0].body)["Token"]["urlString"])
            if refused.is_login:
                raise KerberosError(refused.message)
            return None

        is_renewed = self.login.renew(token, address, failure.message, fetch_token)
        return ask(self.login.token) if is_renewed else issued[0]

    def _exchange(
        self, method: str, url: str, content: BinaryIO | None, size: int, more_headers: Mapping[str, str] = _NO_HEADERS
    ) -> _Answer:
        """One request, on a separate connection, because a NameNode closes it after each response anyway."""
        parts = urlsplit(url)
        timeout, is_tls = self.config.timeout_seconds, parts.scheme == "https"
        count_request()
        connection = (
            HTTPSConnection(
                parts.netloc, timeout=timeout, blocksize=_SEND_BYTES, context=_tls(os.environ.get(_AUTHORITIES))
            )
            if is_tls
            else HTTPConnection(parts.netloc, timeout=timeout, blocksize=_SEND_BYTES)
        )
        try:
            headers = (
                {"Content-Type": "application/octet-stream", "Content-Length": str(size)} if method != "GET" else {}
            )
            connection.request(method, f"{parts.path}?{parts.query}", content, {**headers, **more_headers})
            answer = connection.getresponse()
            location = answer.getheader("Location") if answer.status == 307 else None
            return _Answer(answer.status, answer.reason, location, answer.read())
        except ssl.SSLCertVerificationError as failure:
            raise untrusted_certificate(f"cannot reach {parts.netloc}", failure.verify_message) from failure
        finally:
            connection.close()


def _is_final(answer: _Answer, failure: RemoteError | None) -> bool:
    """Whether neither this NameNode a little later nor another one would answer otherwise."""
    if failure is None or failure.kind == _UNKNOWN_OPERATION:
        return True
    return answer.status < 500 and failure.kind not in _TRY_ANOTHER


def _http_fs_refused(url: str) -> RefusedError:
    """HttpFS redirects a write to itself, with a parameter `data`, and has no rename that replaces, or that refuses to."""
    return RefusedError(
        f"{urlsplit(url).netloc} is HttpFS, which ignores the options of a rename, so that two writers could both "
        f"believe to have created a file: set {HTTP_ADDRESS} to the web address of the NameNode (usually port 9870), or "
        "open the table as webhdfs://NAMENODE:9870/PATH; through HttpFS, tables can only be read"
    )


def _excluded(lost_nodes: Sequence[str]) -> dict[str, str]:
    """The parameter with which a NameNode names none of the DataNodes of these URLs.

    It takes ten minutes to notice that one is gone, and to a client on the same host it names no other. It knows
    them by their IP addresses: the port in a URL is not the one that it would compare.
    """
    addresses: set[str] = set()
    for url in lost_nodes:
        with suppress(OSError):  # a name that can't be resolved
            addresses.add(socket.gethostbyname(urlsplit(url).hostname or ""))
    return {"excludedatanodes": ",".join(sorted(addresses))} if addresses else {}


def _pause(attempt: int) -> None:
    time.sleep(min(_PAUSE_SECONDS * 2**attempt, _PAUSE_SECONDS_MAX))


@cache
def _tls(authorities: str | None) -> ssl.SSLContext:
    """Reading the system's certificates takes longer than a request, so they are read once."""
    return ssl.create_default_context(cafile=authorities)

"""A proxy that loses responses, or sends wrong ones, on demand."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Fault(Enum):
    REPLY_LOST = auto()
    """Forwards the request, and closes the connection without an answer."""
    UNAVAILABLE = auto()
    """Answers 503 without forwarding the request."""
    FAILED_AFTER = auto()
    """Forwards the request, and answers 503."""
    SILENT = auto()
    """Forwards the request, and answers nothing for longer than the client waits."""
    HALF = auto()
    """Cuts the answer off in the middle of its content."""


Choose = Callable[[str, str, int], Fault | None]
"""The fault for a request, by method, path with query, and the number of earlier requests with that method."""


@dataclass(slots=True)
class FaultyProxy:
    """A running proxy. `choose` may be set at any time; `struck` counts the faults.

    `refused_conditions` are the methods whose requests with the condition `refused_header`, by default of a create, it
    refuses, and the status with which it does.
    """

    port: int
    refused_conditions: Mapping[str, int] = field(default_factory=dict[str, int])
    refused_header: str = "If-None-Match"
    choose: Choose = lambda _method, _path, _number: None
    struck: Counter[Fault] = field(default_factory=Counter[Fault])
    seen: Counter[str] = field(default_factory=Counter[str])
    lock: threading.Lock = field(default_factory=threading.Lock)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def strike_once(self, fault: Fault, method: str, part_of_path: str = "") -> None:
        """Sets a fault for the next request of that method whose path contains this string, and for no other."""
        is_over = threading.Event()

        def choose(asked: str, path: str, _number: int) -> Fault | None:
            if asked != method or part_of_path not in path or is_over.is_set():
                return None
            is_over.set()
            return fault

        self.choose = choose

    def fault_of(self, method: str, path: str) -> Fault | None:
        with self.lock:
            number = self.seen[method]
            self.seen[method] += 1
            found = self.choose(method, path, number)
            if found is not None:
                self.struck[found] += 1
            return found


class _Server(ThreadingHTTPServer):
    """`target` is the `host:port` behind the proxy."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.proxy = FaultyProxy(self.server_port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_any(self) -> None:
        assert isinstance(self.server, _Server)
        proxy = self.server.proxy
        self.close_connection = True
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = proxy.fault_of(self.command, self.path)
        if proxy.refused_header in self.headers and self.command in proxy.refused_conditions:
            self._refuse(proxy.refused_conditions[self.command])
            return
        if fault is Fault.UNAVAILABLE:
            self.send_error(503)
            return
        answer, content = self._forward(self.server.target, sent)
        match fault:
            case Fault.REPLY_LOST:
                return
            case Fault.SILENT:
                proxy.ended.wait(5)
            case Fault.FAILED_AFTER:
                self.send_error(503)
            case _:
                self._reply(answer, content, sent_bytes=len(content) // 2 if fault is Fault.HALF else len(content))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_any  # noqa: N815  # the names that http.server calls

    def _refuse(self, status: int) -> None:
        code = {501: "NotImplemented", 400: "InvalidArgument"}[status]
        content = f"<Error><Code>{code}</Code><Message>A header is not implemented.</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _forward(self, target: str, sent: bytes) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection(target, timeout=30)
        try:
            headers = {key: value for key, value in self.headers.items() if key.lower() != "connection"}
            # Unchanged, including Host, because a signature may cover them.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for key, value in headers.items():
                connection.putheader(key, value)
            connection.endheaders(sent)
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def _reply(self, answer: HTTPResponse, content: bytes, *, sent_bytes: int) -> None:
        assert isinstance(self.server, _Server)
        proxy = self.server.proxy
        self.send_response(answer.status)
        for key, value in answer.getheaders():
            if key.lower() not in ("connection", "transfer-encoding", "content-length", "server", "date"):
                # What the server calls by its own address is found through the proxy, too.
                self.send_header(key, value.replace(self.server.target, proxy.address) if key == "Location" else value)
        length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(content))
        self.send_header("Content-Length", length or "0")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content[:sent_bytes])

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def faulty_proxy(target: str) -> Iterator[FaultyProxy]:
    """A proxy on loopback for `host:port`, for the length of the block."""
    server = _Server(target)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.proxy
    finally:
        server.proxy.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()

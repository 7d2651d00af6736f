"""An HTTP server in a thread of the test, which takes the events of done markers."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

RESET = None
"""An answer: the connection is closed without one."""
SILENCE = 0
"""An answer: none comes before the caller's patience ends."""


@dataclass
class Receiver:
    """Gives its `answers` first, each once, and then takes every event. `calls` has those taken: document, headers, body."""

    answers: list[int | None] = field(default_factory=list[int | None])
    calls: list[tuple[dict[str, Any], dict[str, str], bytes]] = field(default_factory=list[Any])
    url: str = ""

    @property
    def events(self) -> list[tuple[str, int]]:
        """Kind and begin of those that a receiver counts, which knows the ids that it has had: in order, none twice."""
        by_id = {document["id"]: document for document, _, _ in self.calls}
        numbers = [document["number"] for document in by_id.values()]
        assert numbers == sorted(set(numbers)), numbers
        return [(document["event"], document["begin_ms"]) for document in by_id.values()]


@contextmanager
def receiving() -> Iterator[Receiver]:
    found, is_over = Receiver(), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = found.answers.pop(0) if found.answers else 200
            if answer is None:
                self.connection.close()
            elif answer == SILENCE:
                is_over.wait()
            else:
                self._answer(answer, body)

        def _answer(self, answer: int, body: bytes) -> None:
            if answer < 300:
                found.calls.append((json.loads(body), dict(self.headers), body))
            self.send_response(answer)
            if 300 <= answer < 400:
                self.send_header("Location", found.url)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/hook?token=hush"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        server.shutdown()
        thread.join()
        server.server_close()

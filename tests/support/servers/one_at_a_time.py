"""Moto's S3 server, one request at a time: `python one_at_a_time.py PORT`.

Moto's own server answers each request on a thread, and checks whether a key exists before it writes it. So two
concurrent conditional creates both succeed. A real store serializes them, and so does this server.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_lock = threading.Lock()
_s3 = DomainDispatcherApplication(create_backend_app)


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    with _lock:
        return list(_s3(environ, start_response))


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), application, threaded=True)

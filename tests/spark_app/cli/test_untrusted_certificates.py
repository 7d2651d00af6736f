"""A store whose certificate is not trusted is wrong input, and is said so before its client has asked five times."""

import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from support.run.command_line import run

_KEY = "c2VjcmV0LWtleQ=="


class _Counting(ThreadingHTTPServer):
    """A server with a certificate of nobody's; `shaken` counts the connections that begin."""

    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), BaseHTTPRequestHandler)
        self.shaken = 0
        names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", str(directory / "key"), "-out", str(directory / "certificate")]
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", *names, *files]
        subprocess.run(command, check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(directory / "certificate", directory / "key")

    def get_request(self) -> tuple[ssl.SSLSocket, object]:
        connection, address = self.socket.accept()
        self.shaken += 1
        return self.context.wrap_socket(connection, server_side=True), address


@pytest.fixture(scope="module")
def untrusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Counting]:
    with _Counting(tmp_path_factory.mktemp("tls")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs", "swebhdfs"])
def test_an_untrusted_certificate_is_wrong_input_and_is_asked_for_once_or_twice(
    untrusted: _Counting, scheme: str
) -> None:
    place = f"127.0.0.1:{untrusted.server_port}"
    blobs = f"https://{place}/devstoreaccount1"
    options = {
        "s3": [f"s3.endpoint=https://{place}", "s3.access-key-id=someone", "s3.secret-access-key=word", "s3.region=x"],
        "gs": ["fsspec.token=anon", f"fsspec.endpoint_url=https://{place}"],
        "abfs": [f"fsspec.connection_string=AccountName=devstoreaccount1;AccountKey={_KEY};BlobEndpoint={blobs}"],
        "swebhdfs": [],
    }[scheme]
    before = untrusted.shaken
    words = [word for option in options for word in ("--option", option)]
    answer = run("show", f"swebhdfs://{place}/t" if scheme == "swebhdfs" else f"{scheme}://lake/t", *words)
    assert answer.exit_code == 2, answer.stderr
    assert "its certificate is not trusted (self-signed certificate)" in answer.stderr
    assert "SSL_CERT_FILE" in answer.stderr
    assert 1 <= untrusted.shaken - before <= 3

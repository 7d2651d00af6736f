"""Counts the requests that this process sends to S3 and HDFS, without those that a client library repeats."""

import threading

_lock = threading.Lock()
_sent = 0


def count_request() -> None:
    global _sent
    with _lock:
        _sent += 1


def requests_sent() -> int:
    """All requests so far."""
    return _sent

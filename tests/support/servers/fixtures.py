"""Fixtures of the real servers: each starts when a test first asks for it, and ends with the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from support.real_parts import require_or_skip
from support.servers import s3_servers
from support.servers.s3_servers import S3Server
from support.servers.server_process import ServerUnavailableError


def _s3(
    start: Callable[[Path], AbstractContextManager[S3Server]], temporary: pytest.TempPathFactory
) -> Iterator[S3Server]:
    try:
        starting = start(temporary.mktemp("s3"))
        found = starting.__enter__()
    except ServerUnavailableError as missing:
        require_or_skip(f"no S3 server here: {missing}")
    try:
        yield found
    finally:
        starting.__exit__(None, None, None)


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server in Python."""
    yield from _s3(s3_servers.moto, tmp_path_factory)


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server in Go."""
    yield from _s3(s3_servers.seaweedfs, tmp_path_factory)


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server that ignores conditions on writes."""
    yield from _s3(s3_servers.rclone, tmp_path_factory)

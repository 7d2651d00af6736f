"""Where the jar of a Hudi bundle lies on this machine.

Spark's own package resolver downloads it, once, into a cache folder. Its checksum is pinned here, so that
every run is judged by the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

BUNDLE_SHA256 = {
    "0.15.0": "aab6ecdb5c65fcd20406b980b31ccec294fae95693de947d5778f0b3fb4e302a",
    "1.1.1": "5470908f0d26897fb6e0768790e6c75e3d05d2fa013f7d81c8f90c74056d1604",
    "1.2.0": "cc79fba00822f3a6c3a860df99375c2e3d4a034d037dbf4213a4966a706a7676",
}
"""SHA-256 of `org.apache.hudi:hudi-spark3.5-bundle_2.12` as Maven Central serves it."""

RESOLVER = Path(__file__).parent / "resolver.py"
DOWNLOAD_TIMEOUT_SECONDS = 540


class JarUnavailableError(RuntimeError):
    """The bundle is neither in the cache nor to be had from the package registry."""


def cache_folder() -> Path:
    """The folder that downloaded parts are kept in between runs."""
    return Path(os.environ.get("EVENTIDE_CACHE") or Path.home() / ".cache" / "eventide")


def bundle_jar(version: str, *, python: Path, environment: dict[str, str]) -> Path:
    """The path of the bundle's jar, downloaded first when the cache lacks it.

    `python` is an interpreter that has PySpark, whose resolver does the download. Raises
    `JarUnavailableError` when the download fails or brings other bytes than the pinned ones.
    """
    name = f"hudi-spark3.5-bundle_2.12-{version}.jar"
    jar = cache_folder() / "jars" / name
    if jar.exists() and _sha256(jar) == BUNDLE_SHA256[version]:
        return jar
    jar.parent.mkdir(parents=True, exist_ok=True)
    coordinate = f"org.apache.hudi:hudi-spark3.5-bundle_2.12:{version}"
    staging = Path(tempfile.mkdtemp(prefix=".resolving-", dir=jar.parent))
    try:
        resolved = subprocess.run(
            [str(python), str(RESOLVER), coordinate, str(staging)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_SECONDS,
            check=False,
        )
        downloaded = staging / "jars" / f"org.apache.hudi_{name}"
        if not downloaded.exists():
            raise JarUnavailableError(f"{coordinate} could not be downloaded:\n{resolved.stdout[-2000:]}")
        if (found := _sha256(downloaded)) != BUNDLE_SHA256[version]:
            raise JarUnavailableError(f"{coordinate} has SHA-256 {found}, expected {BUNDLE_SHA256[version]}")
        # Two runs may download at once: the last rename wins, and both names hold the same bytes.
        downloaded.replace(jar)
    except subprocess.TimeoutExpired as late:
        raise JarUnavailableError(f"{coordinate}: no download within {DOWNLOAD_TIMEOUT_SECONDS} s") from late
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return jar


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

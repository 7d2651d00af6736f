"""Jars from Maven Central, downloaded once into a cache directory and checked against their checksums.

Spark's own package resolver downloads them, so PySpark and a Java are sufficient.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

RESOLVER = Path(__file__).parent / "resolver.py"
DOWNLOAD_TIMEOUT_SECONDS = 540


class JarUnavailableError(RuntimeError):
    """The jar is not in the cache and can't be downloaded from the package registry."""


@dataclass(frozen=True, slots=True)
class MavenJar:
    """`group:artifact:version`, the SHA-256 of the jar, and its dependencies that are excluded.

    For `maven_jars`, several coordinates may be joined by commas.
    """

    coordinate: str
    sha256: str
    excluded: tuple[str, ...] = ()


def cache_directory() -> Path:
    """The directory that keeps downloads between runs."""
    return Path(os.environ.get("EVENTIDE_CACHE") or Path.home() / ".cache" / "eventide")


def maven_jar(wanted: MavenJar, *, python: Path, environment: Mapping[str, str]) -> Path:
    """The path of the jar. Downloads it if the cache lacks it.

    `python` is an interpreter with PySpark, whose resolver does the download. Raises `JarUnavailableError` if the
    download fails or returns other bytes than the pinned ones.
    """
    group, artifact, version = wanted.coordinate.split(":")
    jar = cache_directory() / "jars" / f"{artifact}-{version}.jar"
    if jar.exists() and _sha256(jar) == wanted.sha256:
        return jar
    with _resolved(wanted, python, environment) as jars:
        downloaded = jars / f"{group}_{jar.name}"
        if not downloaded.exists():
            raise JarUnavailableError(f"{wanted.coordinate} was not among what was downloaded")
        _require(wanted, _sha256(downloaded))
        # Two runs may download at the same time: the last rename wins, and both names contain the same bytes.
        downloaded.replace(jar)
    return jar


def maven_jars(wanted: MavenJar, *, python: Path, environment: Mapping[str, str]) -> list[Path]:
    """The paths of a jar and its dependencies, like `maven_jar`. The checksum covers all of them by name."""
    _, artifact, version = wanted.coordinate.partition(",")[0].split(":")
    directory = cache_directory() / "jars" / f"{artifact}-{version}"
    if _sha256_of_all(directory) != wanted.sha256:
        with _resolved(wanted, python, environment) as jars:
            _require(wanted, _sha256_of_all(jars))
            # Another run may have been faster, with the same bytes.
            with suppress(OSError):
                jars.replace(directory)
        _require(wanted, _sha256_of_all(directory))
    return sorted(directory.iterdir())


@contextmanager
def _resolved(wanted: MavenJar, python: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """A directory with the downloads of Spark's resolver, for the length of the block."""
    jars = cache_directory() / "jars"
    jars.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".resolving-", dir=jars))
    try:
        resolved = subprocess.run(
            [str(python), str(RESOLVER), wanted.coordinate, str(staging), ",".join(wanted.excluded)],
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_SECONDS,
            check=False,
        )
        if not (staging / "jars").is_dir():
            raise JarUnavailableError(f"{wanted.coordinate} could not be downloaded:\n{resolved.stdout[-2000:]}")
        yield staging / "jars"
    except subprocess.TimeoutExpired as late:
        raise JarUnavailableError(f"{wanted.coordinate}: no download within {DOWNLOAD_TIMEOUT_SECONDS} s") from late
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _require(wanted: MavenJar, found: str) -> None:
    if found != wanted.sha256:
        raise JarUnavailableError(f"{wanted.coordinate} has SHA-256 {found}, expected {wanted.sha256}")


def _sha256_of_all(directory: Path) -> str:
    """The checksum of the names and checksums of all files; of nothing if there is no such directory."""
    files = sorted(directory.iterdir()) if directory.is_dir() else []
    return hashlib.sha256("".join(f"{file.name} {_sha256(file)}\n" for file in files).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

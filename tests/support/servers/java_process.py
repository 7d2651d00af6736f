"""Java processes for tests, from the jars that PySpark brings, and the gateway through which Python calls them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from support.servers.server_process import ServerUnavailableError

SPARK_JARS = Path(pyspark.__file__).parent / "jars"


@dataclass(frozen=True, slots=True)
class JavaProcess:
    """A running Java process. `jvm` gives access to its classes, `port` is its gateway's."""

    jvm: Any
    port: int
    process: Any


def java_for_spark_jars(pattern: str, server: str) -> Path:
    """The `java` that runs a server of PySpark's jars.

    Raises ServerUnavailableError if there is no Java, or if no jar matches `pattern`, because PySpark was installed
    without that server.
    """
    if not list(SPARK_JARS.glob(pattern)):
        raise ServerUnavailableError(f"this PySpark was installed without {server}")
    try:
        return Path(find_java_home(), "bin", "java")
    except JavaNotFoundError as missing:
        raise ServerUnavailableError(str(missing)) from missing


@contextmanager
def java_process(java: Path, classpath: Sequence[str], options: Sequence[str], log: Path) -> Iterator[JavaProcess]:
    """A Java process for the length of the block. It ends when its standard input does.

    The process keeps every object that it returned, so that a server does not depend on Python's references to it.
    """
    with log.open("w") as output:
        port, process = cast(Any, launch_gateway)(
            jarpath=str(next(SPARK_JARS.glob("py4j-*.jar"))),
            classpath=":".join(classpath),
            javaopts=[f"-Djava.io.tmpdir={log.parent}", *options],
            java_path=str(java),
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
        gateway: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False))
        try:
            yield JavaProcess(gateway.jvm, port, process)
        finally:
            gateway.close()
            process.stdin.close()
            process.wait()

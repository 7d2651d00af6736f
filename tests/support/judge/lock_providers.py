"""Hudi's own lock providers, each in a Java process without Spark, so that one can be killed while it holds a lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from eventide.spark.java_home import find_java_home
from support.judge.hudi_judge import judge_environment, judge_python
from support.judge.jars import AWS_LOCK, BUNDLES
from support.maven import maven_jar, maven_jars

WAIT_MS = 60_000
# What a writer of Hudi sets by default, and a provider of its own reads.
DEFAULTS = {
    "hoodie.write.lock.wait_time_ms": str(WAIT_MS),
    "hoodie.write.lock.wait_time_ms_between_retry": "1000",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "16000",
    "hoodie.write.lock.num_retries": "15",
    "hoodie.write.lock.zookeeper.session_timeout_ms": "60000",
    "hoodie.write.lock.zookeeper.connection_timeout_ms": "15000",
}


class HudiLock:
    """A provider of Hudi in a process of its own. Used by one thread: ZooKeeper's lock belongs to a thread of Java."""

    def __init__(self, process: Any, gateway: Any, provider: Any) -> None:
        self._process = process
        self._gateway = gateway
        self._provider = provider

    def try_acquire(self, wait_ms: int = WAIT_MS) -> bool:
        """Some providers answer False where the lock is not free in time, others raise."""
        try:
            unit = self._gateway.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
            return bool(self._provider.tryLock(wait_ms, unit))
        except Py4JJavaError as failure:
            if "HoodieLockException" in str(failure.java_exception):
                return False
            raise

    def acquire(self) -> None:
        """Waits until it is held, as Hudi's LockManager does."""
        while not self.try_acquire():
            continue

    def release(self) -> None:
        self._provider.unlock()

    def kill(self) -> None:
        """The process, where it stands."""
        self._process.kill()
        self._process.wait()


@contextmanager
def hudi_lock(version: str, provider: str, options: Mapping[str, str], log: Path) -> Iterator[HudiLock]:
    """Raises JudgeUnavailableError, JavaNotFoundError, JarUnavailableError."""
    environment = judge_environment()
    jars = [maven_jar(BUNDLES[version], python=judge_python(), environment=environment)]
    if ".aws." in provider:
        jars += maven_jars(AWS_LOCK, python=judge_python(), environment=environment)
    spark_jars = next(judge_python().parent.parent.glob("lib/python3*/site-packages/pyspark/jars"))
    py4j = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    with log.open("w") as output:
        port, process = cast(Any, launch_gateway)(
            jarpath=str(py4j),
            classpath=":".join([*map(str, jars), f"{spark_jars}/*"]),
            # The AWS libraries read their region from here alone.
            javaopts=["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Daws.region=us-east-1"],
            java_path=str(Path(environment.get("JAVA_HOME") or find_java_home(), "bin", "java")),
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=output,
            redirect_stderr=output,
        )
        gateway: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port, enable_memory_management=False))
        try:
            yield HudiLock(process, gateway, _provider(gateway.jvm, provider, {**DEFAULTS, **options}))
        finally:
            gateway.close()
            process.stdin.close()
            process.kill()
            process.wait()


def _provider(java: Any, provider: str, options: Mapping[str, str]) -> Any:
    properties = java.org.apache.hudi.common.config.TypedProperties()
    for key, value in options.items():
        properties.setProperty(key, value)
    configuration = java.org.apache.hudi.common.config.LockConfiguration(properties)
    storage = java.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(False)
    found = java
    for part in provider.split("."):
        found = getattr(found, part)
    return found(configuration, storage)

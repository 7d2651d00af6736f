"""Hudi's own lock providers, each in a Java process without Spark, so that one can be killed while it holds a lock."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

from eventide.spark.java_home import find_java_home
from support.judge.hudi_judge import judge_environment, judge_python
from support.judge.jars import AWS_LOCK, BUNDLES
from support.run.maven import maven_jar, maven_jars
from support.servers.java_process import JavaProcess, java_process

WAIT_MS = 60_000
# Hudi's writers set these defaults; a provider that is created without a writer needs them.
DEFAULTS = {
    "hoodie.write.lock.wait_time_ms": str(WAIT_MS),
    "hoodie.write.lock.wait_time_ms_between_retry": "1000",
    "hoodie.write.lock.max_wait_time_ms_between_retry": "16000",
    "hoodie.write.lock.num_retries": "15",
    "hoodie.write.lock.zookeeper.session_timeout_ms": "60000",
    "hoodie.write.lock.zookeeper.connection_timeout_ms": "15000",
}


class HudiLock:
    """A lock provider of Hudi in its own process. Use it from one thread: ZooKeeper's lock belongs to a Java thread."""

    def __init__(self, java: JavaProcess, provider: Any) -> None:
        self._java = java
        self._provider = provider

    def try_acquire(self, wait_ms: int = WAIT_MS) -> bool:
        """Whether it got the lock. If the lock is not free in time, some providers return False, others raise."""
        try:
            unit = self._java.jvm.java.util.concurrent.TimeUnit.MILLISECONDS
            return bool(self._provider.tryLock(wait_ms, unit))
        except Py4JJavaError as failure:
            if "HoodieLockException" in str(failure.java_exception):
                return False
            raise

    def acquire(self) -> None:
        """Waits until it has the lock, as Hudi's LockManager does."""
        while not self.try_acquire():
            continue

    def release(self) -> None:
        self._provider.unlock()

    def kill(self) -> None:
        """Kills the process immediately."""
        self._java.process.kill()
        self._java.process.wait()


@contextmanager
def hudi_lock(version: str, provider: str, options: Mapping[str, str], log: Path) -> Iterator[HudiLock]:
    """A lock provider for the length of the block.

    Raises JudgeUnavailableError, JavaNotFoundError, JarUnavailableError.
    """
    environment = judge_environment()
    jars = [maven_jar(BUNDLES[version], python=judge_python(), environment=environment)]
    if ".aws." in provider:
        jars += maven_jars(AWS_LOCK, python=judge_python(), environment=environment)
    spark_jars = next(judge_python().parent.parent.glob("lib/python3*/site-packages/pyspark/jars"))
    java = Path(environment.get("JAVA_HOME") or find_java_home(), "bin", "java")
    # The AWS libraries read their region only from here.
    settings = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Daws.region=us-east-1"]
    with java_process(java, [*map(str, jars), f"{spark_jars}/*"], settings, log) as started:
        try:
            yield HudiLock(started, _provider(started.jvm, provider, {**DEFAULTS, **options}))
        finally:
            started.process.kill()


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

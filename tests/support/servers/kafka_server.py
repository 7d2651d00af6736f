"""A real Kafka broker in KRaft mode: one process that is broker and controller.

Its jars come from Maven Central, 46 MB. Beside the plain listener, it has one with TLS, and one with SASL/PLAIN over TLS.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eventide.spark.java_home import JavaNotFoundError, find_java_home
from support.run.maven import JarUnavailableError, MavenJar, maven_jars
from support.servers.java_process import SPARK_JARS
from support.servers.server_process import ServerUnavailableError, answers, free_ports, server

_KAFKA: Final = MavenJar(
    "org.apache.kafka:kafka_2.13:3.9.1,org.slf4j:slf4j-nop:1.7.36",
    "8726b9338c1b5421b4c25cdb95b24b042b0f2c0e773b235231a77dc9fa374512",
)
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER: Final = "reader"
PASSWORD: Final = "hunter2-of-kafka"


@dataclass(frozen=True, slots=True)
class KafkaServer:
    """A running broker. The addresses are of the listeners; `authority` is the certificate that signs those with TLS."""

    address: str
    tls_address: str
    sasl_address: str
    authority: Path


@contextmanager
def kafka(directory: Path) -> Iterator[KafkaServer]:
    """A broker for the length of the block. Raises ServerUnavailableError."""
    try:
        java_home = find_java_home()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK", "PYTHON"))}
        environment |= {"JAVA_HOME": java_home, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        jars = maven_jars(_KAFKA, python=Path(sys.executable), environment=environment)
        certificate = _certificate(directory)
    except (JavaNotFoundError, JarUnavailableError, OSError) as missing:
        raise ServerUnavailableError(str(missing)) from missing
    plain, tls, sasl, controller = (f"127.0.0.1:{port}" for port in free_ports(4))
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{plain},SSL://{tls},SASL_SSL://{sasl},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{plain},SSL://{tls},SASL_SSL://{sasl}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": directory / "keystore.pem",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{_LOGIN} required user_{USER}="{PASSWORD}";',
        "log.dirs": directory / "data",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.dedupe.buffer.size": 2_000_000,
        "log.initial.task.delay.ms": 100,
        "log.retention.check.interval.ms": 100,
    }
    config = directory / "kafka.properties"
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    java = [str(Path(java_home, "bin", "java")), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    # Spark's resolver leaves out what Spark brings.
    java += ["-cp", ":".join(map(str, (*jars, *SPARK_JARS.glob("scala-library-*.jar"))))]
    cluster = "eventidetestsAAAAAAAAA"  # a UUID in Kafka's form
    formatting = [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)]
    formatted = subprocess.run(formatting, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if formatted.returncode:
        raise ServerUnavailableError(f"the broker's directory was not formatted: {formatted.stderr[-500:]}")
    port = int(plain.rpartition(":")[2])
    with server([*java, "kafka.Kafka", str(config)], directory / "log", lambda: answers(port)):
        yield KafkaServer(plain, tls, sasl, certificate)


def _certificate(directory: Path) -> Path:
    """The broker's certificate, which it signs itself; with its key in `keystore.pem`."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    (directory / "keystore.pem").write_text(key.read_text() + certificate.read_text())
    return certificate

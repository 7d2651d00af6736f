"""Spark's own servers from the pip package of PySpark: Spark Connect, and a standalone cluster of two workers.

Their Python workers have everything that is installed except eventide, which a session brings, as on remote machines.
"""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from eventide.spark.java_home import find_java_home
from support.servers.server_process import LEASH, answers, free_ports, server

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A master and its workers.

    `master` is the URL for a driver; `environment` has the variables that a driver also needs.
    """

    master: str
    workers: tuple[subprocess.Popen[bytes], ...]
    environment: dict[str, str]

    def kill_a_worker(self) -> None:
        """Kills a worker with its executors, like a machine that loses its power."""
        victim = self.workers[0]
        os.killpg(victim.pid, signal.SIGKILL)
        victim.wait()


@contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """The URL of a Spark Connect server with two cores."""
    (port,) = free_ports(1)
    settings = {
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    entry = "org.apache.spark.sql.connect.service.SparkConnectServer"
    command = [_program("spark-submit"), "--master", "local[2]", *words, "--class", entry, "spark-internal"]
    with server(command, directory / "connect.log", lambda: answers(port), _environment(directory)):
        yield f"sc://{HOST}:{port}"


@contextmanager
def spark_cluster(directory: Path) -> Iterator[SparkCluster]:
    """A standalone cluster of two workers with one core each."""
    port, page = free_ports(2)
    environment, program, url = _environment(directory), _program("spark-class"), f"spark://{HOST}:{port}"
    master = [program, "org.apache.spark.deploy.master.Master", "--host", HOST, "--port", str(port)]
    with (
        server([*master, "--webui-port", str(page)], directory / "master.log", lambda: answers(port), environment),
        ExitStack() as stack,
    ):
        workers = []
        for number in range(2):
            words = ["--cores", "1", "--memory", "1g", "--host", HOST, "--webui-port", "0"]
            command = [program, "org.apache.spark.deploy.worker.Worker", *words]
            worker = subprocess.Popen(
                [sys.executable, str(LEASH), *command, "--work-dir", str(directory / f"worker-{number}"), url],
                stdin=subprocess.PIPE,
                stdout=stack.enter_context((directory / f"worker-{number}.log").open("wb")),
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            stack.callback(_stop, worker)
            workers.append(worker)
        yield SparkCluster(url, tuple(workers), environment)


def _stop(worker: subprocess.Popen[bytes]) -> None:
    assert worker.stdin is not None
    worker.stdin.close()
    worker.wait()


def _program(name: str) -> str:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parent / "bin" / name)


def _environment(directory: Path) -> dict[str, str]:
    """The environment. Spark writes only to `directory`; its `python` is this one without the packages of the checkout."""
    local, python = directory / "local", directory / "python"
    local.mkdir()
    packages = sysconfig.get_path("purelib")
    # -S omits the links by which the checkout is installed.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK_"))}
    return kept | {
        "JAVA_HOME": find_java_home(),
        "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_DIRS": str(local),
        "SPARK_LOCAL_IP": HOST,
        "SPARK_SUBMIT_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }

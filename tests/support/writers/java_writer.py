"""Starts, monitors, and ends the process of `java_client.py`."""

import json
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from support.judge.hudi_judge import judge_environment, judge_python
from support.judge.jars import BUNDLES, CLIENT_RUNS_ON, JAVA_CLIENTS
from support.run.maven import maven_jar
from support.writers.batches import Batch, put_json_lines

Unfinished = Literal["requested", "inflight", "some logs", "logs"]
Steps = Unfinished | Literal["twice"]
SCRIPT = Path(__file__).parent / "java_client.py"
BATCHES = 400
TIMEOUT_SECONDS = 300


class JavaWriter:
    """A process of Hudi's Java client `hudi` that writes tables of `version`, one batch after another.

    `dying` are tables that get `whole` batches and the first steps of one more, or a compaction plan, before it writes
    to any other table. `is_flink_state`: file groups have the ids of Flink's state index, not of buckets.
    """

    def __init__(
        self,
        hudi: str,
        version: int,
        tables: Sequence[Path],
        scratch: Path,
        *,
        options: Mapping[str, str],
        dying: Mapping[Path, Steps | Literal["plan"]] | None = None,
        whole: int = 0,
        first: int = 0,
        hold: float = 0.0,
        gap: float = 0.05,
        is_flink_state: bool = False,
        has_variant: bool = False,
    ) -> None:
        python, environment = judge_python(), judge_environment()
        wanted = JAVA_CLIENTS[hudi], BUNDLES[CLIENT_RUNS_ON.get(hudi, hudi)]
        jars = [maven_jar(jar, python=python, environment=environment) for jar in wanted]
        spark = next(python.parent.parent.glob("lib/python3*/site-packages/pyspark/jars"))
        scratch.mkdir(parents=True, exist_ok=True)
        self._truth, self._log = scratch / "truth", scratch / "log"
        put_json_lines(scratch / "batches", BATCHES)
        config = {
            "classpath": [*map(str, jars), f"{spark}/*"],
            "py4j": str(next(spark.glob("py4j-*.jar"))),
            "java": _java(environment),
            "tables": [
                *({"path": str(path), "steps": steps} for path, steps in (dying or {}).items()),
                *({"path": str(path)} for path in tables),
            ],
            "hudi": hudi,
            "version": version,
            "options": dict(options),
            "batches": str(scratch / "batches"),
            "truth": str(self._truth),
            "first": first,
            "whole": whole,
            "hold": hold,
            "gap": gap,
            "is_flink_state": is_flink_state,
            "has_variant": has_variant,
        }
        (scratch / "config.json").write_text(json.dumps(config))
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(python), str(SCRIPT), str(scratch / "config.json")],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], TIMEOUT_SECONDS)
        if not readable or self._process.stdout.readline() != b"ready\n":
            self.kill()
            raise AssertionError(f"the Java client did not start:\n{self._told()}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def acknowledged(self) -> list[Batch]:
        """The batches that Hudi reported as committed. Raises AssertionError if the writer has failed."""
        assert self._process.poll() is None, f"the Java client ended:\n{self._told()}"
        return self._acknowledged()

    def stop(self) -> list[Batch]:
        """Lets it finish the open batch, and then ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        code = self._process.wait(TIMEOUT_SECONDS)
        assert code == 0, f"the Java client ended with {code}:\n{self._told()}"
        return self._acknowledged()

    def kill(self) -> None:
        """Kills it and its JVM immediately, at any step."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def begun(self) -> dict[str, Batch]:
        """The batch of each instant that it has requested, also after it was killed."""
        return {line["instant"]: Batch(line["batch"]) for line in self._lines()}

    def _acknowledged(self) -> list[Batch]:
        return sorted({Batch(line["batch"]) for line in self._lines() if line["is_acknowledged"]})

    def _lines(self) -> list[dict[str, Any]]:
        lines = self._truth.read_text().splitlines(keepends=True) if self._truth.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def _told(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]


def _java(environment: Mapping[str, str]) -> str:
    home = environment.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java") or "java"

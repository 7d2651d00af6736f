"""A pipeline from a real broker: a producer, an ingester, a service and a gate, each in its own process.

The ingester is killed, then the producer, and each is started again.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from eventide import Table
from support.run.child_processes import environment
from support.run.command_line import run
from support.servers.kafka_server import KafkaServer
from support.tables.hourly import made

pytestmark = pytest.mark.broad
pytest.importorskip("confluent_kafka")
LATENCY_MS = 1000


@dataclass
class Pipeline:
    address: str
    table: Table
    directory: Path
    topic: str = field(default_factory=lambda: f"orders-{uuid4().hex[:8]}")
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, name: str) -> None:
        of_kafka = ("-m", "support.processes.kafka_pipeline", name, self.address, self.topic)
        words = {
            "produce": (*of_kafka, str(self.directory / "sent")),
            "ingest": (*of_kafka, self.table.uri),
            "serve": ("-m", "eventide", "serve", self.table.uri, "--data-latency", "1s", "--every", "1s"),
        }[name]
        with (self.directory / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [sys.executable, *words, *(("--engine", "local") if name == "serve" else ())],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self, name: str) -> int:
        """Returns a time after its last action."""
        self.running[name].kill()
        self.running.pop(name).wait()
        return time.time_ns() // 1_000_000

    def gate(self, moment_ms: int) -> tuple[bool, dict[str, Any]]:
        """Whether all before that time is there. All that was sent before the watermark has to be in the view."""
        answer = run("freshness", self.table.uri, "--require", str(moment_ms), "--output", "json")
        document: dict[str, Any] = json.loads(answer.stdout)
        watermark_ms = document["watermark_ms"]
        if watermark_ms is not None:
            assert not {one for one in self.sent() if one < watermark_ms} - self.in_view()
        assert answer.exit_code == (0 if document["met"] else 1), answer.stderr
        return document["met"], document["sources"][0]

    def sent(self) -> set[int]:
        return {int(line) for line in (self.directory / "sent").read_text().splitlines()}

    def in_view(self) -> set[int]:
        return {row["ms"] for row in self.table.read_optimized().to_arrow().to_pylist()}

    def ingested(self) -> set[int]:
        """Once a source has all of a topic, also a message whose producer died before it noted it."""
        return {row["ms"] for row in self.table.snapshot().to_arrow().to_pylist()}

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, [*self.table.sources]
            for name, process in self.running.items():
                assert process.poll() is None, (self.directory / f"{name}.log").read_text()[-2000:]


@pytest.fixture
def pipeline(kafka: KafkaServer, tmp_path: Path) -> Iterator[Pipeline]:
    found = Pipeline(kafka.address, made(tmp_path), tmp_path)
    with ExitStack() as ending:
        ending.callback(lambda: [found.kill(name) for name in [*found.running]])
        yield found


def test_the_gate_closes_while_the_ingester_or_the_producer_is_dead(pipeline: Pipeline) -> None:
    pipeline.table.sources.declare(
        "orders", "kafka", bootstrap_servers=pipeline.address, topic=pipeline.topic, latency="1s"
    )
    for name in ("produce", "ingest", "serve"):
        pipeline.start(name)
    began_ms = time.time_ns() // 1_000_000
    pipeline.until(lambda: pipeline.gate(began_ms)[0])

    dead_ms = pipeline.kill("ingest")
    # The first message that was not read is of a moment later at most, so no T beyond that is met from now on.
    after_ms = dead_ms + LATENCY_MS
    pipeline.until(lambda: max(pipeline.sent()) > after_ms + 2 * LATENCY_MS)
    is_met, source = pipeline.gate(after_ms)
    assert not is_met
    assert "is behind by" in source["evidence"]
    pipeline.start("ingest")
    pipeline.until(lambda: pipeline.gate(after_ms)[0])

    dead_ms = pipeline.kill("produce")
    pipeline.until(lambda: "has all of" in pipeline.gate(began_ms)[1]["evidence"])
    is_met, source = pipeline.gate(dead_ms)
    assert not is_met
    assert source["idle_since_ms"] == max(pipeline.ingested())
    pipeline.start("produce")
    pipeline.until(lambda: pipeline.gate(dead_ms)[0])

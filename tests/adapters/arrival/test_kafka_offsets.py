"""What commits say of Kafka's offsets, and what a source needs before it asks a broker."""

import json
import time
from dataclasses import replace

import pytest

from eventide_adapters.arrival import kafka
from eventide_adapters.arrival.kafka import KafkaSource, open_kafka
from eventide_core.errors import ConfigError
from eventide_core.ports import SourceQuestion, StatedCommit
from eventide_core.table.timeline.source_progress import SourceProgress
from support.servers.server_process import free_ports


def next_offsets(*commits: dict[str, str], partitions: int = 2) -> dict[int, int]:
    """By these commits, the newest first."""
    source = KafkaSource("orders", "orders", 0, {})
    reads = source._reads([StatedCommit("1", 0, commit) for commit in commits])
    return kafka._next_offsets(reads, {number: kafka._Partition(-1, -1, -1, -1, 0, 0) for number in range(partitions)})


def checkpoint(text: str | dict[str, str], key: str = "deltastreamer.checkpoint.key") -> dict[str, str]:
    return {key: text if isinstance(text, str) else json.dumps(text)}


def test_the_newest_commit_that_names_the_topic_counts() -> None:
    older = checkpoint("orders,0:9,1:9", "streamer.checkpoint.key.v2")
    others: tuple[dict[str, str], ...] = (
        checkpoint("20260303000000000"),
        checkpoint("orders2,0:5"),
        checkpoint("orders,0:x"),
        {},
    )
    assert next_offsets(*others, checkpoint("orders,1:4,0:3"), older) == {0: 3, 1: 4}
    assert next_offsets(older | checkpoint("orders,0:1")) == {0: 9, 1: 9}, "the key of Hudi 1.0 wins"


def test_a_partition_that_no_commit_names_is_read_from_its_start() -> None:
    assert next_offsets(checkpoint("orders,0:3"), partitions=3) == {0: 3, 1: 0, 2: 0}
    assert next_offsets(checkpoint("orders,0:3,7:1"), partitions=1) == {0: 3, 7: 1}


def test_writers_share_a_topic_or_its_partitions() -> None:
    assert next_offsets(checkpoint({"a": "orders,0:3,1:9", "b": "orders,0:5,1:4"})) == {0: 3, 1: 4}
    assert next_offsets(checkpoint({"a": "orders,0:3", "b": "orders,1:4"})) == {0: 3, 1: 4}
    assert next_offsets(checkpoint({"a": "orders,0:3", "b": "orders,0:5,1:4"})) == {0: 3, 1: 0}


def test_a_broker_that_kept_the_gate_waiting_is_not_asked_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    (port,) = free_ports(1)
    given = {"bootstrap_servers": f"127.0.0.1:{port}", "latency": "5m"}
    sources = [open_kafka(topic, {**given, "topic": topic}) for topic in ("orders", "refunds")]
    said = [_asked(replace(source, timeout_seconds=0.4)) for source in sources]
    assert said[0].evidence == said[1].evidence
    assert f"127.0.0.1:{port} cannot be asked" in said[0].evidence
    monkeypatch.setattr("confluent_kafka.admin.AdminClient", lambda *_: pytest.fail("asked again"))
    assert [_asked(source).progress_ms for source in sources] == [None, None]
    later = time.monotonic() + 60
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(pytest.fail.Exception, match="asked again"):
        _asked(sources[0])


def _asked(source: KafkaSource) -> SourceProgress:
    commit = StatedCommit("1", 0, checkpoint(f"{source.topic},0:1"))
    return source.progress(SourceQuestion((commit,), 0, lambda _: (), lambda: 0))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r"the library for Kafka is not installed: run `pip install '.*\[kafka\]'`"):
        open_kafka("orders", {"bootstrap_servers": "kafka:9092", "topic": "orders", "latency": "5m"})

"""The sources of the kind `kafka`, by a real broker: what the broker has, and what a commit says was read of it."""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import pytest

from eventide.formatting import MaskedSource
from eventide_adapters.arrival.kafka import KafkaSource, open_kafka
from eventide_adapters.storage.secret_texts import secrets_in
from eventide_core.errors import ConfigError, format_timestamp
from eventide_core.ports import SourceQuestion, StatedCommit
from eventide_core.table.timeline.source_progress import SourceProgress
from support.servers.kafka_server import PASSWORD, USER, KafkaServer
from support.servers.server_process import free_ports

pytestmark = pytest.mark.broad
kafka_library = pytest.importorskip("confluent_kafka")
ADMIN: Any = pytest.importorskip("confluent_kafka.admin")
HOUR_MS = 3_600_000
NOW_MS = time.time_ns() // 1_000_000
"""The messages have timestamps of the hours before it, unless the broker gives them its own."""


def uncounted(_spans: object) -> tuple[int, ...]:
    raise AssertionError("a source of offsets counts no rows")


@dataclass
class Topic:
    """A topic of one test, and what an ingester has said of it."""

    server: KafkaServer
    name: str
    commits: list[StatedCommit] = field(default_factory=list)

    admin: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.admin = ADMIN.AdminClient({"bootstrap.servers": self.server.address})

    def make(self, partitions: int = 1, **config: str) -> None:
        config = {key.replace("_", "."): value for key, value in config.items()}
        (made,) = self.admin.create_topics([ADMIN.NewTopic(self.name, partitions, 1, config=config)]).values()
        made.result()
        until(lambda: self.has_leaders(partitions))

    def has_leaders(self, partitions: int) -> bool:
        asked = {kafka_library.TopicPartition(self.name, one): ADMIN.OffsetSpec.latest() for one in range(partitions)}
        self.admin.list_topics(timeout=5)  # which the client keeps
        try:
            return [offset.result() for offset in self.admin.list_offsets(asked).values()] != []
        except kafka_library.KafkaException:
            return False

    def delete(self) -> None:
        (deleted,) = self.admin.delete_topics([self.name]).values()
        deleted.result()
        until(lambda: self.name not in self.admin.list_topics(timeout=5).topics)

    def send(self, *hours_ago: float, partition: int = 0, key: str | None = None) -> None:
        producer = kafka_library.Producer({"bootstrap.servers": self.server.address})
        for hours in hours_ago:
            producer.produce(self.name, b"x", key, partition=partition, timestamp=ago(hours))
        assert producer.flush(10) == 0

    def read(self, offsets: str, key: str = "deltastreamer.checkpoint.key", completed_ms: int = NOW_MS) -> None:
        """A commit says so, in words of the Streamer."""
        self.commits.insert(0, StatedCommit(f"{len(self.commits):017}", completed_ms, {key: f"{self.name},{offsets}"}))

    def source(self, **settings: str) -> KafkaSource:
        known = {"bootstrap_servers": self.server.address, "topic": self.name, "latency": "5m"}
        return open_kafka("orders", {**known, **settings})

    def progress(self, now_ms: int = NOW_MS, /, **settings: str) -> SourceProgress:
        return self.source(**settings).progress(SourceQuestion(tuple(self.commits), now_ms, uncounted, lambda: 0))

    def refused(self, **settings: str) -> str:
        said = self.progress(**settings)
        assert said.progress_ms is None
        assert said.cure
        return said.evidence


@pytest.fixture
def topic(kafka: KafkaServer) -> Topic:
    return Topic(kafka, f"orders-{uuid4().hex[:8]}")


def ago(hours: float) -> int:
    return NOW_MS - round(hours * HOUR_MS)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


LATENCY_MS = 300_000


def test_a_dead_ingester_holds_the_progress_at_its_first_unread_message(topic: Topic) -> None:
    topic.make(2)
    topic.send(5, 4, 3)
    topic.send(5, 2, 1, partition=1)
    topic.read("0:3,1:1")
    said = topic.progress()
    assert said.progress_ms == ago(2) - LATENCY_MS
    assert f"partition 1 of {topic.name} is behind by 2 messages, since" in said.evidence
    assert said.going_on(NOW_MS, HOUR_MS).progress_ms == said.progress_ms, (
        "messages that wait to be read aren't silence"
    )
    topic.read("0:1,1:1")
    said = topic.progress()
    assert said.progress_ms == ago(4) - LATENCY_MS
    assert "partition 0" in said.evidence
    assert "and 1 more partition" in said.evidence
    topic.read("0:3,1:3")
    assert topic.progress().progress_ms == ago(1) - LATENCY_MS


def test_a_dead_producer_is_silent_and_idle_says_for_how_long_that_counts(topic: Topic) -> None:
    topic.make(2)
    topic.send(3, 2)
    topic.read("0:2,1:0")
    said = topic.progress()
    assert (said.progress_ms, said.idle_since_ms) == (ago(2) - LATENCY_MS, ago(2))
    assert said.going_on(NOW_MS, 3 * HOUR_MS).progress_ms == NOW_MS - LATENCY_MS
    assert said.going_on(NOW_MS, HOUR_MS).progress_ms == ago(2) - LATENCY_MS


def test_a_partition_without_messages_holds_nothing(topic: Topic) -> None:
    topic.make(3)
    topic.send(1, partition=2)
    topic.read("0:0,1:0,2:1")
    assert topic.progress().progress_ms == ago(1) - LATENCY_MS


def test_a_topic_that_never_had_a_message_shows_nothing(topic: Topic) -> None:
    topic.make()
    topic.read("0:0")
    assert "has no message" in topic.refused()


def test_a_message_that_was_compacted_away_is_not_waited_for(topic: Topic) -> None:
    topic.make(
        cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01", max_compaction_lag_ms="200"
    )
    topic.send(5, 4, 3, key="a")
    topic.read("0:1")

    def is_gone() -> bool:
        topic.send(1, key="b")  # a segment that is written to is never compacted
        return topic.progress().progress_ms != ago(4) - LATENCY_MS

    assert topic.progress().progress_ms == ago(4) - LATENCY_MS
    until(is_gone)
    assert topic.progress().progress_ms == ago(3) - LATENCY_MS


def test_a_topic_with_the_times_of_the_broker_ignores_those_of_producers(topic: Topic) -> None:
    topic.make(message_timestamp_type="LogAppendTime")
    topic.send(9, 8)
    topic.read("0:1", completed_ms=NOW_MS + HOUR_MS)  # the tests before this one take a while
    said = topic.progress(NOW_MS + HOUR_MS)
    assert said.progress_ms is not None
    assert abs(said.progress_ms + LATENCY_MS - time.time_ns() // 1_000_000) < 60_000


def test_messages_that_were_lost_before_they_were_read_hold_the_gate(topic: Topic) -> None:
    topic.make()
    topic.send(5, 4, 3, 2)
    topic.read("0:1")
    (gone,) = topic.admin.delete_records([kafka_library.TopicPartition(topic.name, 0, 3)]).values()
    gone.result()
    assert f"offsets 1 to 2 of partition 0 of {topic.name} are gone from the broker" in topic.refused()
    topic.read("0:3")
    assert topic.progress().progress_ms == ago(2) - LATENCY_MS


def test_retention_that_took_all_messages_unread_holds_the_gate(topic: Topic) -> None:
    topic.make(retention_ms="1000", segment_ms="100")
    topic.send(5, 4)
    topic.read("0:1")
    until(lambda: "offsets 1 to 1" in topic.progress().evidence)
    assert topic.progress().progress_ms is None


def test_a_partition_that_came_later_is_read_from_its_start(topic: Topic) -> None:
    topic.make()
    topic.send(4)
    topic.read("0:1")
    (grown,) = topic.admin.create_partitions([ADMIN.NewPartitions(topic.name, 2)]).values()
    grown.result()
    until(lambda: topic.has_leaders(2))
    assert topic.progress().progress_ms == ago(4) - LATENCY_MS
    topic.send(3, partition=1)
    said = topic.progress()
    assert said.progress_ms == ago(3) - LATENCY_MS
    assert "partition 1" in said.evidence


def test_a_topic_that_was_deleted_is_not_made_by_the_question(topic: Topic) -> None:
    topic.make()
    topic.send(4)
    topic.read("0:1")
    topic.delete()
    for _ in range(2):
        assert topic.refused() == f"the broker has no topic {topic.name}"
    assert topic.name not in topic.admin.list_topics(timeout=5).topics


def test_a_topic_that_was_made_again_holds_the_gate_also_if_it_is_longer(topic: Topic) -> None:
    topic.make(2)
    topic.send(4, 3)
    topic.read("0:0,1:0", completed_ms=ago(2))
    topic.delete()
    topic.make()
    assert f"partition 1 of {topic.name} was read up to offset 0, and is gone" in topic.refused()
    topic.read("0:2", completed_ms=ago(2))
    topic.send(1)
    assert "ends at offset 1, and was read up to 2: it was made again" in topic.refused()
    topic.send(0.5, 0.4)
    assert "is later than the commit at" in topic.refused()


def test_a_message_of_the_future_that_waits_opens_no_gate(topic: Topic) -> None:
    topic.make()
    topic.send(4, -24, 3)
    topic.read("0:1")
    said = topic.progress()
    assert said.progress_ms is None
    assert (
        f"the message at offset 1 of partition 0 of {topic.name} was not read, and has the timestamp" in said.evidence
    )
    assert format_timestamp(ago(-24)) in said.evidence
    assert "a commit that reads on" in said.cure


def test_a_message_of_the_future_closes_the_gate_only_while_the_topic_is_in_doubt(topic: Topic) -> None:
    """The id of the topic shows that it is the one that was read. Then the last message counts, if its time is right."""
    topic.make()
    topic.send(4, -24)
    topic.read("0:2")
    said = topic.progress()
    assert (
        f"a message at offset 1 with the timestamp {format_timestamp(ago(-24))}, which is later than" in said.evidence
    )
    found = re.search(r"topic_id=(\S+),", said.cure)
    assert found is not None
    own = found[1]
    assert f"the message at offset 1 of partition 0 of {topic.name} has the timestamp" in topic.refused(topic_id=own)
    topic.send(3)
    topic.read("0:3")
    said = topic.progress(topic_id=own)
    assert (said.progress_ms, said.idle_since_ms) == (ago(3) - LATENCY_MS, ago(3)), "a dead producer is seen"
    topic.delete()
    topic.make()
    topic.send(4, -24, 3)
    assert f"not {own}: it was made again" in topic.refused(topic_id=own)


def test_of_several_writers_the_one_that_is_behind_counts(topic: Topic) -> None:
    topic.make(2)
    topic.send(5, 4, 3)
    topic.send(5, partition=1)
    key = "deltastreamer.checkpoint.key"

    def commit(**offsets: str) -> None:
        texts = {writer: f"{topic.name},{text}" for writer, text in offsets.items()}
        topic.commits.insert(0, StatedCommit("1", NOW_MS, {key: json.dumps(texts | {"other": "clicks,0:7"})}))

    topic.read("0:0,1:0")
    commit(eu="0:2,1:1")
    commit(us="0:3,1:1")
    assert topic.progress().progress_ms == ago(3) - LATENCY_MS, "also what only an older commit has"
    assert topic.progress(writer="us").idle_since_ms == ago(3)
    assert "no commit of the writer asia says" in topic.refused(writer="asia")
    commit(eu="0:3")
    assert "partition 1" in topic.progress().evidence, "both read the topic, and one does not name this partition"
    commit(eu="0:3,1:1", us="0:3,1:1")
    assert topic.progress().idle_since_ms == ago(3)


def test_what_a_write_states_counts_until_a_later_commit_names_the_topic(topic: Topic) -> None:
    topic.make()
    topic.send(5, 4)
    topic.read("0:1")
    key = "eventide.source.orders.watermark"
    topic.read("0:2", key)
    assert "has all of" in topic.progress().evidence
    topic.commits.insert(0, StatedCommit("9", NOW_MS, {key: "2026-03-03T00:00Z"}))
    assert "states '2026-03-03T00:00Z', which are not offsets of" in topic.refused()
    topic.read("0:1")
    assert topic.progress().progress_ms == ago(4) - LATENCY_MS
    topic.commits.insert(0, StatedCommit("9", NOW_MS, {"deltastreamer.checkpoint.key": "clicks,0:9"}))
    assert topic.progress().progress_ms == ago(4) - LATENCY_MS


def test_writers_that_share_no_partition_have_the_topic_together(topic: Topic) -> None:
    topic.make(2)
    topic.send(5, 4)
    topic.send(3, partition=1)
    texts = {"a": f"{topic.name},0:2", "b": f"{topic.name},1:1"}
    topic.commits = [StatedCommit("1", NOW_MS, {"streamer.checkpoint.key.v2": json.dumps(texts)})]
    assert topic.progress().idle_since_ms == ago(3)


def test_markers_and_aborted_messages_are_not_waited_for_and_open_ones_are(topic: Topic) -> None:
    topic.make()

    def now_ms() -> int:  # a marker has the time of the broker
        return time.time_ns() // 1_000_000

    producer = kafka_library.Producer({"bootstrap.servers": topic.server.address, "transactional.id": topic.name})
    producer.init_transactions(20)

    def begin(hours: float) -> None:
        producer.begin_transaction()
        producer.produce(topic.name, b"x", timestamp=ago(hours))
        producer.flush(10)

    begin(5)
    topic.read("0:0")
    assert topic.progress(now_ms()).progress_ms == ago(5) - LATENCY_MS, "it is open"
    producer.commit_transaction()
    topic.read("0:1")
    assert "has all of" in topic.progress(now_ms()).evidence, "at offset 1 is a marker"
    begin(4)
    said = topic.progress(now_ms())
    assert (said.progress_ms, said.idle_since_ms) == (ago(4) - LATENCY_MS, None)
    producer.abort_transaction()
    until(lambda: "has all of" in topic.progress(now_ms()).evidence)


def test_a_wrong_address_takes_a_bounded_time_and_says_why(topic: Topic) -> None:
    (port,) = free_ports(1)
    topic.read("0:1")
    source = replace(topic.source(bootstrap_servers=f"127.0.0.1:{port}"), timeout_seconds=1)
    began = time.monotonic()
    said = source.progress(SourceQuestion(tuple(topic.commits), NOW_MS, uncounted, lambda: 0))
    assert time.monotonic() - began < 5
    assert said.progress_ms is None
    assert "Connection refused" in said.evidence
    assert f"127.0.0.1:{port}" in said.evidence


def with_tls(server: KafkaServer) -> Mapping[str, str]:
    return {
        "bootstrap_servers": server.tls_address,
        "security_protocol": "SSL",
        "ssl_ca_location": str(server.authority),
    }


def with_sasl(server: KafkaServer) -> Mapping[str, str]:
    login = {"sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password": PASSWORD}
    return {
        **with_tls(server),
        **login,
        "bootstrap_servers": server.sasl_address,
        "security_protocol": "SASL_SSL",
    }


def test_it_asks_over_tls_and_with_sasl(topic: Topic) -> None:
    topic.make()
    topic.send(3, 2)
    topic.read("0:1")
    for settings in (with_tls(topic.server), with_sasl(topic.server)):
        assert topic.progress(**settings).progress_ms == ago(2) - LATENCY_MS


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sasl_password": "wrong-of-kafka"}, "uthentication failed"),
        ({"ssl_ca_location": ""}, "certificate"),
    ],
)
def test_a_broker_that_does_not_trust_or_is_not_trusted_has_no_progress(
    topic: Topic, change: Mapping[str, str], why: str, capfd: pytest.CaptureFixture[str]
) -> None:
    topic.read("0:1")
    settings = {**with_sasl(topic.server), **change}
    settings = {key: value for key, value in settings.items() if value}
    source = MaskedSource(replace(topic.source(**settings), timeout_seconds=2), secrets_in(settings.items()))
    said = source.progress(SourceQuestion(tuple(topic.commits), NOW_MS, uncounted, lambda: 0))
    assert said.progress_ms is None
    assert why in said.evidence
    shown = repr(source) + repr(said) + "".join(capfd.readouterr())
    assert settings["sasl_password"] not in shown


def test_what_cannot_be_right_is_refused(topic: Topic) -> None:
    topic.read("0:1")
    for missing in ("topic", "latency", "bootstrap_servers"):
        with pytest.raises(ConfigError, match=f"source orders: {missing} is missing"):
            topic.source(**{missing: ""})
    with pytest.raises(ConfigError, match="'foo_bar' is not a setting of this kind"):
        topic.source(foo_bar="1")
    with pytest.raises(ConfigError, match="is not a duration"):
        topic.source(latency="soon")
    without = {key: value for key, value in with_sasl(topic.server).items() if key != "sasl_password"}
    with pytest.raises(ConfigError, match=r"sasl\.username and sasl\.password must be set"):
        topic.progress(**without)
    with pytest.raises(ConfigError, match=r"ssl\.ca\.location failed"):
        topic.progress(**{**with_tls(topic.server), "ssl_ca_location": "/nowhere.pem"})

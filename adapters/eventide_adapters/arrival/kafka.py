"""Kafka's topics: how far a table has come with one, by the offsets in its commits.

1. A commit says which offset is next of each partition, as Hudi's Streamer does: `topic,0:123,1:456`, or a JSON object of
   such texts by the writer's id. The newest one that names the topic counts. Of several writers, the newest of each does,
   and the one that is behind: each may keep other rows of the same messages.
2. A partition is behind if a message is at its next offset or after it. What has reached the broker since that message
   isn't in, and the message reached it no earlier than its timestamp.
3. If none is behind, all that had reached the broker when it was asked is in. Silence isn't progress: the last message
   counts then. Silence is of the whole topic: some partitions seldom get a message.
4. An event is older than its arrival, by at most the latency of the producers, which is the user's word.

There is no progress where offsets are gone before they were read, and where the topic isn't the one that was read: it has
another id than the declared one, ends before the next offset, or, without a declared id, has messages below the next offset
that are later than the commit. A timestamp of the future doesn't count, neither of a waiting message nor of the last one.

A transaction's markers have offsets, too, and aborted messages: both are skipped. A message in an open transaction counts.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Final

from eventide_adapters.extras import install_command
from eventide_core.config import Options, duration_of
from eventide_core.errors import ConfigError, counted, format_timestamp
from eventide_core.ports import SourceQuestion, StatedCommit
from eventide_core.table.settings.declared_sources import IDLE
from eventide_core.table.timeline.source_progress import SourceProgress
from eventide_core.table.timeline.source_statements import stated

KIND: Final = "kafka"
_STREAMER: Final = ("streamer.checkpoint.key.v2", "deltastreamer.checkpoint.key")
_OFFSETS: Final = re.compile(r"([^,:\s]+)((?:,\d{1,9}:\d{1,18})+)")
# fmt: off
_CLIENT: Final = frozenset({
    "bootstrap.servers", "client.id", "client.dns.lookup", "security.protocol", "sasl.mechanism", "sasl.mechanisms",
    "sasl.username", "sasl.password", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location",
    "ssl.certificate.pem", "ssl.key.location", "ssl.key.pem", "ssl.key.password", "ssl.keystore.location",
    "ssl.keystore.password", "ssl.crl.location", "ssl.cipher.suites", "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification", "socket.keepalive.enable", "broker.address.family",
})
# fmt: on
"""What a source may set of librdkafka: the others may load libraries or run commands, which a table must not."""
_OWN: Final = ("topic", "topic_id", "latency", "writer", "watermark", IDLE)
# A broker that works answers in well under a second, also over TLS; a gate that is asked each minute can wait this long.
_TIMEOUT_SECONDS: Final = 10.0
# By how much the clocks of the broker, of producers and of the table's writers may differ.
_SKEW_MS: Final = 60_000
_READS: Final = {"group.id": "eventide", "auto.offset.reset": "error", "enable.auto.commit": False}
# The broker answers at once that a partition has no more messages.
_PEEKS: Final = {"enable.partition.eof": True, "fetch.wait.max.ms": 10}


# A broker that never answered is not asked again for so long: a round of the service asks several times.
_REST_SECONDS: Final = 30.0
_resting: Final = dict[tuple[tuple[str, Any], ...], tuple[float, str]]()
"""Until when no broker is asked with these settings, and why it could not be."""
_CHECK: Final = "check the address, the credentials, and that the broker is up"
_AGAIN: Final = "read the topic from its start, and state the offsets of that"


class _NoProgressError(Exception):
    """Why nothing shows how far the source has come, and what would change that."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The next offset of each partition, by a commit."""

    offsets: Mapping[int, int]
    commit: StatedCommit


@dataclass(frozen=True, slots=True)
class _Partition:
    """A partition as the broker has it. `heard_ms` is its latest timestamp, -1 without a message, and `heard` its offset.

    `late` is the first offset with a timestamp after the commit that was read, which is `late_ms`; -1 if there is none.
    """

    heard_ms: int
    heard: int
    late_ms: int
    late: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class KafkaSource:
    """ports.ArrivalSource for one `topic`, whose messages arrive within `latency_ms` of their events.

    `client` are librdkafka's settings, which may contain secrets. Only the commits of `writer` count, if it is given, and
    only a topic with `topic_id`. A question takes up to `timeout_seconds`.
    """

    name: str
    topic: str
    latency_ms: int
    client: Mapping[str, Any] = field(repr=False)
    writer: str | None = None
    topic_id: str | None = None
    timeout_seconds: float = _TIMEOUT_SECONDS

    def progress(self, question: SourceQuestion) -> SourceProgress:
        began, client = time.monotonic(), tuple(sorted(self.client.items()))
        until, why_not = _resting.get(client, (0.0, ""))
        if began < until:
            return SourceProgress(self.name, KIND, None, why_not, cure=_CHECK)
        broker = _Broker(self, [], question.now_ms)
        try:
            return self._progress(self._reads(question.commits), broker, question.now_ms)
        except _NoProgressError as why:
            evidence, cure = why.args
        except _kafka().KafkaException as failure:
            error = failure.args[0]
            if error.code() in (_kafka().KafkaError._INVALID_ARG, _kafka().KafkaError._CONFLICT):
                raise _wrong_setting(self.name, error) from None
            if error.code() == _kafka().KafkaError.UNKNOWN_TOPIC_OR_PART:
                evidence, cure = f"the broker has no topic {self.topic}", "make the topic, or declare another one"
            else:
                evidence = f"{self.client['bootstrap.servers']} cannot be asked: {(broker.errors or [error.str()])[0]}"
                cure = _CHECK
                has_answered = bool(broker.topic_id)
                if not has_answered and time.monotonic() - began >= self.timeout_seconds / 2:
                    _resting[client] = time.monotonic() + _REST_SECONDS, evidence
        return SourceProgress(self.name, KIND, None, evidence, cure=cure)

    def _reads(self, commits: Sequence[StatedCommit]) -> tuple[_Read, ...]:
        """What each writer read last, the newest first."""
        found: dict[str, _Read] = {}
        (key,) = stated({self.name: ""})
        by = f" of the writer {self.writer}" if self.writer else ""
        why = f"no commit{by} says which offsets of {self.topic} were read"
        for commit in commits:
            statement = None if self.writer else commit.extra_metadata.get(key)
            texts = _checkpoints(commit.extra_metadata) if statement is None else {"": statement}
            said = {writer: read for writer, text in texts.items() if (read := self._parsed(writer, text, commit))}
            if statement is not None and not said:
                why = f"the commit at {commit.instant} states {statement[:80]!r}, which are not offsets of {self.topic}"
            is_of_all = statement is not None or "" in said
            if not (is_of_all and found):  # otherwise it is of the time before the writers had ids
                found = said | found
            if is_of_all:
                break
        if not found:
            raise _NoProgressError(
                why, f'state them with a write: sources={{"{self.name}": "{self.topic},0:OFFSET,..."}}'
            )
        return tuple(sorted(found.values(), key=lambda read: -read.commit.completed_ms))

    def _parsed(self, writer: str, text: str, commit: StatedCommit) -> _Read | None:
        found = _OFFSETS.fullmatch(text.strip())
        if found is None or found[1] != self.topic or self.writer not in (None, writer):
            return None
        pairs = (pair.split(":") for pair in found[2][1:].split(","))
        return _Read({int(partition): int(offset) for partition, offset in pairs}, commit)

    def _progress(self, reads: tuple[_Read, ...], broker: "_Broker", now_ms: int) -> SourceProgress:
        commit = reads[0].commit
        partitions = broker.partitions(commit.completed_ms + _SKEW_MS)
        if self.topic_id not in (None, broker.topic_id):
            raise _NoProgressError(
                f"{self.topic} has the id {broker.topic_id}, not {self.topic_id}: it was made again",
                f"{_AGAIN}, and declare it with topic_id={broker.topic_id}",
            )
        following = _next_offsets(reads, partitions)
        for number, offset in following.items():
            self._check(number, offset, partitions.get(number), commit, broker.topic_id)
        unread = {number: offset for number, offset in following.items() if offset < partitions[number].end}
        behind = broker.first_messages(unread, {number: partitions[number].end for number in unread})
        if behind:
            since_ms, number = min((min(since_ms, now_ms), number) for number, since_ms in behind.items())
            more = f", and {counted(len(behind) - 1, 'more partition')}" if len(behind) > 1 else ""
            count = counted(partitions[number].end - following[number], "message")
            evidence = (
                f"by the commit at {commit.instant}, partition {number} of {self.topic} is behind by {count}{more}, "
                f"since {format_timestamp(since_ms)}"
            )
            cure = f"a commit that reads on from {self.topic},{number}:{following[number]}"
            return SourceProgress(self.name, KIND, since_ms - self.latency_ms, evidence, cure=cure)
        heard_ms = min(now_ms, broker.heard_ms(partitions))
        if heard_ms < 0:
            raise _NoProgressError(
                f"{self.topic} has no message, so nothing shows since when it is silent", "a message"
            )
        evidence = f"the commit at {commit.instant} has all of {self.topic}, whose last message is of"
        return SourceProgress(
            self.name,
            KIND,
            heard_ms - self.latency_ms,
            f"{evidence} {format_timestamp(heard_ms)}",
            heard_ms,
            cure=f"a later message of {self.topic}, or {IDLE}= if it may be silent for longer",
        )

    def _check(self, number: int, offset: int, found: _Partition | None, commit: StatedCommit, topic_id: str) -> None:
        """Raises _NoProgressError if the broker's partition isn't the one that was read, or not all of it can be."""
        where = f"partition {number} of {self.topic}"
        if found is None:
            raise _NoProgressError(f"{where} was read up to offset {offset}, and is gone", _AGAIN)
        if offset > found.end:
            raise _NoProgressError(
                f"{where} ends at offset {found.end}, and was read up to {offset}: it was made again, or lost messages",
                _AGAIN,
            )
        if offset < found.start:
            gone = f"offsets {offset} to {found.start - 1} of {where} are gone from the broker, and were not read"
            raise _NoProgressError(gone, f"write what they had from elsewhere, and state {number}:{found.start}")
        if self.topic_id is None and 0 <= found.late < offset:
            raise _NoProgressError(
                f"{where} has a message at offset {found.late} with the timestamp {format_timestamp(found.late_ms)}, which "
                f"is later than the commit at {commit.instant}, which had read up to {offset}: the topic was made again, or "
                "the timestamp is of the future",
                f"{_AGAIN}; or, if it is the topic that was read, declare it with topic_id={topic_id}, which shows that, "
                "and set message.timestamp.type=LogAppendTime",
            )


@dataclass(slots=True)
class _Broker:
    """Asks for the partitions of a topic, until a deadline. `errors` gets why no connection came about.

    Timestamps after `now_ms` are of the future. `topic_id` is known once the partitions are.
    """

    source: KafkaSource
    errors: list[str]
    now_ms: int
    topic_id: str = ""
    _deadline: float = field(init=False)

    def __post_init__(self) -> None:
        self._deadline = time.monotonic() + self.source.timeout_seconds

    def partitions(self, late_ms: int) -> dict[int, _Partition]:
        """The partitions by number, with the first offset from `late_ms` on. Raises KafkaException."""
        kafka, topic = _kafka(), self.source.topic
        admin, spec = kafka.admin.AdminClient(self._settings({})), kafka.admin.OffsetSpec
        # Other requests for what a topic is may make it.
        described = admin.describe_topics(kafka.TopicCollection([topic]), request_timeout=self._seconds())
        try:
            found = described[topic].result()
        finally:
            admin.poll(0)  # brings the errors
        self.topic_id = str(found.topic_id)
        asked = [kafka.TopicPartition(topic, one.id) for one in found.partitions]
        # What is heard of before the ends are asked for is before them.
        specs = (spec.max_timestamp(), spec.for_timestamp(late_ms), spec.earliest(), spec.latest())
        last, late, start, end = (self._offsets(admin, asked, one) for one in specs)
        return {
            number: _Partition(
                last[number].timestamp,
                last[number].offset,
                late[number].timestamp,
                late[number].offset,
                start[number].offset,
                end[number].offset,
            )
            for number in last
        }

    def _offsets(self, admin: Any, asked: Sequence[Any], spec: Any) -> dict[int, Any]:
        if not asked:
            return {}
        # Messages of open transactions are on their way, too.
        isolation = _kafka().IsolationLevel.READ_UNCOMMITTED
        requests = dict.fromkeys(asked, spec)
        answer = admin.list_offsets(requests, isolation_level=isolation, request_timeout=self._seconds())
        return {partition.partition: offset.result() for partition, offset in answer.items()}

    def first_messages(self, unread: Mapping[int, int], ends: Mapping[int, int]) -> dict[int, int]:
        """The time of the first message from an offset on, of those partitions that have one before their end.

        Raises KafkaException.
        """
        found, waiting = self._first(unread, ends, "read_committed")
        more, lost = self._first(waiting, ends, "read_uncommitted")
        for number in lost:
            raise _NoProgressError(
                f"partition {number} of {self.source.topic} lost messages as it was read", "a message"
            )
        return {number: self._time_of(message) for number, message in (found | more).items()}

    def heard_ms(self, partitions: Mapping[int, _Partition]) -> int:
        """The latest timestamp of the topic that isn't of the future, -1 without a message. Raises KafkaException.

        Of a partition that has one of the future, the last message counts.
        """
        future = {number: one for number, one in partitions.items() if self._is_future(one.heard_ms)}
        last, _ = self._first(
            {number: one.end - 1 for number, one in future.items()},
            {number: one.end for number, one in future.items()},
            "read_uncommitted",
        )
        times = [one.heard_ms for one in partitions.values()] + [message.timestamp()[1] for message in last.values()]
        heard_ms = max((time_ms for time_ms in times if not self._is_future(time_ms)), default=-1)
        if heard_ms < 0 and future:
            number, one = next(iter(future.items()))
            raise _NoProgressError(
                f"the message at offset {one.heard} of partition {number} of {self.source.topic} has the timestamp "
                f"{format_timestamp(one.heard_ms)}, which is of the future, and no other one shows when it was written",
                "a later message whose timestamp is right; message.timestamp.type=LogAppendTime makes it so",
            )
        return heard_ms

    def _is_future(self, time_ms: int) -> bool:
        return time_ms > self.now_ms + _SKEW_MS

    def _first(
        self, unread: Mapping[int, int], ends: Mapping[int, int], isolation: str
    ) -> tuple[dict[int, Any], dict[int, int]]:
        """The messages, and the offsets of open transactions, at which the partitions end for who doesn't read these."""
        kafka, found, waiting, left = _kafka(), dict[int, Any](), dict[int, int](), set(unread)
        if not unread:
            return found, waiting
        consumer = kafka.Consumer(self._settings(_READS | _PEEKS | {"isolation.level": isolation}))
        try:
            topic = self.source.topic
            consumer.assign([kafka.TopicPartition(topic, number, offset) for number, offset in unread.items()])
            while left:
                message = consumer.poll(self._seconds())
                if message is None:
                    raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
                number, error = message.partition(), message.error()
                if error is not None and error.code() != kafka.KafkaError._PARTITION_EOF:
                    raise kafka.KafkaException(error)
                # What came since the ends were asked for may be later than what came to other partitions.
                if number in left and message.offset() < ends[number]:
                    if error is None:
                        found[number] = message
                    else:
                        waiting[number] = message.offset()
                left.discard(number)
                consumer.pause([kafka.TopicPartition(topic, number)])
        finally:
            consumer.close()
        return found, waiting

    def _time_of(self, message: Any) -> int:
        kind, time_ms = message.timestamp()
        where = f"the message at offset {message.offset()} of partition {message.partition()} of {self.source.topic}"
        if kind == _kafka().TIMESTAMP_NOT_AVAILABLE or time_ms < 0:
            raise _NoProgressError(f"{where} has no timestamp", "a commit that reads on from there")
        if self._is_future(time_ms):  # it came earlier, and so did what follows it
            raise _NoProgressError(
                f"{where} was not read, and has the timestamp {format_timestamp(time_ms)}, which is of the future, so "
                "nothing shows since when it waits",
                "a commit that reads on from there; message.timestamp.type=LogAppendTime makes timestamps right",
            )
        return int(time_ms)

    def _settings(self, more: Mapping[str, Any]) -> dict[str, Any]:
        def keep(error: Any) -> None:
            self.errors.append(error.str())

        return {"log_level": 0, "error_cb": keep, **self.source.client, **more}

    def _seconds(self) -> float:
        return max(0.1, self._deadline - time.monotonic())


def _checkpoints(extra_metadata: Mapping[str, str]) -> dict[str, str]:
    """What the Streamer says in a commit, by the id of the writer; it is empty without ids."""
    text = next(filter(None, map(extra_metadata.get, _STREAMER)), "")
    if not text.lstrip().startswith("{"):
        return {"": text}
    return {writer: str(checkpoint) for writer, checkpoint in json.loads(text).items()}


def _next_offsets(reads: Sequence[_Read], partitions: Mapping[int, _Partition]) -> dict[int, int]:
    """The next offset of each partition: the least one. A partition that came later has not been read.

    If writers have partitions in common, each has to read all of them.
    """
    readers = Counter(number for read in reads for number in read.offsets)
    is_shared = any(count > 1 for count in readers.values())
    return {
        number: min((read.offsets.get(number, 0) for read in reads if is_shared or number in read.offsets), default=0)
        for number in sorted({*readers, *partitions})
    }


def open_kafka(name: str, given: Mapping[str, str], _options: Options | None = None) -> KafkaSource:
    """The source. Raises ConfigError for settings that can't be right, and if the package is missing."""
    client = {key.replace("_", "."): value for key, value in given.items() if key not in _OWN}
    unknown = next((key for key in client if key not in _CLIENT), None)
    if unknown is not None:
        raise ConfigError(
            f"source {name}: {unknown.replace('.', '_')[:80]!r} is not a setting of this kind; it takes topic, topic_id, "
            f"latency, writer and, with `_` for each dot, {', '.join(sorted(_CLIENT))}"
        )
    for key in ("bootstrap_servers", "topic", "latency"):
        if not given.get(key):
            raise ConfigError(f"source {name}: {key} is missing: a source of the kind {KIND} needs it")
    kafka = _kafka()
    # Credentials may come with the options of a later command.
    checked = {
        key: value for key, value in client.items() if not key.startswith(("bootstrap", "security", "sasl.mech"))
    }
    try:
        kafka.Consumer({**checked, **_READS, "log_level": 0}).close()
    except kafka.KafkaException as failure:
        raise _wrong_setting(name, failure.args[0]) from None
    latency_ms = 1000 * duration_of(given["latency"], f"source {name}: latency=")
    return KafkaSource(name, given["topic"], latency_ms, client, given.get("writer"), given.get("topic_id"))


def _wrong_setting(name: str, error: Any) -> ConfigError:
    return ConfigError(
        f"source {name}: {error.str()}; a setting of librdkafka has `_` for each dot: security_protocol=SSL"
    )


def _kafka() -> Any:
    if find_spec("confluent_kafka") is None:
        raise ConfigError(f"the library for Kafka is not installed: run `{install_command(KIND)}`")
    import confluent_kafka.admin

    return confluent_kafka

"""Sources beside stock engines.

They read past the notes of a derived table, which are extra metadata, and leave them alone. A stock Spark writer states how
far its own source has come, by two options of Hudi.
"""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from support.judge import HudiJudge, hudi_rs
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    DEFAULT_PAYLOAD,
    EVENT_TIME_ORDERING,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    table_name,
    table_version,
)
from support.servers.kafka_server import KafkaServer
from support.values.columns import schema_of

START_MS = 1_700_000_000_000
SCHEMA = schema_of(id=pa.string(), part=pa.string(), event_ts=pa.int64())
OPTIONS: dict[str, str] = {BUCKETS: "2", CLOCK_SKEW_MS: "1"}
PLAIN = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | table_name("derived")


def rows(**times: int) -> pa.Table:
    columns: list[Any] = [list(times), ["a"] * len(times), [START_MS + t for t in times.values()]]
    return pa.table(columns, schema=SCHEMA)


def seen(found: pa.Table) -> set[tuple[str, int]]:
    return {(row["id"], row["event_ts"] - START_MS) for row in found.to_pylist()}


@pytest.mark.proof
@pytest.mark.parametrize("version", [6, 9])
def test_stock_reads_and_writes_a_derived_table(version: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    judge: HudiJudge = request.getfixturevalue({6: "judge_015", 9: "judge_111"}[version])
    raw, derived = (
        Table.create(
            str(tmp_path / name),
            schema=SCHEMA,
            record_key="id",
            partition="part",
            event_time="event_ts",
            version=version,
            options=OPTIONS,
        )
        for name in ("raw", "derived")
    )
    path = tmp_path / "derived"
    raw.upsert(rows(k0=10, k1=2000))
    derived.upsert(rows(k0=10), sources={raw: raw.compact(before=START_MS + 1000)})
    derived.compact(before=START_MS + 9000)
    derived.upsert(rows(k1=20))
    assert seen(judge.read(path)) == seen(hudi_rs.read(path)) == {("k0", 10), ("k1", 20)}
    stock = PLAIN | (DEFAULT_PAYLOAD if version == 6 else EVENT_TIME_ORDERING | table_version(9))
    judge.write(path, rows(k2=8000), options=stock)
    assert seen(judge.read(path)) == {("k0", 10), ("k1", 20), ("k2", 8000)}
    assert [one.progress_ms for one in derived.freshness().sources] == [START_MS + 1000]
    derived.compact(before=START_MS + 9000)
    assert derived.freshness().watermark_ms == START_MS + 1000


def stating(text: str) -> dict[str, str]:
    return {
        "hoodie.datasource.write.commitmeta.key.prefix": "eventide.source.",
        "eventide.source.orders.watermark": text,
    }


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, 9])
def test_the_gate_follows_what_a_stock_writer_states(
    version: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue({6: "judge_015", 9: "judge_111"}[version])
    path = tmp_path / "stated"
    stock = PLAIN | table_name("stated") | (DEFAULT_PAYLOAD if version == 6 else EVENT_TIME_ORDERING | table_version(9))
    judge.write(path, rows(k0=10, k1=2000), options=stock | stating(str(START_MS + 1000)))
    judge.write(path, rows(k0=20), options=stock)
    table = Table.open(str(path), {BUCKETS: "2", CLOCK_SKEW_MS: "1"})
    table.compact(before=START_MS + 9000)
    fresh = table.freshness()
    assert (fresh.watermark_ms, fresh.files_watermark_ms, fresh.held_back_by) == (
        START_MS + 1000,
        START_MS + 9000,
        "orders",
    )
    judge.write(path, rows(k2=3000), options=stock | stating("2023-11-14T22:13:25Z"))
    assert table.freshness().watermark_ms == START_MS + 3000, "the row of a log file"
    table.compact(before=START_MS + 9000)
    assert table.freshness().watermark_ms == START_MS + 5000
    ids = {"k0", "k1", "k2"}
    assert (
        {row["id"] for row in judge.read(path).to_pylist()}
        == {row["id"] for row in hudi_rs.read(path).to_pylist()}
        == ids
    )


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, 9])
def test_the_gate_follows_the_offsets_that_a_stock_writer_commits(
    version: int, tmp_path: Path, kafka: KafkaServer, request: pytest.FixtureRequest
) -> None:
    """In the key of the Streamer, whose commits are the same writer's."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    judge: HudiJudge = request.getfixturevalue({6: "judge_015", 9: "judge_111"}[version])
    path, topic, now_ms = tmp_path / "read", f"stock-{version}", time.time_ns() // 1_000_000
    producer = confluent_kafka.Producer({"bootstrap.servers": kafka.address})
    for ms in (now_ms - 9000, now_ms - 6000):
        producer.produce(topic, b"x", partition=0, timestamp=ms)
    assert producer.flush(10) == 0

    def write(offset: int, **times: int) -> None:
        checkpoint = {
            "hoodie.datasource.write.commitmeta.key.prefix": "deltastreamer.checkpoint.",
            "deltastreamer.checkpoint.key": f"{topic},0:{offset}",
        }
        stock = DEFAULT_PAYLOAD if version == 6 else EVENT_TIME_ORDERING | table_version(9)
        judge.write(path, rows(**times), options=PLAIN | table_name("read") | stock | checkpoint)

    write(1, k0=10)
    table = Table.open(str(path), {BUCKETS: "2", CLOCK_SKEW_MS: "1"})
    table.sources.declare("orders", "kafka", bootstrap_servers=kafka.address, topic=topic, latency="1s")
    table.compact(before=START_MS + 9000)
    assert [one.progress_ms for one in table.sources] == [now_ms - 7000]
    assert table.freshness().watermark_ms == START_MS + 9000
    write(2, k1=20)
    assert [one.idle_since_ms for one in table.sources] == [now_ms - 6000]


@pytest.mark.broad
@pytest.mark.parametrize("version", [6, 9])
def test_stock_reads_and_writes_past_done_markers(version: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """One is in the directory of its partition, which stock reads without the metadata table, and one below `.hoodie`."""
    judge: HudiJudge = request.getfixturevalue({6: "judge_015", 9: "judge_111"}[version])
    path, day = tmp_path / "marked", "2023-11-14"
    stock = PLAIN | table_name("marked") | (DEFAULT_PAYLOAD if version == 6 else EVENT_TIME_ORDERING | table_version(9))
    first = rows(k0=10, k1=2000).set_column(1, SCHEMA.field("part"), pa.array([day, day]))
    judge.write(path, first, options=stock)
    mark = {**OPTIONS, "eventide.done.marker.every": "1d"}
    beside = {**mark, "eventide.done.marker.to": str(path), "eventide.done.marker.name": "%Y-%m-%d/_SUCCESS"}
    Table.open(path, OPTIONS).compact(before=f"{day}T23:59Z")
    Table.open(path, OPTIONS).compact(before="2023-11-15T00:00Z")
    for options in (mark, beside):
        assert [event.kind for event in Table.open(path, options).mark_done()] == ["done"]
    assert (path / day / "_SUCCESS").is_file()
    judge.write(path, first.slice(0, 1).set_column(0, SCHEMA.field("id"), pa.array(["k2"])), options=stock)
    ids = {"k0", "k1", "k2"}
    for found in (judge.read(path), hudi_rs.read(path), Table.open(path).snapshot().to_arrow()):
        assert {row["id"] for row in found.to_pylist()} == ids
    for options in (mark, beside):
        assert [event.kind for event in Table.open(path, options).mark_done()] == ["reopened"]
    assert not (path / day / "_SUCCESS").exists()
    assert Table.open(path, OPTIONS).verify().ok

"""The processes of a pipeline from Kafka, which a test kills.

python -m support.processes.kafka_pipeline produce|ingest ARGUMENTS
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import confluent_kafka
import pyarrow as pa

from eventide import Table
from support.tables.hourly import SCHEMA

SOURCE = "orders"
_PAUSE_SECONDS = 0.05


def produce(address: str, topic: str, log: str) -> None:
    """Sends a message every so often, and notes the time of each that the broker has."""
    producer = confluent_kafka.Producer({"bootstrap.servers": address})
    with Path(log).open("a") as sent:
        while True:
            now_ms = time.time_ns() // 1_000_000
            producer.produce(topic, json.dumps({"id": f"k{now_ms}", "ms": now_ms}), timestamp=now_ms)
            assert producer.flush(10) == 0
            sent.write(f"{now_ms}\n")
            sent.flush()
            time.sleep(_PAUSE_SECONDS)


def ingest(address: str, topic: str, uri: str) -> None:
    """Reads on from what the table's commits say, and states with each write what is next."""
    table = Table.open(uri)
    said = table.state().said_of_sources().by_name.get(SOURCE)
    offset = 0 if said is None else int(said.text.rpartition(":")[2])
    settings: dict[str, Any] = {"bootstrap.servers": address, "group.id": "ingest", "auto.offset.reset": "error"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, offset)])
    while True:
        messages = [one for one in consumer.consume(100, timeout=0.2) if one.error() is None]
        if messages:
            rows = [json.loads(one.value() or b"") for one in messages]
            offset = (messages[-1].offset() or 0) + 1
            table.upsert(pa.Table.from_pylist(rows, schema=SCHEMA), sources={SOURCE: f"{topic},0:{offset}"})


if __name__ == "__main__":
    {"produce": produce, "ingest": ingest}[sys.argv[1]](*sys.argv[2:])

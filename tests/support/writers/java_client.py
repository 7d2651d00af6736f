"""A writer of Hudi's Java client that holds its instant open nearly always: the shape of Flink's sink.

Usage: `python java_client.py CONFIG`, a JSON file with

    classpath, py4j   jars of Hudi and of what it needs; py4j's own
    tables            a list of {path, steps}; each is made where it is not there
    version           the tables' version
    options           write options, on top of those below
    batches           a file with the rows of each batch, a JSON line each
    truth             the file that gets a JSON line for each batch that began, and one when Hudi acknowledged it
    hudi              the version of the client
    first             the number of the first batch
    whole             how many batches a table with `steps` gets before
    has_variant       whether the rows have a VARIANT column, `doc`: their event time in an object
    is_flink_state    whether file ids are UUIDs alone, as of Flink's state index, and not of buckets
    hold, gap         seconds between the last log of a batch and its commit, and between that and the next instant

Slices are log-only, file groups have bucket ids, and the payload is Flink's `EventTimeAvroPayload`, which Hudi 1.0
declares as merge mode CUSTOM. A table without `steps` is written to until standard input ends: the batch that is open
then is the last. One with them gets whole batches, and then one that is taken as far as they say, for a writer that
dies there:

    requested   the instant is requested
    inflight    and inflight
    some logs   and half of the file groups have their logs
    logs        and all of them have
    twice       and is committed, and a writer that comes back and renews its heartbeat commits it again
    plan        no batch: the client schedules a compaction

Prints `ready` when it has taken every such table that far. Runs with PySpark's py4j and imports nothing of the project.
"""

import json
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

BUCKETS = 2
PAYLOAD = "EventTimeAvroPayload"
FIELDS = {"id": "string", "part": "string", "event_ts": "long", "word": "string"}
SCHEMA = json.dumps(
    {"type": "record", "name": "trip", "fields": [{"name": name, "type": kind} for name, kind in FIELDS.items()]}
)
_BYTES = [{"name": name, "type": "bytes"} for name in ("metadata", "value")]
VARIANT = {"type": "record", "name": "variant", "logicalType": "variant", "fields": _BYTES}
"""As `HoodieSchema.createVariant` has it, without its descriptions."""
WITH_VARIANT = json.dumps(
    {
        "type": "record",
        "name": "trip",
        "fields": [
            *({"name": name, "type": kind} for name, kind in FIELDS.items()),
            {"name": "doc", "type": ["null", VARIANT], "default": None},
        ],
    }
)
OPTIONS = {
    "hoodie.auto.commit": "false",
    # The one index of the Java client under which it writes inserts as logs; their places are given anyway.
    "hoodie.index.type": "INMEMORY",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "event_ts",
    "hoodie.datasource.write.hive_style_partitioning": "true",
    "hoodie.payload.ordering.field": "event_ts",
    "hoodie.payload.event.time.field": "event_ts",
    "hoodie.write.track.event.time.watermark": "true",
    "hoodie.logfile.data.block.format": "avro",
}
_FILE_ID = re.compile(r"\.?(0000000\d-[^_]+)_")


class Writer:
    """A client of one table."""

    def __init__(
        self,
        gateway: JavaGateway,
        path: Path,
        version: int,
        given: dict[str, str],
        hudi: tuple[int, ...],
        *,
        is_flink_state: bool = False,
        has_variant: bool = False,
    ) -> None:
        self._is_flink_state = is_flink_state
        self._has_variant = has_variant
        self._schema_text = WITH_VARIANT if has_variant else SCHEMA
        self._jvm: Any = gateway.jvm
        self._hudi: Any = self._jvm.org.apache.hudi
        self._path = path
        self._conf = self._hudi.hadoop.fs.HadoopFSUtils.getStorageConf(self._jvm.org.apache.hadoop.conf.Configuration())
        self._payload: Any = getattr(self._hudi.common.model, PAYLOAD)
        payload_class = f"org.apache.hudi.common.model.{PAYLOAD}"
        if not (path / ".hoodie").exists():
            self._make_table(version, hudi, payload_class)
        options = self._jvm.java.util.Properties()
        chosen = {
            "hoodie.write.table.version": str(version),
            "hoodie.datasource.write.payload.class": payload_class,
            "hoodie.compaction.payload.class": payload_class,
        }
        for key, value in {**OPTIONS, **chosen, **given}.items():
            options.setProperty(key, value)
        config = self._hudi.config.HoodieWriteConfig.newBuilder().withPath(str(path)).withSchema(self._schema_text)
        context = self._hudi.client.common.HoodieJavaEngineContext(self._conf)
        self._client: Any = self._hudi.client.HoodieJavaWriteClient(
            context, config.forTable("beside").withProps(options).build()
        )
        self._schema: Any = self._jvm.org.apache.avro.Schema.Parser().parse(self._schema_text)
        self._file_ids = self._file_groups()
        is_changelog = given.get("hoodie.allow.operation.metadata.field") == "true"
        self._operation = [self._hudi.common.model.HoodieOperation.UPDATE_AFTER] if is_changelog else []

    def write(
        self, rows: list[list[Any]], hold: threading.Event, seconds: float, begins: Callable[[str], object] = str
    ) -> str:
        """One batch: an instant, its logs, a while, its commit. The instant, which `begins` gets first."""
        instant = self._client.startCommit()
        begins(instant)
        self._client.transitionInflight(instant)
        statuses = self._client.upsertPreppedRecords(self._records(rows), instant)
        hold.wait(seconds)
        if not self._client.commit(instant, statuses):
            raise RuntimeError(f"Hudi did not commit {instant}")
        return str(instant)

    def take(self, rows: list[list[Any]], steps: str) -> None:
        """The first steps of a batch, or a plan."""
        if steps == "plan":
            if not self._client.scheduleCompaction(self._hudi.common.util.Option.empty()).isPresent():
                raise RuntimeError("Hudi planned no compaction")
            return
        instant = self._client.startCommit()
        if steps == "requested":
            return
        self._client.transitionInflight(instant)
        if steps == "inflight":
            return
        chosen = rows if steps in ("logs", "twice") else [row for row in rows if row[1] == "a"]
        statuses = self._client.upsertPreppedRecords(self._records(chosen), instant)
        if steps == "twice":
            self._client.commit(instant, statuses)
            self._client.getHeartbeatClient().start(instant)
            self._client.commit(instant, statuses)

    def close(self) -> None:
        self._client.close()

    def _records(self, rows: list[list[Any]]) -> Any:
        records = self._jvm.java.util.ArrayList()
        for row in rows:
            records.add(self._record(*row))
        return records

    def _record(self, key: str, part: str, event_ms: int, word: str) -> Any:
        record = self._jvm.org.apache.avro.generic.GenericData.Record(self._schema)
        for name, value in zip(FIELDS, (key, part, event_ms, word), strict=True):
            record.put(name, value)
        if self._has_variant:
            record.put("doc", self._variant(event_ms))
        model = self._hudi.common.model
        made = model.HoodieAvroRecord(
            model.HoodieKey(key, f"part={part}"), self._payload(record, event_ms), *self._operation
        )
        identifier = self._hudi.index.bucket.BucketIdentifier
        bucket = identifier.getBucketId(key, "id", BUCKETS)
        file_id = self._file_ids.get((part, bucket))
        if file_id is None:
            file_id = str(uuid4()) if self._is_flink_state else identifier.newBucketFileIdPrefix(bucket)
            self._file_ids[part, bucket] = file_id
        made.unseal()
        made.setCurrentLocation(model.HoodieRecordLocation("I", file_id))
        made.seal()
        return made

    def _variant(self, event_ms: int) -> Any:
        """The object {"ms": event_ms}."""
        kind = self._schema.getField("doc").schema().getTypes().get(1)
        found = self._jvm.org.apache.avro.generic.GenericData.Record(kind)
        of_bytes = self._jvm.java.nio.ByteBuffer.wrap
        found.put("metadata", of_bytes(bytes([1, 1, 0, 2]) + b"ms"))
        found.put("value", of_bytes(bytes([2, 1, 0, 0, 9, 6 << 2]) + event_ms.to_bytes(8, "little")))
        return found

    def _make_table(self, version: int, hudi: tuple[int, ...], payload_class: str) -> None:
        client = self._hudi.common.table.HoodieTableMetaClient
        builder = client.withPropertyBuilder() if hudi < (1,) else client.newTableBuilder().setTableVersion(version)
        builder = (
            builder.setTableType("MERGE_ON_READ")
            .setTableName("beside")
            .setRecordKeyFields("id")
            .setPartitionFields("part")
            .setPayloadClassName(payload_class)
            .setKeyGeneratorClassProp("org.apache.hudi.keygen.SimpleAvroKeyGenerator")
            .setHiveStylePartitioningEnable(True)
            .setTableCreateSchema(self._schema_text)
        )
        set_ordering = builder.setOrderingFields if hudi >= (1, 1) else builder.setPreCombineField
        set_ordering("event_ts").initTable(self._conf, str(self._path))

    def _file_groups(self) -> dict[tuple[str, int], str]:
        """The file groups that an earlier run of this writer has made, by partition and bucket."""
        found: dict[tuple[str, int], str] = {}
        for file in self._path.glob("part=*/*"):
            if name := _FILE_ID.match(file.name):
                found[file.parent.name.removeprefix("part="), int(name[1][:8])] = name[1]
        return found


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    is_over = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        is_over.set()

    threading.Thread(target=listen, daemon=True).start()
    launched: Any = launch_gateway(
        classpath=os.pathsep.join(config["classpath"]),
        javaopts=[
            f"-Djava.io.tmpdir={Path(config['truth']).parent}",
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Duser.timezone=UTC"),
        ],
        die_on_exit=True,
        enable_auth=True,
        jarpath=config["py4j"],
        java_path=config["java"],
    )
    port, token = launched
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    batches = [json.loads(line) for line in Path(config["batches"]).read_text().splitlines()]
    batch = config["first"]
    hudi = tuple(map(int, config["hudi"].split(".")))
    tables = [
        (
            Writer(
                gateway,
                Path(table["path"]),
                config["version"],
                config["options"],
                hudi,
                is_flink_state=config["is_flink_state"],
                has_variant=config["has_variant"],
            ),
            table.get("steps"),
        )
        for table in config["tables"]
    ]
    for writer, steps in tables:
        if steps is not None:
            for number in range(batch, batch + config["whole"]):
                writer.write(batches[number], is_over, 0)
            writer.take(batches[batch + config["whole"]], steps)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    written = [writer for writer, steps in tables if steps is None]
    with Path(config["truth"]).open("a") as truth:

        def tell(instant: str, *, is_acknowledged: bool = False) -> None:
            truth.write(json.dumps({"batch": batch, "instant": instant, "is_acknowledged": is_acknowledged}) + "\n")
            truth.flush()

        while written and not is_over.is_set():
            for writer in written:
                tell(writer.write(batches[batch], is_over, config["hold"], tell), is_acknowledged=True)
            batch += 1
            is_over.wait(config["gap"])
    is_over.wait()
    for writer, _ in tables:
        writer.close()
    gateway.shutdown()


if __name__ == "__main__":
    main()

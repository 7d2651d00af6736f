"""Real Hudi in one JVM: answers JSON requests, one per line, on the socket SCRATCH/socket.

Usage: `python server.py JAR SCRATCH [METASTORE]`. METASTORE is the address of a Hive Metastore that contains its
tables. Each connection has its own Spark session; sessions share the tables that they create. Prints a line when it
listens, and ends when its standard input closes. Runs with PySpark 3.5 and imports nothing of the project.

    request   {"method": "write" | "together" | "read" | "ask" | "sql" | "timeline" | "serialized_deletes" | "change_splits"
               | "storage_lock" | "begin_stream" | "begin_loops" | "failures" | "end_writers"
               | "option_keys",
               ...arguments}
    response  {"ok": value} or {"error": message}

Rows are passed as Parquet: a request names the file to read, a response the directory that was written.
"""

import contextlib
import functools
import json
import os
import signal
import socket
import sys
import threading
import uuid
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Spark's launcher and the JVM write to descriptor 1, which becomes standard error. Only the single line goes to a
# private copy.
READY = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

from pyspark.sql import DataFrame, SparkSession, functions  # noqa: E402

# Hudi's incremental queries set these options in the session, and so for every later query, which can then take another
# code path.
SET_BY_HUDI = (
    "spark.sql.parquet.filterPushdown",
    "spark.sql.parquet.recordLevelFilter.enabled",
    "spark.sql.parquet.enableVectorizedReader",
)
# For reads and writes of a few rows, which otherwise spend their time in the compiler.
UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
OPTION = b"org/apache/hudi/common/config/ConfigProperty"
AT_ONCE = 3  # tables that are written to: most of the time of a small write is spent waiting for Spark's scheduler


def spark_session(jar: str, scratch: str, metastore: str | None) -> SparkSession:
    builder = (
        # A task may fail once, as on a cluster: two tasks that fill one map of Hudi's at once end one of them with a
        # ConcurrentModificationException (bucket index by partition, 1.1.1).
        SparkSession.builder.master("local[2,2]")
        .appName("hudi-judge")
        .config("spark.jars", jar)
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.kryo.registrator", "org.apache.spark.HoodieSparkKryoRegistrar")
        .config("spark.sql.extensions", "org.apache.spark.sql.hudi.HoodieSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.hudi.catalog.HoodieCatalog")
        .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
        .config("spark.local.dir", f"{scratch}/spark")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.sql.session.timeZone", "UTC")
        # Many plans and little data: here, the optimizing compiler and a multi-threaded collector cost more than they
        # gain later. What the other compiler makes fills its default of 48 MiB within minutes; from then on, the JVM
        # throws code away and interprets it.
        .config(
            "spark.driver.extraJavaOptions",
            f"-Djava.io.tmpdir={scratch} -Duser.timezone=UTC"
            " -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn512m",
        )
        .config("spark.driver.memory", "2g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        # Answers must contain timestamps as such, not as INT96, which is Spark 3's default.
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    )
    if metastore is not None:
        builder = builder.config("spark.hadoop.hive.metastore.uris", metastore).enableHiveSupport()
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _session_of(spark: SparkSession, settings: dict[str, str]) -> SparkSession:
    """A separate session in the same JVM, with the same tables."""
    session = spark.newSession()
    for key, value in settings.items():
        session.conf.set(key, value)
    return session


class Hudi:
    """The requests to the judge: each method is one."""

    def __init__(self, spark: SparkSession, scratch: str) -> None:
        self._spark = spark
        self._small = _session_of(spark, UNCOMPILED)
        self._scratch = Path(scratch)
        self._streams: list[Any] = []
        self._loops: list[threading.Thread] = []
        self._are_over = threading.Event()
        self._failed: list[str] = []

    def write(self, path: str, rows: str, options: dict[str, str], mode: str) -> None:
        frame = self._small.read.parquet(rows).coalesce(1)
        frame.write.format("hudi").options(**options).mode(mode).save(path)

    def together(self, turns: list[list[dict[str, Any]]]) -> list[str | None]:
        """Runs several sequences of requests at the same time. Returns the error of each sequence, None if it had none."""
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(self._turn, turns))

    def _turn(self, requests: list[dict[str, Any]]) -> str | None:
        try:
            for request in requests:
                getattr(self, request.pop("method"))(**request)
        except Exception as failure:
            return _message_of(failure)
        return None

    def begin_stream(self, path: str, source: str, checkpoint: str, options: dict[str, str]) -> None:
        """Starts a stream that reads each file of `source` as a micro-batch, until `end_writers`."""
        schema = self._spark.read.parquet(source).schema
        frame = self._small.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(source)
        stream = frame.coalesce(1).writeStream.format("hudi").options(**options).outputMode("append")
        self._streams.append(stream.option("checkpointLocation", checkpoint).start(path))

    def begin_loops(self, path: str, loops: list[list[str]], truths: list[str], options: dict[str, str]) -> None:
        """Starts concurrent writers, each of which writes one file after another and records the committed ones."""
        self._are_over.clear()
        for files, truth in zip(loops, truths, strict=True):
            loop = threading.Thread(target=self._loop, args=(path, files, truth, options), daemon=True)
            self._loops.append(loop)
            loop.start()

    def _loop(self, path: str, files: list[str], truth: str, options: dict[str, str]) -> None:
        with Path(truth).open("a") as acknowledged:
            for number, file in enumerate(files):
                if self._are_over.is_set():
                    return
                try:
                    self.write(path, file, options, "append")
                except Exception as failure:
                    self._failed.append(_message_of(failure))
                    return
                acknowledged.write(f"{number}\n")
                acknowledged.flush()

    def failures(self) -> list[str]:
        """The errors that stopped a stream or a loop."""
        stopped = [stream.exception() for stream in self._streams]
        return self._failed + [_message_of(failure) for failure in stopped if failure is not None]

    def end_writers(self) -> list[str]:
        """Lets the writers finish what they are writing; streams read all existing files.

        Returns what had stopped one before.
        """
        self._are_over.set()
        for loop in self._loops:
            loop.join()
        for stream in self._streams:
            if stream.exception() is None:
                stream.processAllAvailable()
            stream.stop()
        found = self.failures()
        self._streams, self._loops, self._failed = [], [], []
        return found

    def statements(self, statements: list[str], settings: dict[str, str]) -> None:
        """Runs statements in a separate session, so that its settings affect nothing else."""
        session = _session_of(self._spark, {**UNCOMPILED, **settings})
        for statement in statements:
            session.sql(statement).collect()

    def read(self, path: str, options: dict[str, str]) -> str:
        # As a single task, because preparing a task takes longer than reading the few rows of a file group.
        return self._answer(self._spark.read.format("hudi").options(**options).load(path).coalesce(1))

    def ask(self, questions: list[dict[str, Any]]) -> str:
        """Runs many reads in one job. Returns all rows, each with the number of its question in the column `question`."""
        frames = [
            self._small.read.format("hudi")
            .options(**question["options"])
            .load(question["path"])
            .where(question["where"])
            .select(*question["columns"])
            .withColumn("question", functions.lit(number))
            for number, question in enumerate(questions)
        ]
        return self._answer(functools.reduce(DataFrame.unionAll, frames).coalesce(1))

    def sql(self, statement: str) -> str:
        return self._answer(self._spark.sql(statement))

    def timeline(self, path: str) -> list[dict[str, str | None]]:
        # PySpark declares both as optional, though a running context always has them.
        context: Any = self._spark.sparkContext
        jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()
        client = (
            jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder()
            .setConf(jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop))
            .setBasePath(path)
            .build()
        )
        return [_instant(instant) for instant in client.getActiveTimeline().getInstants()]

    def change_splits(self, path: str) -> list[list[Any]]:
        """Where Hudi's CDC extractor finds the changes of each commit if it reads compactions, too, as Flink has it do.

        For each split the file ID, the instant, the case, and the files, relative to the table.
        """
        context: Any = self._spark.sparkContext
        jvm, hadoop = context._jvm, context._jsc.hadoopConfiguration()
        table = jvm.org.apache.hudi.common.table
        client = (
            table.HoodieTableMetaClient.builder()
            .setConf(jvm.org.apache.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(hadoop))
            .setBasePath(path)
            .build()
        )
        log = jvm.org.apache.hudi.common.table.log
        kind = getattr(log, "InstantRange$RangeType").OPEN_CLOSED
        every = log.InstantRange.builder().startInstant("0" * 17).endInstant("9" * 17).rangeType(kind).build()
        found = table.cdc.HoodieCDCExtractor(client, every, True).extractCDCFileSplits()
        return [
            [group.getFileId(), split.getInstant(), split.getCdcInferCase().name(), sorted(split.getCdcFiles())]
            for group in found
            for split in found[group]
        ]

    def serialized_deletes(self, partition: str, deletes: dict[str, int | None]) -> str:
        """The output of Hudi's own serializer for deletes, in hexadecimal.

        The type is HoodieKey[] if no delete has an ordering value.
        """
        context: Any = self._spark.sparkContext
        hudi = context._jvm.org.apache.hudi.common
        if all(ordering is None for ordering in deletes.values()):
            kind, objects = hudi.model.HoodieKey, [hudi.model.HoodieKey(key, partition) for key in deletes]
        else:
            kind = hudi.model.DeleteRecord
            objects = [kind.create(key, partition, ordering) for key, ordering in deletes.items()]
        array = context._gateway.new_array(kind, len(objects))
        for place, one in enumerate(objects):
            array[place] = one
        return bytes(hudi.util.SerializationUtils.serialize(array)).hex()

    def storage_lock(self, document: str) -> str:
        """A lock's document, read and written again by Hudi."""
        context: Any = self._spark.sparkContext
        models = context._jvm.org.apache.hudi.client.transaction.lock.models
        content = context._jvm.java.io.ByteArrayInputStream(document.encode())
        lock = models.StorageLockFile.createFromStream(content, "any version")
        data = models.StorageLockData(lock.isExpired(), lock.getValidUntilMs(), lock.getOwner())
        return bytes(models.StorageLockFile.toByteArray(data)).decode()

    def option_keys(self) -> list[str]:
        """The keys of the options that Hudi's classes declare, under all of their names."""
        jvm: Any = self._spark.sparkContext._jvm
        found: set[str] = set()
        for name in _classes_with_options(str(self._spark.conf.get("spark.jars"))):
            # One that needs a library that isn't there declares none of its own.
            with contextlib.suppress(Exception):
                found.update(_declared_options(jvm.java, jvm.py4j.reflection.ReflectionUtil.classForName(name)))
        return sorted(found)

    def _answer(self, frame: DataFrame) -> str:
        target = self._scratch / "answers" / uuid.uuid4().hex
        if not frame.columns:  # a statement without a result, which Parquet cannot hold
            frame = self._spark.range(0).toDF("nothing")
        try:
            frame.write.parquet(str(target))
        finally:
            for session in (self._spark, self._small):
                for key in SET_BY_HUDI:
                    session.conf.unset(key)
        return str(target)


def _classes_with_options(jar: str) -> Iterator[str]:
    with zipfile.ZipFile(jar) as bundle:
        for entry in bundle.namelist():
            if entry.startswith("org/apache/hudi/") and entry.endswith(".class") and OPTION in bundle.read(entry):
                yield entry.removesuffix(".class").replace("/", ".")


def _declared_options(java: Any, declaring: Any) -> Iterator[str]:
    for field in declaring.getDeclaredFields():
        is_static = java.lang.reflect.Modifier.isStatic(field.getModifiers())
        is_scala = declaring.getName().endswith("$")
        if field.getType().getName() != OPTION.decode().replace("/", ".") or not (is_static or is_scala):
            continue
        field.setAccessible(True)
        option = field.get(None if is_static else declaring.getField("MODULE$").get(None))
        if option is not None:
            yield from (option.key(), *option.getAlternatives())


def _instant(instant: Any) -> dict[str, str | None]:
    methods = {method.getName() for method in instant.getClass().getMethods()}
    # Hudi 1 renamed getTimestamp and introduced completion times.
    has_completion_time = "requestedTime" in methods
    return {
        "requested_time": instant.requestedTime() if has_completion_time else instant.getTimestamp(),
        "action": instant.getAction(),
        "state": instant.getState().name(),
        "completion_time": instant.getCompletionTime() if has_completion_time else None,
    }


def _message_of(failure: Exception) -> str:
    """The messages and causes of a failure, without the frames of Java's stack traces."""
    lines = f"{type(failure).__name__}: {failure}".splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith(("at ", "... ")))


def serve(connection: socket.socket, hudi: Hudi) -> None:
    """Answers one request after another, until the connection is closed."""
    with connection, connection.makefile("rw", encoding="utf-8") as lines:
        for line in lines:
            request = json.loads(line)
            try:
                answer: dict[str, object] = {"ok": getattr(hudi, request.pop("method"))(**request)}
            # Any error of Hudi is an answer: the test decides what it means.
            except Exception as failure:
                answer = {"error": _message_of(failure)}
            lines.write(json.dumps(answer) + "\n")
            lines.flush()


def end_with_input() -> None:
    """Ends this process and its JVM, even during a request. Both are in their own process group."""
    while os.read(0, 1):
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)


def main() -> None:
    jar, scratch, *metastore = sys.argv[1:]
    threading.Thread(target=end_with_input, daemon=True).start()
    spark = spark_session(jar, scratch, metastore[0] if metastore else None)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{scratch}/socket")
        listener.listen()
        READY.write("ready\n")
        READY.flush()
        while True:
            connection, _ = listener.accept()
            hudi = Hudi(_session_of(spark, {}), scratch)
            threading.Thread(target=serve, args=(connection, hudi), daemon=True).start()


if __name__ == "__main__":
    main()

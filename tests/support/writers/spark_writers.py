"""Stock writers in a judge's Spark: a stream of micro-batches without pauses, and two concurrent writers."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from support.judge import HudiJudge
from support.judge.options import MERGE_ON_READ, table_name, table_version
from support.writers.batches import Batch, put_parquet, table_of

FILES = 400
AHEAD = 3
FEEDING_SECONDS = 0.05
BESIDE = MERGE_ON_READ | table_name("beside") | {"hoodie.logfile.data.block.format": "avro"}
BUCKETS = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.bucket.index.hash.field": "id",
}
OCC = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.write.lock.client.num_retries": "100",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
    # A retry must not hide a conflict.
    "hoodie.write.num.retries.on.conflict.failures": "0",
}
NON_BLOCKING = OCC | {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    # Hudi's check of this mode reads only this key.
    "hoodie.table.type": "MERGE_ON_READ",
}
STREAMING = {
    # A retry must not hide a micro-batch that fails.
    "hoodie.datasource.write.streaming.retry.count": "1",
    # Without this option, a stream that shares the lock does not start.
    "hoodie.datasource.write.streaming.checkpoint.identifier": "beside",
}
EVENT_TIME_MERGE = {
    6: {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload"},
    8: {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"},
    9: {"hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING"},
}


def write_options(judge: HudiJudge, version: int, given: Mapping[str, str]) -> dict[str, str]:
    """The options of a stock writer on a table of `version`."""
    at_version = {} if judge.version.startswith("0.") else table_version(version)
    return {**BESIDE, **BUCKETS, **EVENT_TIME_MERGE[version], **at_version, **given}


class StreamWriter:
    """Structured streaming: the next micro-batch begins as soon as the previous one is committed.

    Spark records what it acknowledged in its checkpoint, outside the table.
    """

    def __init__(
        self, judge: HudiJudge, version: int, path: Path, scratch: Path, *, options: Mapping[str, str]
    ) -> None:
        self._judge = judge
        self._commits = scratch / "checkpoint" / "commits"
        self._files = put_parquet(scratch / "waiting", [Batch(number) for number in range(FILES)])
        self._source = scratch / "source"
        self._source.mkdir()
        self._fed = 0
        self._feed()
        self._is_over = threading.Event()
        chosen = write_options(judge, version, {**STREAMING, **options})
        judge.begin_stream(path, self._source, scratch / "checkpoint", options=chosen)
        self._feeder = threading.Thread(target=self._go_on_feeding, daemon=True)
        self._feeder.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_over.is_set():
            self._end()

    def acknowledged(self) -> list[Batch]:
        """The batches that Spark recorded as committed. Raises AssertionError if the stream has failed."""
        assert not (failed := self._judge.failures()), failed
        return self._acknowledged()

    def stop(self) -> list[Batch]:
        """Lets it process its input, and ends it."""
        assert not (failed := self._end()), failed
        return self._acknowledged()

    def _end(self) -> list[str]:
        self._is_over.set()
        self._feeder.join()
        return self._judge.end_writers()

    def _acknowledged(self) -> list[Batch]:
        found = self._commits.iterdir() if self._commits.exists() else ()
        return sorted(Batch(int(file.name)) for file in found if file.name.isdigit())

    def _go_on_feeding(self) -> None:
        while not self._is_over.wait(FEEDING_SECONDS):
            self._feed()

    def _feed(self) -> None:
        """Keeps a few files ahead of the committed ones, so that no micro-batch waits for input."""
        while self._fed < min(len(self._acknowledged()) + AHEAD, FILES):
            file = self._files[self._fed]
            file.rename(self._source / file.name)
            self._fed += 1


class OverlappingWriters:
    """Two concurrent writers with optimistic concurrency control and one lock, each with a separate partition."""

    concurrency: Mapping[str, str] = OCC
    first = Batch(-1, 0)
    """The write that creates the table, which two writers can't do at the same time."""

    def __init__(
        self, judge: HudiJudge, version: int, path: Path, scratch: Path, *, options: Mapping[str, str]
    ) -> None:
        self._judge = judge
        self._is_over = False
        self._truths = [scratch / "truth-0", scratch / "truth-1"]
        self._batches = [self.batches_of(writer) for writer in range(2)]
        files = [put_parquet(scratch / f"writer-{writer}", batches) for writer, batches in enumerate(self._batches)]
        given = {**options, **self.concurrency, "hoodie.datasource.write.operation": "upsert"}
        chosen = write_options(judge, version, given)
        judge.write(path, table_of(self.first), options=chosen)
        judge.begin_loops(path, files, self._truths, options=chosen)

    def batches_of(self, writer: int) -> list[Batch]:
        return [Batch(number, writer) for number in range(FILES)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_over:
            self._judge.end_writers()

    def acknowledged(self) -> list[Batch]:
        """The writer and batch of each commit that Hudi reported. Raises AssertionError if one of them has failed."""
        assert not (failed := self._judge.failures()), failed
        return self._acknowledged()

    def stop(self) -> list[Batch]:
        """Lets both finish what they are writing."""
        self._is_over = True
        assert not (failed := self._judge.end_writers()), failed
        return self._acknowledged()

    def _acknowledged(self) -> list[Batch]:
        return [self.first] + [
            batches[int(line)]
            for truth, batches in zip(self._truths, self._batches, strict=True)
            if truth.exists()
            for line in truth.read_text().splitlines()
        ]


class NonBlockingWriters(OverlappingWriters):
    """Two concurrent writers of the same keys, with Hudi's non-blocking concurrency control (version 8 and later)."""

    concurrency = NON_BLOCKING
    first = Batch(0)

    def batches_of(self, writer: int) -> list[Batch]:
        return [Batch(1 + 2 * number + writer) for number in range(FILES)]

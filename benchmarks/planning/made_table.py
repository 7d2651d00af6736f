"""A table that is only made up: names and sizes by formula, commits as a writer of Hudi would have left them.

Every delta commit writes one log file to each file group. Listings come from the formula, so that the table takes no
memory beside what is measured; the commits are files of a directory, encoded once.
"""

import functools
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.slice.log_file.writer import encode_data_block
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import MissingFileError
from eventide_core.ports import Capability, FileInfo, OutputFile
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.new_table import NewTable
from eventide_core.table.timeline.contents.commit_metadata import (
    EVENT_TIMES_KEY,
    WRITER,
    WRITER_KEY,
    CommitMetadata,
    WriteStat,
)
from eventide_core.table.timeline.instant import instant_time

SCHEMA = AvroSchema.of(
    '{"type":"record","name":"trip","fields":[{"name":"id","type":"string"},{"name":"day","type":"string"},'
    '{"name":"ts","type":"long"},{"name":"fare","type":["null","double"],"default":null}]}'
)
START_MS = 1_767_225_600_000  # 2026-01-01
STEP_MS = 60_000  # from one delta commit to the next, and from one commit's event times to the next one's
BASE_BYTES = 100_000_000
PARTITION_MARK = ".hoodie_partition_metadata"
_ROWS_A_LOG = 8


@dataclass(frozen=True, slots=True)
class MadeTable:
    """`logs` log files on each of `groups` file groups.

    Without `has_ranges` the write stats state no event times. `is_ours`: the commits say that eventide wrote them, and
    the headers of blocks tell the event times, too. `spread`: a commit writes only to each file group of that many, in
    turn, and `logs` is the number of these commits.
    """

    version: int
    groups: int
    logs: int
    partitions: int
    has_ranges: bool
    is_ours: bool
    spread: int = 1

    @property
    def timeline_path(self) -> str:
        return ".hoodie" if self.version < 8 else ".hoodie/timeline"

    @property
    def middle_ms(self) -> int:
        """A T before which about half of the logs lie."""
        return event_times(self.logs // 2)[1] + 1

    def properties(self) -> str:
        return NewTable(
            "made", SCHEMA, self.version, MergeRule.EVENT_TIME_ORDERING, ("id",), ("day",), "ts", is_hive_style=True
        ).properties()

    def partition(self, number: int) -> str:
        return f"day={number:06d}"

    def file_ids(self, partition: int, commit: int = 0) -> Iterator[str]:
        """The file groups of a partition; those that a commit writes log files to, if it isn't 0."""
        for group in range(partition, self.groups, self.partitions):
            if not commit or group // self.partitions % self.spread == commit % self.spread:
                yield f"{group:08x}-0000-4000-8000-{partition:012x}-0"

    def base_name(self, file_id: str) -> str:
        return f"{file_id}_0-0-0_{requested(0)}.parquet"

    def log_name(self, file_id: str, commit: int) -> str:
        if self.version < 8:
            return f".{file_id}_{requested(0)}.log.{commit}_0-{commit}-{commit}"
        return f".{file_id}_{requested(commit)}.log.1_0-{commit}-{commit}"

    def timeline_names(self) -> Iterator[str]:
        for commit in range(self.logs + 1):
            time = requested(commit)
            yield f"{time}.deltacommit.requested"
            yield f"{time}.deltacommit.inflight"
            yield self.commit_name(commit)

    def commit_name(self, commit: int) -> str:
        time = requested(commit)
        return f"{time}.deltacommit" if self.version < 8 else f"{time}_{completed(commit)}.deltacommit"

    def commit(self, commit: int) -> CommitMetadata:
        """What a commit says of its files; number 0 wrote the base files."""
        write = self._base_stat if commit == 0 else functools.partial(self._log_stat, commit)
        numbers = range(self.partitions)
        stats = {
            partition: tuple(write(partition, file_id) for file_id in self.file_ids(number, commit))
            for number, partition in enumerate(map(self.partition, numbers))
        }
        extra = {"schema": SCHEMA.text} | ({WRITER_KEY: WRITER, EVENT_TIMES_KEY: "ts"} if self.is_ours else {})
        return CommitMetadata(stats, extra, "BULK_INSERT" if commit == 0 else "UPSERT")

    def log_bytes(self, commit: int) -> bytes:
        """The content of each log of a commit."""
        least, greatest = event_times(commit)
        times = [least + (greatest - least) * row // (_ROWS_A_LOG - 1) for row in range(_ROWS_A_LOG)]
        full = SCHEMA.with_meta_fields()
        meta = {name: requested(commit) for name in arrow_schema(full).names if name.startswith("_hoodie")}
        rows = [{**meta, "id": f"key {row}", "day": "d", "ts": ts, "fare": 1.0} for row, ts in enumerate(times)]
        noted = ("ts", EventTimeRange(least, greatest)) if self.is_ours else None
        return encode_data_block(requested(commit), SCHEMA, pa.Table.from_pylist(rows, arrow_schema(full)), noted)

    def base_bytes(self) -> bytes:
        """The content of each base file. It is small: a listing says that they are large."""
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([], arrow_schema(SCHEMA.with_meta_fields())), sink)
        return sink.getvalue()

    def _base_stat(self, partition: str, file_id: str) -> WriteStat:
        return WriteStat(
            file_id,
            f"{partition}/{self.base_name(file_id)}",
            partition,
            prev_commit="null",
            num_writes=1000,
            num_inserts=1000,
            total_write_bytes=BASE_BYTES,
            file_size_bytes=BASE_BYTES,
        )

    def _log_stat(self, commit: int, partition: str, file_id: str) -> WriteStat:
        name, size = self.log_name(file_id, commit), _size_of_log(self, commit)
        least, greatest = event_times(commit) if self.has_ranges else (None, None)
        # As Hudi has it: on version 6 the logs of the slice so far, and its base file.
        before = range(1, commit + 1) if self.version < 8 else (commit,)
        return WriteStat(
            file_id,
            f"{partition}/{name}",
            partition,
            prev_commit=requested(0),
            num_writes=_ROWS_A_LOG,
            num_update_writes=_ROWS_A_LOG,
            total_write_bytes=size,
            file_size_bytes=size,
            min_event_time_ms=least,
            max_event_time_ms=greatest,
            log_version=commit if self.version < 8 else 1,
            base_file=self.base_name(file_id) if self.version < 8 else "",
            log_files=tuple(self.log_name(file_id, number) for number in before),
        )


class MadeStorage:
    """ports.Storage over a made table; `directory` holds its timeline. What is written to it stays in memory.

    `calls` counts what was asked of it, by kind; `bytes_read` of data files alone.
    """

    def __init__(self, table: MadeTable, directory: Path) -> None:
        self.table = table
        self.calls: Counter[str] = Counter()
        self.written: dict[str, bytes] = {}
        self._directory = directory
        self._numbers = {table.partition(number): number for number in range(table.partitions)}
        self._commit_of = {requested(commit): commit for commit in range(1, table.logs + 1)}

    def make(self) -> None:
        """Writes the commits."""
        codec = HudiMetadataCodec()
        for number in range(self.table.logs + 1):
            data = codec.encode_commit(self.table.commit(number), self.table.version)
            (self._directory / self.table.commit_name(number)).write_bytes(data)

    @property
    def root(self) -> str:
        return "memory://made"

    @property
    def is_remote(self) -> bool:
        return False  # nothing is asked on threads

    @property
    def capabilities(self) -> Capability:
        return Capability.PUT_IF_ABSENT | Capability.SERVER_COPY

    def list(self, directory: str) -> tuple[FileInfo, ...]:
        self.calls["list"] += 1
        table = self.table
        if directory == table.timeline_path:
            here = f"{directory}/"
            own = [path.removeprefix(here) for path in self.written if path.startswith(here)]
            return tuple(_file(here + name, 1) for name in sorted((*table.timeline_names(), *own)))
        if directory == "":
            return tuple(FileInfo(name, 0, True, START_MS) for name in (".hoodie", *self._numbers))
        if directory not in self._numbers:
            return ()
        sizes = [_size_of_log(table, commit) for commit in range(table.logs + 1)]
        found = [_file(f"{directory}/{PARTITION_MARK}", 96)]
        number = self._numbers[directory]
        found += [_file(f"{directory}/{table.base_name(file_id)}", BASE_BYTES) for file_id in table.file_ids(number)]
        found += [
            _file(f"{directory}/{table.log_name(file_id, commit)}", sizes[commit])
            for commit in range(1, table.logs + 1)
            for file_id in table.file_ids(number, commit)
        ]
        return tuple(found)

    def stat(self, path: str) -> FileInfo | None:
        self.calls["stat"] += 1
        return _file(path, len(self.written[path])) if path in self.written else None

    def read(self, path: str) -> bytes:
        self.calls["read"] += 1
        if path in self.written:
            return self.written[path]
        if path == ".hoodie/hoodie.properties":
            return self.table.properties().encode()
        file = self._directory / path.rpartition("/")[2]
        if path.startswith(".hoodie/") and file.exists():
            return file.read_bytes()
        if path.startswith(f"{self.table.timeline_path}/") and path.endswith((".deltacommit.requested", ".inflight")):
            return b""
        raise MissingFileError(f"there is no file {path!r} in {self.root}")

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        self.calls["read_range"] += 1
        return self._content(path)[offset : offset + length]

    def open_input(self, path: str) -> BinaryIO:
        self.calls["open_input"] += 1
        return io.BytesIO(self._content(path))

    def open_output(self, path: str) -> OutputFile:
        raise AssertionError(f"nothing writes {path} while a plan is made")

    def put(self, path: str, data: bytes) -> None:
        self.written[path] = data

    def put_if_absent(self, path: str, data: bytes) -> bool:
        is_new = path not in self.written
        if is_new:
            self.written[path] = data
        return is_new

    def copy_if_absent(self, source: str, target: str) -> bool:
        raise AssertionError(f"nothing copies {source} to {target} while a plan is made")

    def link_if_absent(self, source: str, target: str, *, is_symbolic: bool) -> bool:
        raise AssertionError(f"nothing links {source} to {target} ({is_symbolic=}) while a plan is made")

    def delete(self, path: str) -> bool:
        return self.written.pop(path, None) is not None

    def _content(self, path: str) -> bytes:
        name = path.rpartition("/")[2]
        if path in self.written or path.startswith(".hoodie/"):
            return self.read(path)
        if name.endswith(".parquet"):
            return _base_bytes(self.table)
        parts = name.split("_")
        commit = int(parts[1].rpartition(".")[2]) if self.table.version < 8 else self._commit_of[parts[1].split(".")[0]]
        return _log_bytes(self.table, commit)


@functools.cache
def requested(commit: int) -> str:
    return instant_time(START_MS + commit * STEP_MS)


@functools.cache
def completed(commit: int) -> str:
    return instant_time(START_MS + commit * STEP_MS + 1000)


def event_times(commit: int) -> tuple[int, int]:
    """The least and the greatest event time of what a commit brought."""
    least = START_MS + (commit - 1) * STEP_MS
    return least, least + STEP_MS - 1


@functools.cache
def _log_bytes(table: MadeTable, commit: int) -> bytes:
    return table.log_bytes(commit)


@functools.cache
def _base_bytes(table: MadeTable) -> bytes:
    return table.base_bytes()


@functools.cache
def _size_of_log(table: MadeTable, commit: int) -> int:
    return len(_log_bytes(table, commit)) if commit else 0


def _file(path: str, size: int) -> FileInfo:
    return FileInfo(path, size, is_directory=False, modified_ms=START_MS)

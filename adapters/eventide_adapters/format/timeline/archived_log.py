"""The archived timeline of version 6: log files of Avro blocks, whose records are HoodieArchivedMetaEntry.

    commitTime   actionType   actionState (absent in old ones: completed)
    hoodieCommitMetadata   hoodieReplaceCommitMetadata   and one such field for the metadata or plan of every other action

Each state of an instant is a record. Nothing shows which instants a file holds, so the first query reads every file
completely, in large pieces. It decodes only the commit time, action and state of each record. Metadata are decoded on
request.

A merge of small log files, in the order of Hudi's, and what a crash after each step leaves:

1. `mergeArchivePlan` names the log files and the merged one. The next archival or merge removes the plan.
2. The merged log file: their blocks, oldest first. Its instants are in two places; the next archival removes the others.
3. The log files go, oldest first. Once one is gone, the next archival or merge removes the others.
4. The plan is removed.

A process may be paused before each of these writes until others have merged, too. So whoever ends a merge reads what its
files contain: a file is removed only if its instants are in those that stay. A log file that comes late repeats instants of
others.
"""

import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
from fastavro.types import Schema

from eventide_adapters.format.encoding.avro.decode import avro_record_bounds
from eventide_adapters.format.timeline.archived_log_writer import encode_archive_log
from eventide_adapters.format.timeline.codec import commit_of
from eventide_adapters.format.timeline.container import (
    ContainerSchema,
    checked_schema,
    read_container,
    write_container,
)
from eventide_adapters.format.timeline.document import Document, corrupt
from eventide_core.errors import (
    BusyError,
    CorruptLogBlockError,
    CorruptTimelineError,
    LockError,
    MissingFileError,
    RecordDecodeError,
    UnsupportedLogFormatError,
)
from eventide_core.ports import ArchivedAction, FileInfo, Lease, Storage
from eventide_core.table.files.log_block import BlockType, read_blocks
from eventide_core.table.files.read_ahead import ReadRange
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.archived_timeline import (
    MergeLimits,
    archive_log_name,
    archive_log_number,
    logs_to_merge,
)
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Action, Instant, State

_PIECE_BYTES: Final = 8 * 1024 * 1024
_MERGE_PLAN: Final = "mergeArchivePlan"
_MERGE_PLAN_SCHEMA: Final = ContainerSchema.named("merge_archive_plan")
_READS_MAX: Final = 5
_WRITES: Final = frozenset(str(action) for action in WRITE_ACTIONS)
_TEXT: Final = {"type": ["null", "string"], "default": None}
_NAME: Final = {"type": "record", "name": "HoodieArchivedMetaEntry", "namespace": "org.apache.hudi.avro.model"}
_TIMES: Final[Schema] = fastavro.parse_schema(
    _NAME | {"fields": [{"name": name} | _TEXT for name in ("commitTime", "actionType", "actionState")]}
)


@dataclass(frozen=True, slots=True)
class _Record:
    """One record of a log file: a state of an instant, and the position."""

    time: str
    action: str
    is_completed: bool
    path: str
    schema: AvroSchema
    start: int
    end: int

    @property
    def instant(self) -> Instant:
        """The instant, if the record is of a completed write."""
        return Instant(self.time, Action(self.action), State.COMPLETED)


@dataclass(slots=True)
class LogArchivedTimeline:
    """Implements `ports.ArchivedTimeline`. Version 6 neither records completion times nor orders its instants by them."""

    storage: Storage
    directory: str
    _entries: dict[str, _Record] | None = None
    _by_file: dict[tuple[str, int], tuple[_Record, ...]] = field(
        default_factory=dict[tuple[str, int], tuple[_Record, ...]]
    )

    def refresh(self) -> None:
        self._entries = None

    def find(self, requested_time: str) -> Instant | None:
        entry = self._loaded().get(requested_time)
        return None if entry is None else entry.instant

    def writes(self, begin: str, end: str) -> Iterator[Instant]:
        entries = self._loaded()
        return (entries[time].instant for time in sorted(entries, reverse=True) if begin <= time <= end)

    def commit(self, requested_time: str) -> CommitMetadata | None:
        entry = self._loaded().get(requested_time)
        if entry is None:
            return None
        try:
            data = self.storage.read_range(entry.path, entry.start, entry.end - entry.start)
        except MissingFileError:  # merged since
            self.refresh()
            entry = self._loaded()[requested_time]
            data = self.storage.read_range(entry.path, entry.start, entry.end - entry.start)
        record = Document.of(_decode(data, entry.schema, None, entry.path), entry.path, "a record")
        is_replace = entry.instant.action is Action.REPLACE_COMMIT
        name = "hoodieReplaceCommitMetadata" if is_replace else "hoodieCommitMetadata"
        if record.values.get(name) is None:
            raise corrupt(entry.path, f"has no metadata of the {entry.instant.action} at {requested_time}")
        return commit_of(record.document(name))

    def undone(self, begin: str) -> frozenset[str]:
        del begin
        return frozenset()

    def lost_files(self) -> Mapping[str, str]:
        """A merge takes two files or more. So one file alone that is missing between two numbers was not merged.

        Unless the one before it was put by a process that was paused during the merge.
        """
        logs = self._logs()
        is_merging = self.storage.stat(f"{self.directory}/{_MERGE_PLAN}") is not None
        if is_merging or [number for number, _ in logs] != [number for number, _ in self._logs()]:
            return {}  # a merge may have removed some of its files
        lost = [
            low + 1
            for (low, info), (high, _) in itertools.pairwise(logs)
            if high == low + 2 and not self._was_late(info, [later for number, later in logs if number > low])
        ]
        problem = "is missing: the archived files before and after it exist, and no merge takes one file alone"
        return {f"{self.directory}/{archive_log_name(number)}": problem for number in lost}

    def encode(self, actions: Sequence[ArchivedAction]) -> bytes:
        return encode_archive_log(actions)

    def append(self, actions: Sequence[ArchivedAction], lease: Lease) -> None:
        self.refresh()
        self._end_merge(lease)
        logs = self._logs()
        # If an archival crashed before it removed the instants from the active timeline, the last log file has all of them.
        there = self._instants(logs[-1][1]) if logs else set[tuple[str, str]]()
        new = [a for a in actions if (a.completed.requested_time, str(a.completed.action)) not in there]
        if not new:
            return
        path = f"{self.directory}/{archive_log_name(logs[-1][0] + 1 if logs else 1)}"
        lease.check()
        if not self.storage.put_if_absent(path, encode_archive_log(new)):
            raise BusyError(f"another writer changed {path} at the same time; try again")
        self.refresh()

    def merge(self, limits: MergeLimits, lease: Lease) -> None:
        self._end_merge(lease)
        logs = self._logs()
        chosen = logs_to_merge([(number, info.size) for number, info in logs], limits)
        if not chosen:
            return
        paths = [info.path for number, info in logs if number in chosen]
        name = archive_log_name(logs[-1][0] + 1)
        plan = {
            "version": 1,
            "candidate": [f"{self.storage.root.rstrip('/')}/{path}" for path in paths],
            "mergedArchiveFileName": name,
        }
        content = b"".join(map(self.storage.read, paths))
        self._put_merge_plan(write_container(_MERGE_PLAN_SCHEMA, plan), lease)
        if not self.storage.put_if_absent(f"{self.directory}/{name}", content):
            raise BusyError(f"another writer changed {self.directory}/{name} meanwhile; try again")
        for path in (*paths, f"{self.directory}/{_MERGE_PLAN}"):
            lease.check()
            self.storage.delete(path)
        self.refresh()

    def _put_merge_plan(self, data: bytes, lease: Lease) -> None:
        """Puts the plan. Withdraws it if the lock was lost meanwhile, because Hudi follows any plan that it finds."""
        path = f"{self.directory}/{_MERGE_PLAN}"
        lease.check()
        if not self.storage.put_if_absent(path, data):
            raise BusyError(f"another writer put {path} at the same time; try again")
        try:
            lease.check()
        except LockError:
            with suppress(MissingFileError):
                if self.storage.read(path) == data:
                    self.storage.delete(path)
            raise

    def _end_merge(self, lease: Lease) -> None:
        """Ends a merge that was interrupted: completes it, or undoes it if the merged file is not whole."""
        plan_path = f"{self.directory}/{_MERGE_PLAN}"
        try:
            plan = read_container(self.storage.read(plan_path), plan_path)
        except MissingFileError:
            return
        except CorruptTimelineError:
            lease.check()
            self.storage.delete(plan_path)  # Hudi died while it wrote the plan; nothing has been merged
            return
        for path in (*self._needless(plan), plan_path):
            lease.check()
            self.storage.delete(path)

    def _needless(self, plan: Document) -> list[str]:
        """The files of an interrupted merge whose instants are in others of its files, oldest first."""
        logs = {info.path.rpartition("/")[2]: info for _, info in self._logs()}
        merged = logs.pop(plan.text("mergedArchiveFileName") or "", None)
        candidates = plan.values.get("candidate")
        names = [str(path).rpartition("/")[2] for path in candidates] if isinstance(candidates, list) else []
        left = [logs[name] for name in names if name in logs]
        if merged is None or not left:
            return []
        instants = self._instants_of(left)
        try:
            done = self._instants(merged)
        except CorruptTimelineError:  # Hudi died while it wrote the file
            return [merged.path] if len(left) == len(names) else []
        if instants <= done:
            return [info.path for info in left]
        return [merged.path] if done <= instants else []

    def _logs(self) -> list[tuple[int, FileInfo]]:
        """The log files by number."""
        numbered = (
            (archive_log_number(info.path.rpartition("/")[2]), info) for info in self.storage.list(self.directory)
        )
        return sorted(((n, info) for n, info in numbered if n is not None), key=lambda pair: pair[0])

    def _instants(self, info: FileInfo) -> set[tuple[str, str]]:
        """The completed instants in one log file, each with its action."""
        records = _records(_in_pieces(self.storage, info.path), info.path, info.size)
        return {(record.time, record.action) for record in records if record.is_completed}

    def _was_late(self, log: FileInfo, others: Iterable[FileInfo]) -> bool:
        """Whether it only repeats what others contain."""
        with suppress(CorruptTimelineError):
            instants = self._instants(log)
            return bool(instants) and instants <= self._instants_of(others)
        return False

    def _instants_of(self, infos: Iterable[FileInfo]) -> set[tuple[str, str]]:
        return {instant for info in infos for instant in self._instants(info)}

    def _loaded(self) -> dict[str, _Record]:
        if self._entries is None:
            for _ in range(_READS_MAX - 1):
                with suppress(MissingFileError):  # a merge removed it after the listing
                    self._entries = self._listed()
                    return self._entries
            self._entries = self._listed()
        return self._entries

    def _listed(self) -> dict[str, _Record]:
        entries: dict[str, _Record] = {}
        known: dict[tuple[str, int], tuple[_Record, ...]] = {}
        for _, info in self._logs():
            key = (info.path, info.size)
            known[key] = self._by_file[key] if key in self._by_file else self._read(info.path, info.size)
            # Until a merge of archive logs is complete, an instant can be in two of them.
            entries |= {entry.time: entry for entry in known[key]}
        self._by_file = known
        return entries

    def _read(self, path: str, size: int) -> tuple[_Record, ...]:
        try:
            records = _records(_in_pieces(self.storage, path), path, size)
            return tuple(record for record in records if record.is_completed and record.action in _WRITES)
        except CorruptTimelineError:
            if self._is_half_merged(path):
                return ()  # the log files being merged exist until the merge is complete
            raise

    def _is_half_merged(self, path: str) -> bool:
        plan_path = f"{self.directory}/{_MERGE_PLAN}"
        try:
            plan = read_container(self.storage.read(plan_path), plan_path)
        except MissingFileError:
            return False
        return plan.text("mergedArchiveFileName") == path.rpartition("/")[2]


def _records(read: ReadRange, path: str, size: int) -> Iterator[_Record]:
    try:
        for block in read_blocks(read, size, path, is_strict=True):
            if block.block_type is not BlockType.AVRO_DATA:
                continue
            schema = block.schema
            content = read(block.content_offset, block.content_length)
            starts, ends = avro_record_bounds(content, path)
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
                record = Document.of(_decode(content[start:end], schema, _TIMES, path), path, "a record")
                action, state = record.text("actionType"), record.text("actionState")
                yield _Record(
                    record.required_text("commitTime"),
                    action or "",
                    state in (None, "COMPLETED"),
                    path,
                    schema,
                    block.content_offset + start,
                    block.content_offset + end,
                )
    except (CorruptLogBlockError, RecordDecodeError, UnsupportedLogFormatError) as error:
        raise corrupt(path, f"is not a whole log of archived instants ({error})") from error


def _decode(data: bytes, schema: AvroSchema, reader: Schema | None, path: str) -> Any:
    try:
        return fastavro.schemaless_reader(io.BytesIO(data), checked_schema(schema), reader)
    except Exception as error:  # torn bytes can make the decoder raise any exception
        raise corrupt(path, f"has a record that doesn't fit its schema ({type(error).__name__}: {error})") from error


def _in_pieces(storage: Storage, path: str) -> ReadRange:
    """Reads the file in large pieces and caches the last one, because the parts of a block are adjacent."""
    piece, begin = b"", 0

    def read(offset: int, length: int) -> bytes:
        nonlocal piece, begin
        if not begin <= offset <= offset + length <= begin + len(piece):
            piece, begin = storage.read_range(path, offset, max(length, _PIECE_BYTES)), offset
        return piece[offset - begin : offset - begin + length]

    return read

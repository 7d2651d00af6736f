"""The archived timeline of version 8 and later: a log-structured merge tree of Parquet files.

    _version_    the number N of the last manifest, as text; a later manifest counts, if there is one
    manifest_N   JSON: {"files": [{"fileName", "fileLen"}]}, the current files
    a file       one row per instant: instantTime, completionTime, action, metadata (a completed commit as on the active
                 timeline; if Hudi 1.0 upgraded the table, without the Avro container), plan, version

1. A query for an instant reads the files whose names have a range that includes it. Of these, it reads the columns of
   times and actions, and caches them, because a file never changes.
2. Metadata are read one row group at a time. The last group is cached, because callers request neighboring commits.
3. A merge can remove a file that a manifest named when it was read. If a file is missing, the current manifest is read.
4. Texts are read as dictionaries, so that a text in many rows uses memory once. A text that is too long is refused.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from eventide_adapters.format.encoding.avro.reading_limits import INSTANTS_A_BYTE_MAX, check_parquet, within_memory
from eventide_adapters.format.timeline.codec import HudiMetadataCodec, read_json
from eventide_adapters.format.timeline.document import corrupt
from eventide_core.cure import Cure
from eventide_core.errors import CorruptTimelineError, EventideError, MissingFileError, UnsafePathError
from eventide_core.ports import ArchivedAction, ArchivedTimeline, Lease, Storage
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import (
    END_OF_TIME,
    VERSION_NAME,
    HistoryFileName,
    MergeLimits,
    files_to_merge,
    manifest_name,
    manifest_versions,
    merged_file,
)
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from eventide_core.table.timeline.layout import Layout

# Most tables have no archived instants, and most verbs don't read them: Arrow is imported with the first file.
if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

T = TypeVar("T")

_TIMES: Final = ("instantTime", "completionTime", "action")
_METADATA: Final = "metadata"
_TIME_LENGTH_MAX: Final = 64  # Hudi's are of 17 digits, its actions of 15 letters
_WRITES: Final[Mapping[str, Action]] = {str(action): action for action in WRITE_ACTIONS}
_CODEC: Final = HudiMetadataCodec()


@dataclass(frozen=True, slots=True)
class _Writes:
    """The writes in one file, and the row group of each."""

    instants: tuple[Instant, ...]
    row_groups: Mapping[str, int]


@dataclass(slots=True)
class LsmArchivedTimeline:
    """Implements `ports.ArchivedTimeline`."""

    storage: Storage
    directory: str
    _files: tuple[HistoryFileName, ...] | None = None
    _writes: dict[str, _Writes] = field(default_factory=dict[str, _Writes])
    _last_group: tuple[str, int] | None = None
    _last_metadata: dict[str, Any] = field(default_factory=dict[str, Any])

    def refresh(self) -> None:
        self._files = None

    def find(self, requested_time: str) -> Instant | None:
        return next(self.writes(requested_time, requested_time), None)

    def writes(self, begin: str, end: str) -> Iterator[Instant]:
        last: str | None = None
        while True:
            files = self._manifest()
            try:
                for instant in self._writes_in(files, begin, end):
                    if last is None or instant.requested_time < last:
                        last = instant.requested_time
                        yield instant
                return
            except MissingFileError as error:
                self._look_again(files, error)

    def _writes_in(self, files: Sequence[HistoryFileName], begin: str, end: str) -> Iterator[Instant]:
        files = [file for file in files if file.may_hold(begin, end)]
        waiting: dict[str, Instant] = {}
        for number, file in enumerate(files, 1):
            below = files[number].last if number < len(files) else ""
            # If an archival crashed and was repeated, an instant can be in two files.
            waiting |= {i.requested_time: i for i in self._of(file).instants if begin <= i.requested_time <= end}
            ready = [time for time in waiting if time > below]
            yield from (waiting.pop(time) for time in sorted(ready, reverse=True))

    def commit(self, requested_time: str) -> CommitMetadata | None:
        return self._of_current(partial(self._commit_in, requested_time))

    def _of_current(self, read: Callable[[Sequence[HistoryFileName]], T]) -> T:
        """What is read of the current files; of later ones if a merge removes these meanwhile."""
        while True:
            files = self._manifest()
            try:
                return read(files)
            except MissingFileError as error:
                self._look_again(files, error)

    def _commit_in(self, requested_time: str, files: Sequence[HistoryFileName]) -> CommitMetadata | None:
        for file in files:
            if file.may_hold(requested_time, requested_time):
                group = self._of(file).row_groups.get(requested_time)
                if group is not None:
                    path = f"{self.directory}/{file.name}"
                    return _CODEC.decode_archived_commit(
                        self._metadata(path, group)[requested_time].as_py() or b"", path
                    )
        return None

    def undone(self, begin: str) -> frozenset[str]:
        def read(files: Sequence[HistoryFileName]) -> frozenset[str]:
            paths = [f"{self.directory}/{file.name}" for file in files if file.may_hold(begin, END_OF_TIME)]
            return frozenset(chain.from_iterable(map(self._undone_in, paths)))

        return self._of_current(read)

    def _undone_in(self, path: str) -> Iterator[str]:
        with _open(self.storage, path) as file:
            for group in range(file.metadata.num_row_groups):
                rows = enumerate(_times(file, group, path))
                numbers = [number for number, row in rows if row["action"] == Action.ROLLBACK]
                metadata = _read(file, group, (_METADATA,), path).column(_METADATA) if numbers else ()
                for number in numbers:
                    with suppress(CorruptTimelineError, UnsafePathError):
                        done = _CODEC.decode_rollback(metadata[number].as_py() or b"", path)
                        yield from (target.instant for target in done.targets)

    def _look_again(self, files: Sequence[HistoryFileName], error: MissingFileError) -> None:
        """Reads the manifest again. Raises CorruptTimelineError if it still names the file that is missing."""
        self.refresh()
        if self._manifest() == files:
            raise CorruptTimelineError(
                f"{self.directory}: its manifest names a file that is missing ({error}); restore it from a copy, or run "
                f"{Cure.repair()}"
            ) from None

    def lost_files(self) -> Mapping[str, str]:
        while True:
            files = self._manifest()
            there = {entry.path for entry in self.storage.list(self.directory)}
            lost = [path for file in files if (path := f"{self.directory}/{file.name}") not in there]
            self.refresh()
            if not lost or self._manifest() == files:  # else merged in between
                return dict.fromkeys(lost, "is missing, but the manifest of the archived timeline names it")

    def encode(self, actions: Sequence[ArchivedAction]) -> bytes:
        from eventide_adapters.format.timeline.archived_lsm_writer import encode_actions

        return encode_actions(actions)

    def append(self, actions: Sequence[ArchivedAction], lease: Lease) -> None:
        from eventide_adapters.format.timeline.archived_lsm_writer import append_actions, raise_version

        self.refresh()
        files = self._manifest()
        times = [action.completed.requested_time for action in actions]
        there = {
            (row["instantTime"], row["action"])
            for file in files
            if times and file.may_hold(min(times), max(times))
            for row in self._instants(f"{self.directory}/{file.name}")
        }
        new = [a for a in actions if (a.completed.requested_time, str(a.completed.action)) not in there]
        if new:
            # Oldest first, as in Hudi's manifests.
            append_actions(self.storage, self.directory, new, [file.name for file in reversed(files)], lease)
            self.refresh()
        elif (last := self._last()) is not None and last[0] != self._version():
            raise_version(self.storage, self.directory, last[0], lease)

    def merge(self, limits: MergeLimits, lease: Lease) -> None:
        from eventide_adapters.format.timeline.archived_lsm_writer import (
            encode_rows,
            publish,
            put_file,
            remove_old,
        )

        level = 0
        self.refresh()
        while chosen := files_to_merge([(file, self._size(file)) for file in self._manifest()], level, limits):
            data = encode_rows(table for file in chosen for table in self._rows(f"{self.directory}/{file.name}"))
            left = [file.name for file in reversed(self._manifest()) if file not in chosen]
            name = put_file(self.storage, self.directory, merged_file(chosen), data, lease)
            publish(self.storage, self.directory, [*left, name], lease)
            self.refresh()
            level += 1
        remove_old(self.storage, self.directory, level, self._manifest(), self._files_of, lease)
        current = {file.name for file in self._manifest()}
        self._writes = {name: writes for name, writes in self._writes.items() if name in current}

    def _files_of(self, version: int) -> Iterator[HistoryFileName]:
        return self._file_names(f"{self.directory}/{manifest_name(version)}")

    def _size(self, file: HistoryFileName) -> int:
        stat = self.storage.stat(f"{self.directory}/{file.name}")
        return 0 if stat is None else stat.size

    def _rows(self, path: str) -> "Iterator[pa.Table]":
        """All columns of a file, by row group."""
        from eventide_adapters.format.timeline.archived_lsm_writer import SCHEMA

        with _open(self.storage, path) as file:
            names = file.schema_arrow.names
            absent = [name for name in SCHEMA.names if name not in names]
            if absent:
                raise corrupt(path, f"has no column {absent[0]}")
            for group in range(file.metadata.num_row_groups):
                _times(file, group, path)  # checks them
                yield file.read_row_group(group, columns=SCHEMA.names).select(SCHEMA.names).cast(SCHEMA)

    def _instants(self, path: str) -> list[dict[str, Any]]:
        with _open(self.storage, path) as file:
            return [row for group in range(file.metadata.num_row_groups) for row in _times(file, group, path)]

    def _manifest(self) -> tuple[HistoryFileName, ...]:
        """The current files, ordered by their last instants, newest first."""
        if self._files is None:
            last = self._last()
            self._files = () if last is None else tuple(sorted(last[1], reverse=True))
        return self._files

    def _last(self) -> tuple[int, tuple[HistoryFileName, ...]] | None:
        """The last manifest's number and files; None if nothing has been archived.

        `_version_` can be behind it: a writer died before it wrote the number, or was paused and wrote an old one.
        """
        stated = self._version()
        if stated is None:
            return None
        for number in sorted(
            manifest_versions(entry.path for entry in self.storage.list(self.directory)), reverse=True
        ):
            if number > stated:
                with suppress(CorruptTimelineError):  # Hudi died while it wrote the manifest
                    return number, tuple(self._files_of(number))
        return stated, tuple(self._files_of(stated))

    def _version(self) -> int | None:
        """The number in `_version_`; None if nothing has been archived."""
        path = f"{self.directory}/{VERSION_NAME}"
        try:
            text = self.storage.read(path).decode(errors="replace").strip()
        except MissingFileError:
            text = ""
        if not text:
            # A writer is replacing the file: the last manifest in the directory counts, as in Hudi.
            return max(manifest_versions(entry.path for entry in self.storage.list(self.directory)), default=None)
        if not (text.isascii() and text.isdecimal()):
            raise corrupt(path, f"contains {text[:80]!r}, which is not the number of a manifest")
        return int(text)

    def _file_names(self, path: str) -> Iterator[HistoryFileName]:
        try:
            manifest = read_json(self.storage.read(path), path)
        except MissingFileError:
            raise corrupt(path, f"is missing, but {VERSION_NAME} names it") from None
        for entry in manifest.documents("files"):
            name = HistoryFileName.parse(entry.required_text("fileName"))
            if name is None:
                raise entry.wrong("fileName", "the name of a file of archived instants")
            yield name

    def _of(self, file: HistoryFileName) -> _Writes:
        known = self._writes.get(file.name)
        if known is None:
            known = self._writes[file.name] = self._read_writes(f"{self.directory}/{file.name}")
        return known

    def _read_writes(self, path: str) -> _Writes:
        instants: list[Instant] = []
        row_groups: dict[str, int] = {}
        with _open(self.storage, path) as file:
            for group in range(file.metadata.num_row_groups):
                for row in _times(file, group, path):
                    instant = _write(row, path)
                    if instant is not None:
                        instants.append(instant)
                        row_groups[instant.requested_time] = group
        return _Writes(tuple(instants), row_groups)

    def _metadata(self, path: str, group: int) -> Mapping[str, Any]:
        if self._last_group != (path, group):
            with _open(self.storage, path) as file:
                metadata = _read(file, group, (_METADATA,), path).column(_METADATA)
                rows = enumerate(_times(file, group, path))
                self._last_metadata = {
                    row["instantTime"]: metadata[number] for number, row in rows if row["action"] in _WRITES
                }
            self._last_group = (path, group)
        return self._last_metadata


@contextmanager
def _open(storage: Storage, path: str) -> "Iterator[pq.ParquetFile]":
    """Opens the file, and converts Arrow's errors into CorruptTimelineError. Raises ResourceLimitError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    place = f"timeline file {path}"
    try:
        with storage.open_input(path) as stream, within_memory(place):
            size = stream.seek(0, io.SEEK_END)
            file = pq.ParquetFile(stream, read_dictionary=[*_TIMES, _METADATA])
            check_parquet(file.metadata, size, place, rows_a_byte_max=INSTANTS_A_BYTE_MAX)
            yield file
    except (EventideError, MemoryError):
        raise
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise corrupt(path, f"cannot be read as Parquet: {error}") from error


def _times(file: "pq.ParquetFile", group: int, path: str) -> list[dict[str, Any]]:
    """The times and actions in a row group."""
    table = _read(file, group, _TIMES, path)
    for name in _TIMES:
        chunks: list[Any] = table.column(name).chunks
        longest = max((len(text or "") for chunk in chunks for text in chunk.dictionary.to_pylist()), default=0)
        if longest > _TIME_LENGTH_MAX:
            raise corrupt(path, f"has a {name} of {longest} characters")
    return table.to_pylist()


def _read(file: "pq.ParquetFile", group: int, columns: tuple[str, ...], path: str) -> "pa.Table":
    import pyarrow as pa

    types: Mapping[str, pa.DataType] = dict(zip(file.schema_arrow.names, file.schema_arrow.types, strict=True))
    for name in columns:
        wanted = pa.dictionary(pa.int32(), pa.string() if name in _TIMES else pa.binary())
        if types.get(name) != wanted:
            raise corrupt(
                path,
                f"has a column {name} of type {types.get(name)} instead of {getattr(wanted, 'value_type', wanted)}",
            )
    table, stated = file.read_row_group(group, columns=list(columns)), file.metadata.row_group(group).num_rows
    if len(table) != stated:
        raise corrupt(path, f"has {len(table)} rows in a row group, and its footer states {stated}")
    return table


def _write(row: Mapping[str, Any], path: str) -> Instant | None:
    """The completed write in a row; None for other actions, such as a clean or a rollback."""
    action = _WRITES.get(row["action"])
    if action is None:
        return None
    if row["instantTime"] is None or row["completionTime"] is None:
        raise corrupt(path, f"has a {action} without a requested or a completion time")
    return Instant(row["instantTime"], action, State.COMPLETED, row["completionTime"])


def open_archived_timeline(storage: Storage, config: TableConfig) -> ArchivedTimeline:
    """The archived timeline of the table. Reads no file."""
    return archived_timeline(storage, config.layout, config.archive_path)


def archived_timeline(storage: Storage, layout: Layout, path: str) -> ArchivedTimeline:
    """The archived timeline at the path, in that layout; empty if nothing has been archived. Reads no file."""
    if layout.needs_hudi_1:
        return LsmArchivedTimeline(storage, path)
    from eventide_adapters.format.timeline.archived_log import LogArchivedTimeline

    return LogArchivedTimeline(storage, path)

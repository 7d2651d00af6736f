"""Caches decoded bytes, because an observer reads the same blocks and base files after every step.

The cache only stores results of pure functions, under the exact bytes and all other arguments. It computes everything
else each time: which blocks count, how they are folded and merged, and what queries show. It does not store failures.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from eventide_adapters.format.encoding.avro.decode import iter_avro_block
from eventide_adapters.format.encoding.avro.schema import AvroField
from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowArray
from eventide_adapters.format.encoding.parquet.open_file import OpenBaseFile
from eventide_adapters.format.encoding.parquet.row_pages import RowsOfGroups
from eventide_adapters.format.slice.base_file.parquet import read_base
from eventide_adapters.format.slice.log_content.content import ArrowLogContent
from eventide_adapters.format.slice.log_file import blocks as log_blocks
from eventide_adapters.format.slice.log_file import records as log_records
from eventide_adapters.format.slice.log_file.blocks import PlacedBlock, read_headers
from eventide_adapters.format.slice.log_file.delete_block import decode_delete_block
from eventide_adapters.format.slice.merge import slice_reader
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.errors import EventideError
from eventide_core.ports import Storage
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import LogFacts
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata

_Batches = tuple[pa.RecordBatch, ...]
_Fields = Sequence[AvroField]


@contextmanager
def standing_in(module: ModuleType, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """`function` takes the place of a module's own one."""
    own = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, own)


class Decoded:
    """The decoded content of blocks and base files. Reads inside `used` take it from the cache and add to it."""

    def __init__(self) -> None:
        # The key identifies fields by `id`, because comparing them takes longer than decoding a small block. The cache
        # keeps the fields, so that no other object gets the same `id`.
        self._avro: dict[tuple[bytes, AvroSchema, tuple[int, ...]], tuple[_Batches, _Fields]] = {}
        self._bases: dict[tuple[bytes, RecordShape, tuple[int, ...], frozenset[str]], tuple[_Batches, _Fields]] = {}
        self._headers: dict[tuple[bytes, str, int, int], tuple[PlacedBlock, ...]] = {}
        self._deletes: dict[tuple[bytes, pa.DataType], tuple[ArrowArray, ArrowArray]] = {}
        self._facts: dict[tuple[bytes, LogFile, RecordShape], LogFacts] = {}

    @contextmanager
    def used(self) -> Iterator[None]:
        with (
            standing_in(log_blocks, "read_headers", self._of_headers),
            standing_in(log_records, "iter_avro_block", self._of_avro_block),
            standing_in(log_records, "decode_delete_block", self._of_delete_block),
            standing_in(slice_reader, "read_base", self._of_base),
        ):
            yield

    def facts(self, data: bytes, log: LogFile, shape: RecordShape, ask: Callable[[], LogFacts]) -> LogFacts:
        """The facts of a log file with this content."""
        key = (data, log, shape)
        if key not in self._facts:
            self._facts[key] = ask()
        return self._facts[key]

    def _of_headers(self, storage: Storage, path: str, size: int, log_number: int = 0) -> Iterable[PlacedBlock]:
        key = (storage.read(path), path, size, log_number)
        if key not in self._headers:
            self._headers[key] = tuple(read_headers(storage, path, size, log_number))
        return self._headers[key]

    def _of_avro_block(
        self,
        read: Callable[[int, int], bytes],
        size: int,
        writer_schema: AvroSchema,
        target: _Fields,
        place: str,
        *,
        is_remote: bool = False,
    ) -> _Batches:
        key = (read(0, size), writer_schema, tuple(map(id, target)))
        if key not in self._avro:
            self._avro[key] = (
                tuple(iter_avro_block(read, size, writer_schema, target, place, is_remote=is_remote)),
                target,
            )
        return self._avro[key][0]

    def _of_delete_block(self, content: bytes, ordering: Any, place: str) -> tuple[ArrowArray, ArrowArray]:
        key = (content, ordering)
        if key not in self._deletes:
            self._deletes[key] = decode_delete_block(content, ordering, place)
        return self._deletes[key]

    def _of_base(
        self,
        storage: Storage,
        path: str,
        target: _Fields,
        shape: RecordShape,
        dictionary_candidates: Collection[str],
        choice: Callable[[OpenBaseFile], RowsOfGroups] | None,
        few_rows: int | None,
    ) -> Iterable[pa.RecordBatch]:
        if choice is not None:
            return read_base(storage, path, target, shape, dictionary_candidates, choice, few_rows)
        key = (storage.read(path), shape, tuple(map(id, target)), frozenset(dictionary_candidates))
        if key not in self._bases:
            self._bases[key] = (tuple(read_base(storage, path, target, shape, dictionary_candidates)), target)
        return self._bases[key][0]


@dataclass(frozen=True, slots=True)
class KnownLogContent(ArrowLogContent):
    """ports.LogContent that summarizes the same bytes only once."""

    decoded: Decoded

    def summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogFacts | EventideError]:
        return [self._summary(log, shape) for log in logs]

    def _summary(self, log: LogFile, shape: RecordShape) -> LogFacts | EventideError:
        def ask() -> LogFacts:
            (summary,) = ArrowLogContent.summarize(self, [log], shape)
            if isinstance(summary, EventideError):
                raise summary
            return summary

        try:
            return self.decoded.facts(self.storage.read(log.path), log, shape, ask)
        except EventideError as error:
            return error


class KnownCommits(HudiMetadataCodec):
    """ports.MetadataCodec that decodes the same bytes of a commit only once, for all processes."""

    def __init__(self) -> None:
        self._commits: dict[tuple[bytes, str], CommitMetadata] = {}

    def decode_commit(self, data: bytes, path: str) -> CommitMetadata:
        key = (data, path)
        if key not in self._commits:
            self._commits[key] = super().decode_commit(data, path)
        return self._commits[key]

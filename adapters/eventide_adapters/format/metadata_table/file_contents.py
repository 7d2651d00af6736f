"""Reads the file contents that the metadata table needs, in tasks of the engine and not in the driver.

A question names everything that its answer depends on, because data files never change. So an answer from before the table
lock was taken is also valid under the lock, if exactly the same question is asked again.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.avro.schema import table_fields
from eventide_adapters.format.encoding.parquet.bloom_filter import FOOTER_KEY, SIMPLE, TYPE_FOOTER_KEY
from eventide_adapters.format.slice.base_file.parquet import read_base, read_footer
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.ports import Engine, Storage
from eventide_core.table.files.slice_read import SliceRead
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import RECORD_KEY

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Question:
    """A question about data files: `ask` gets a storage and the `arguments`. Hashable and picklable, as all of these are."""

    ask: Callable[..., Any]
    arguments: tuple[Any, ...]

    def answer(self, storage: Storage) -> Any:
        return self.ask(storage, *self.arguments)


def answer(storage: Storage, question: Question, /) -> Any:
    """The answer to a question."""
    return question.answer(storage)


@dataclass(frozen=True, slots=True)
class FileContents:
    """The answers to questions. `known` starts with earlier answers. Without an engine, this process reads the files."""

    storage: Storage
    engine: Engine | None = None
    known: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def ask(self, questions: Iterable[Question]) -> None:
        """Gets the answers to all questions that are not known yet, in one Spark job instead of one each."""
        new = [question for question in dict.fromkeys(questions) if question not in self.known]
        self.known.update(zip(new, self.answers(new), strict=True))

    def answers(self, questions: Sequence[Question]) -> Iterable[Any]:
        """The answers to questions, in their order. They are not kept."""
        answering = partial(answer, self.storage)
        return map(answering, questions) if self.engine is None else self.engine.map(answering, questions)

    def derive(
        self, name: Hashable, function: Callable[[T], R], items: Callable[[], Sequence[T]], *, by_tasks: bool
    ) -> Sequence[R]:
        """What a function makes of each item, here or by tasks of the engine.

        `name` identifies all that the items depend on: nothing is derived twice under one name.
        """
        if name not in self.known:
            engine = self.engine if by_tasks else None
            self.known[name] = [*map(function, items())] if engine is None else engine.map(function, items())
        derived: Sequence[R] = self.known[name]
        return derived

    def __getitem__(self, question: Question) -> Any:
        if question not in self.known:
            self.ask([question])
        return self.known[question]


def changed_keys(storage: Storage, read: SliceRead, added: Collection[str], shape: RecordShape) -> Any:
    """The distinct keys in the files that the write added to the slice."""
    parts: list[Any] = [pa.array([], pa.string())]
    if read.base_path in added:
        assert read.base_path is not None
        key = table_fields(shape.schema, [RECORD_KEY])
        parts += [batch.column(0) for batch in read_base(storage, read.base_path, key, shape)]
    logs = [(path, size) for path, size in read.log_paths if path in added]
    parts += [part.keys for part in LogCursor(storage, logs, read.blocks, is_strict=True).parts(shape, [RECORD_KEY])]
    return pc.unique(pa.concat_arrays(parts))


def filter_of_base(storage: Storage, path: str) -> tuple[str, str] | None:
    """The type and the text of a base file's bloom filter; None if it has none."""
    footer = read_footer(storage, path)
    return (footer.get(TYPE_FOOTER_KEY, SIMPLE), footer[FOOTER_KEY]) if FOOTER_KEY in footer else None


def keys_of_slice(storage: Storage, read: SliceRead, added: frozenset[str], shape: RecordShape) -> tuple[Any, Any]:
    """The distinct keys in the files that a write added to a slice, and the keys among them for which the slice shows rows.

    `read` is the slice as the write leaves it, and `added` has the paths of its files that the write added.
    """
    changed = changed_keys(storage, read, added, shape)
    if not read.log_paths:
        return changed, changed
    shown: list[Any] = [pa.array([], pa.string())]
    for batch in ArrowSliceReader(storage).read(read, shape, [RECORD_KEY]):
        column: Any = batch.column(RECORD_KEY)
        shown.append(column.filter(pc.is_in(column, value_set=changed)))
    return changed, pc.unique(pa.concat_arrays(shown))


def keys_of_rows(storage: Storage, read: SliceRead, shape: RecordShape) -> Any:
    """The distinct keys for which a slice shows rows. `read` is a slice that a write replaces, as it was before."""
    batches = ArrowSliceReader(storage).read(read, shape, [RECORD_KEY])
    return pc.unique(pa.concat_arrays([pa.array([], pa.string()), *(batch.column(RECORD_KEY) for batch in batches)]))

"""The records of a write in the file groups of an index over keys, and the log files that hold them.

1. Tasks answer questions about the files of a write, one question for each slice. The index divides the keys of an answer by
   its file groups.
2. A task for each file group takes its keys of all answers, makes its records, and encodes its log file.

The keys of a small write pass through the driver. The keys of a large one don't: the tasks of step 1 leave them in a
staging directory, by file group, and the tasks of step 2 leave the log files there. The driver gets paths and sizes. Nobody
else reads that directory, and it is removed with the markers of the write.
"""

import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

import pyarrow as pa

from eventide_adapters.format.metadata_table.file_contents import FileContents, Question
from eventide_adapters.format.metadata_table.records.hfile_writer import HFileStyle, encode_hfile
from eventide_adapters.format.metadata_table.records.records import Value, encode_value
from eventide_adapters.format.slice.log_file.delete_block import encode_delete_block
from eventide_core.ports import Capability, Engine, FileChanges, StagedLog, Storage
from eventide_core.table.files.log_block import BlockType, HeaderKey, encode_block
from eventide_core.table.schema.avro_schema import AvroSchema


@dataclass(frozen=True, slots=True)
class LogForm:
    """What all blocks of a write to a file group have in common.

    `partition` is the metadata table's, `instant` the write's. `schema` is the Avro schema of the values, which
    each block states. `style` decides whether HBase's reader, which Hudi 0.x uses, can read the HFILE block.
    """

    partition: str
    instant: str
    schema: AvroSchema
    style: HFileStyle

    def encode(self, entries: Sequence[tuple[bytes, bytes]], removed: Sequence[str]) -> bytes:
        """`entries` are keys and values in the order of the keys."""
        header = {HeaderKey.INSTANT_TIME: self.instant, HeaderKey.SCHEMA: self.schema.text}
        blocks = b""
        if entries:
            blocks += encode_block(BlockType.HFILE_DATA, header, encode_hfile(entries, self.schema, self.style))
        if removed:
            blocks += encode_delete_block(self.instant, self.partition, removed, pa.nulls(len(removed)))
        return blocks


ENCODED_HERE: Final = 50_000  # so many keys are encoded sooner than a job of Spark starts and ends
STAGED_ABOVE_BYTES: Final = 32 * 1024**2  # a file of keys alone has a few million keys in that size
_PART: Final = pa.schema([("key", pa.string())])

Parts: TypeAlias = Sequence[Any]
"""Keys of one answer, as Arrow arrays: an array for each role that a key can have in the index."""


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """What a write does to one file group of an index over keys.

    `living` are pairs of an Arrow array of keys, and the value that all of them get. `removed` are the keys that get a
    delete record, sorted.
    """

    living: tuple[tuple[Any, Value], ...]
    removed: tuple[str, ...]

    def encoded(self, form: LogForm) -> tuple[int, bytes]:
        """The number of records, and the content of a log file. Of two values of a key, the later one counts."""
        values: dict[bytes, bytes] = {}
        for keys, value in self.living:
            values.update(dict.fromkeys(keys.cast(pa.binary()).to_pylist(), encode_value(value, form.schema)))
        return len(values) + len(self.removed), form.encode(sorted(values.items()), self.removed)


class KeyIndexRules(Protocol):
    """The rules of one index. Picklable, and equal for equal writes."""

    def divided(self, answer: Any, file_groups: int) -> Sequence[tuple[Any, Any]]:
        """Keys and, beside them, the numbers of their file groups (NumPy), for each role; of the answer to one question."""
        ...

    def records(self, parts: Sequence[Parts]) -> GroupRecords:
        """The records of a file group, from its keys of each answer, in the order of the questions."""
        ...


@dataclass(frozen=True, slots=True)
class EncodedLog:
    """A log file with `count` records. `content` is its bytes, or the staged file that holds them."""

    count: int
    content: bytes | StagedLog


def encoded_logs(
    contents: FileContents,
    rules: KeyIndexRules,
    questions: Sequence[Question],
    forms: Sequence[LogForm],
    staging: str | None,
) -> Sequence[EncodedLog]:
    """The log file of each file group, in the order of `forms`. Keys and log files are staged if there is a directory.

    A second call with the same arguments encodes nothing.
    """
    name: Hashable = (rules, tuple(questions), tuple(forms), staging)
    if staging is None:
        contents.ask(questions)
        divided = [rules.divided(contents[question], len(forms)) for question in questions]
        count = sum(len(keys) for answer in divided for keys, _ in answer)

        def in_memory() -> list[_Group]:
            chosen = [[_of_group(answer, number) for answer in divided] for number in range(len(forms))]
            return [_Group(form, rules, tuple(parts)) for form, parts in zip(forms, chosen, strict=True)]

        return contents.derive(name, _Group.encoded, in_memory, by_tasks=count > ENCODED_HERE)
    staged = [Question(staged_keys, (question, rules, len(forms), staging)) for question in questions]
    contents.ask(staged)

    def from_files() -> list[_Group]:
        places: list[KeyPlaces] = [contents[question] for question in staged]
        return [
            _Group(form, rules, tuple((place.path, place.parts[number]) for place in places))
            for number, form in enumerate(forms)
        ]

    return contents.derive(name, partial(_staged, contents.storage, staging), from_files, by_tasks=True)


@dataclass(frozen=True, slots=True)
class KeyPlaces:
    """Where the keys of an answer are staged, in the file at `path`.

    `parts` has, for each file group and each role of its keys, the byte range (offset, length) of a record batch with the
    column `key`.
    """

    path: str
    parts: tuple[tuple[tuple[int, int], ...], ...]


def staged_keys(
    storage: Storage, question: Question, rules: KeyIndexRules, file_groups: int, staging: str
) -> KeyPlaces:
    """Puts the keys of an answer into a file of the staging directory.

    `file_groups` is the number of the index's file groups, among which `rules` divide the answer. `staging` is the path of
    the directory. A task that runs again leaves a second file under another name.
    """
    divided = rules.divided(question.answer(storage), file_groups)
    path, offset, parts = f"{staging}/{uuid.uuid4()}", 0, list[tuple[tuple[int, int], ...]]()
    output = storage.open_output(path)
    try:
        for number in range(file_groups):
            ranges: list[tuple[int, int]] = []
            for keys in _of_group(divided, number):
                data = pa.RecordBatch.from_arrays([keys.cast(pa.string())], schema=_PART).serialize()
                output.write(memoryview(data))
                ranges.append((offset, data.size))
                offset += data.size
            parts.append(tuple(ranges))
        output.commit()
    finally:
        output.abort()
    return KeyPlaces(path, tuple(parts))


@dataclass(frozen=True, slots=True)
class _Group:
    """A file group. `parts` are its keys of each answer, or else the path and the byte ranges where they are staged."""

    form: LogForm
    rules: KeyIndexRules
    parts: tuple[Parts, ...]

    def encoded(self) -> EncodedLog:
        return EncodedLog(*self.rules.records(self.parts).encoded(self.form))


def _staged(storage: Storage, staging: str, group: _Group, /) -> EncodedLog:
    """Encodes the log file of a file group from staged keys, and stages it."""

    def keys(path: str, offset: int, length: int) -> Any:
        data = storage.read_range(path, offset, length)
        return pa.ipc.read_record_batch(pa.py_buffer(data), _PART).column(0)

    parts = [[keys(path, *part) for part in ranges] for path, ranges in group.parts]
    count, data = group.rules.records(parts).encoded(group.form)
    staged = StagedLog(f"{staging}/{uuid.uuid4()}", len(data))
    storage.put(staged.path, data)
    return EncodedLog(count, staged)


def place_logs(storage: Storage, engine: Engine | None, logs: Sequence[tuple[StagedLog, str]]) -> None:
    """Gives staged log files their names in the metadata table. Tasks of the engine do it if files have to be copied."""
    placing = partial(_place, storage)
    if engine is not None and logs and Capability.HARDLINK not in storage.capabilities:
        engine.map(placing, logs)
    else:
        for pair in logs:
            placing(pair)


def _place(storage: Storage, pair: tuple[StagedLog, str], /) -> None:
    """Gives a staged log file its name, where it replaces a file that isn't committed."""
    staged, path = pair
    storage.delete(path)
    if Capability.HARDLINK in storage.capabilities:
        is_placed = storage.link_if_absent(staged.path, path, is_symbolic=False)
    else:
        is_placed = storage.copy_if_absent(staged.path, path)
    if not is_placed:  # the answer to a request that was sent twice
        stat = storage.stat(path)
        assert stat is not None and stat.size == staged.size, f"another file has the name {path}"  # noqa: PT018


def bytes_to_read(changes: FileChanges) -> int:
    """The size of the files of a write, and of those that it replaces, whose keys an index has to know."""
    replaced = 0 if changes.written is None else changes.written.replaced_bytes
    return sum(file.size for file in changes.added) + replaced


def _of_group(divided: Sequence[tuple[Any, Any]], number: int) -> list[Any]:
    return [keys.filter(pa.array(numbers == number)) for keys, numbers in divided]

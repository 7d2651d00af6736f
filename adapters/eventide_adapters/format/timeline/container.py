"""Avro object containers of the timeline: one record each, read by the embedded schema.

    container := "Obj" 01  metadata: map of bytes  sync: 16 bytes  block...
    block     := long count  long size  data  sync

The bytes are untrusted, so the cost of reading them is bounded by their size. The container must have exactly one record.
Compressed data are inflated up to a multiple of their size. A schema by which few bytes could mean many values (recursive
types, values that take no bytes) is refused; Hudi has no such schema.
"""

import hashlib
import io
import json
import zlib
from dataclasses import dataclass
from importlib import resources
from typing import Any, BinaryIO

import fastavro
from fastavro.types import Schema

from eventide_adapters.format.encoding.avro.reading_limits import inflated_bytes_max
from eventide_adapters.format.timeline.document import Document, corrupt
from eventide_core.errors import ResourceLimitError, UnsupportedTableError
from eventide_core.ports import WHOLE_FILE_BYTES_MAX
from eventide_core.table.schema.avro_schema import AvroSchema

MAGIC = b"Obj\x01"
TIMELINE_FILE_BYTES_MAX = WHOLE_FILE_BYTES_MAX
_SCHEMA_DEPTH_MAX = 32  # Hudi's schemas nest 7 deep
SCHEMA_REMEMBERED_MAX = 64 * 1024  # Hudi's take 3 to 12 kilobytes, and are the same in every file of a timeline
_SYNC_LENGTH = 16
_METADATA_SCHEMA: Schema = {"type": "map", "values": "bytes"}
_NO_CONTAINER = "is not a whole Avro container"
_COMPLEX = ("array", "map", "record", "fixed", "enum")


def check_size(size: int, path: str) -> None:
    """Raises ResourceLimitError if a timeline file is larger than eventide reads."""
    if size > TIMELINE_FILE_BYTES_MAX:
        raise ResourceLimitError(
            f"timeline file {path} has more than {TIMELINE_FILE_BYTES_MAX} bytes, "
            "the most that eventide reads; write in smaller commits"
        )


@dataclass(frozen=True, slots=True)
class Record:
    """The one record of a container, not decoded yet.

    `content` is its bytes in Avro's binary encoding, inflated. `schema` is the schema in the container's header, with which
    they were written.
    """

    content: bytes
    schema: AvroSchema


def read_container(data: bytes, path: str) -> Document:
    """The one record of a container. Raises CorruptTimelineError; ResourceLimitError above the cap."""
    if not data:
        raise corrupt(path, "is empty, though its instant has completed")
    record = unwrapped(data, path)
    return read_record(record.content, checked_schema(record.schema), path)


def unwrapped(data: bytes, path: str) -> Record:
    """The one record of a container, not decoded yet. Raises as `read_container`."""
    check_size(len(data), path)
    stream = io.BytesIO(data[len(MAGIC) :])
    try:
        header = _read(stream, _METADATA_SCHEMA)
        text, codec = header["avro.schema"], header.get("avro.codec", b"null")
        schema = (AvroSchema.of if len(text) <= SCHEMA_REMEMBERED_MAX else AvroSchema)(text.decode())
        checked_schema(schema)
        sync = stream.read(_SYNC_LENGTH)
        count, size = _read(stream, "long"), _read(stream, "long")
        if count != 1 or size < 0:
            raise ValueError(f"a first block of {count} records in {size} bytes instead of one record")
        block = stream.read(size)
        if len(block) != size or len(sync) != _SYNC_LENGTH or stream.read() != sync:
            raise ValueError("its block does not end where it states")
        return Record(_inflate(block, codec, path), schema)
    except (UnsupportedTableError, ResourceLimitError):
        raise
    except Exception as error:  # torn bytes can make the decoder raise any exception
        raise corrupt(path, f"{_NO_CONTAINER} ({type(error).__name__}: {error})") from error


def read_record(content: bytes, schema: Schema, path: str) -> Document:
    """The values of a container's record. Raises CorruptTimelineError."""
    return _document(content, schema, path, _NO_CONTAINER)


def read_datum(schema: "ContainerSchema", data: bytes, path: str) -> Document:
    """A bare record, without its schema. Raises CorruptTimelineError; ResourceLimitError above the cap."""
    check_size(len(data), path)
    return _document(data, schema.schema, path, "is neither JSON nor a record of Avro")


def _document(content: bytes, schema: Schema, path: str, problem: str) -> Document:
    stream = io.BytesIO(content)
    try:
        values = _read(stream, schema)
        if stream.read(1):
            raise ValueError("bytes after its record")
    except Exception as error:  # torn bytes can make the decoder raise any exception
        raise corrupt(path, f"{problem} ({type(error).__name__}: {error})") from error
    return Document.of(values, path, "a record")


def schema_definition(name: str) -> dict[str, Any]:
    """A schema of Hudi, by the name of its file without `.avsc`."""
    file = resources.files("eventide_adapters.format") / "schemas" / f"{name}.avsc"
    definition: dict[str, Any] = json.loads(file.read_bytes())
    return definition


@dataclass(frozen=True, slots=True)
class ContainerSchema:
    """The schema of containers that eventide writes, as fastavro parsed it, and the bytes that all of them have in common.

    `header` is all before the first block. `mark` is the sync marker at the end of the header and of the block: a hash of
    the schema.
    """

    schema: Schema
    header: bytes
    mark: bytes

    @classmethod
    def named(cls, name: str) -> "ContainerSchema":
        return cls.of(schema_definition(name))

    @classmethod
    def of(cls, definition: dict[str, Any]) -> "ContainerSchema":
        schema = fastavro.parse_schema(definition)
        # Avro uses a random marker. Here there is one block, and a repeated write produces the same bytes.
        mark = hashlib.md5(repr(schema).encode(), usedforsecurity=False).digest()
        stream = io.BytesIO()
        fastavro.writer(stream, schema, [], sync_marker=mark)
        return cls(schema, stream.getvalue(), mark)


def write_container(schema: ContainerSchema, record: dict[str, Any]) -> bytes:
    """The container of one record, uncompressed as Hudi writes it. The same record produces the same bytes."""
    content, stream = io.BytesIO(), io.BytesIO()
    fastavro.schemaless_writer(content, schema.schema, record)
    stream.write(schema.header)
    for number in (1, content.tell()):
        fastavro.schemaless_writer(stream, "long", number)
    stream.write(content.getbuffer())
    stream.write(schema.mark)
    return stream.getvalue()


def _read(stream: BinaryIO, schema: Schema) -> Any:
    return fastavro.schemaless_reader(stream, schema, None)


def _inflate(block: bytes, codec: bytes, path: str) -> bytes:
    match codec:
        case b"null":
            return block
        case b"deflate":
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            limit = min(TIMELINE_FILE_BYTES_MAX, inflated_bytes_max(len(block)))
            content = inflater.decompress(block, limit + 1)
            if len(content) > limit:
                raise ResourceLimitError(
                    f"timeline file {path} inflates from {len(block)} bytes to more than {limit}, the most that "
                    "eventide reads; restore it from a copy, or roll its instant back with the engine that wrote it"
                )
            if not inflater.eof:
                raise ValueError("its compressed block is truncated")
            return content
        case _:
            name = codec.decode(errors="replace")
            raise UnsupportedTableError(f"timeline file {path}: Avro codec {name!r}; eventide reads null and deflate")


def checked_schema(schema: AvroSchema) -> Schema:
    """The schema to read records with. Raises ValueError, or what fastavro raises, for one that Hudi never writes."""
    return schema.derived(_checked_schema)


def _checked_schema(schema: AvroSchema) -> Schema:
    return checked(schema.parsed)


def checked(value: Any) -> Schema:
    """`checked_schema` of a JSON value."""
    _width_min(value, {}, 0)
    return fastavro.parse_schema(value)


def _width_min(schema: Any, named: dict[str, int | None], depth: int) -> int:
    """The fewest bytes that a value takes: at least one. Otherwise, n types that use others twice would mean 2**n values.

    `named` contains the widths of the named types by short name, None while a type is being defined: a reference to such a
    type is recursion. Raises ValueError for a schema that Hudi never has.
    """
    if depth > _SCHEMA_DEPTH_MAX:
        raise ValueError("its schema is nested too deeply")
    width: int | None
    match schema:
        case list():
            for branch in schema:
                if branch != "null":
                    _width_min(branch, named, depth + 1)
            return 1
        case {"type": "array", "items": inner} | {"type": "map", "values": inner}:
            _width_min(inner, named, depth + 1)
            return 1
        case {"type": "record", "name": str(name), "fields": [_, *_] as fields}:
            _define(named, name, None)
            width = sum(_width_min(field["type"], named, depth + 1) for field in fields)
            named[_short(name)] = width
            return width
        case {"type": "fixed", "name": str(name), "size": int(size)} if size > 0:
            return _define(named, name, size)
        case {"type": "enum", "name": str(name)}:
            return _define(named, name, 1)
        case {"type": inner} if not isinstance(inner, str) or inner not in _COMPLEX:
            return _width_min(inner, named, depth + 1)
        case "boolean" | "int" | "long" | "float" | "double" | "string" | "bytes":
            return 1
        case str() if (width := named.get(_short(schema))) is not None:
            return width
        case _:
            raise ValueError(f"its schema has {str(schema)[:80]!r}, which Hudi never writes")


def _define(named: dict[str, int | None], name: str, width: int | None) -> int:
    # One short name in two namespaces would make it unclear which one a reference means.
    if _short(name) in named:
        raise ValueError(f"its schema defines {name[:80]!r} twice")
    named[_short(name)] = width
    return width or 0


def _short(name: str) -> str:
    return name.rpartition(".")[2]

"""Reads JSON lines, one object per line, in chunks of whole lines.

Texts stay texts, also those that look like times: Arrow alone would take `2026-03-01T10:00:00Z` for a time without a zone.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from eventide.sources.source import Dialect, Source
from eventide.sources.streams import readable, text_of
from eventide.sources.text_columns import is_bytes
from eventide_adapters.format.encoding.columns.exact_cast import keeps_digits, lenient_type
from eventide_core.errors import InvalidRecordError

_CHUNK_BYTES: Final = 8 << 20
_LONG: Final = {
    64: rb"-?\d[\d.]{15,}(?:[eE][-+]?\d+)?|-?\d[\d.]*[eE][-+]?\d{3,}",
    32: rb"-?\d[\d.]{7,}(?:[eE][-+]?\d+)?|-?\d[\d.]*[eE][-+]?\d+",
}
_LONG_NUMBER: Final = {bits: re.compile(rb"(?:^|[\[,])\s*(%b)\s*(?=[,\]}])" % long) for bits, long in _LONG.items()}
"""Numbers of which a float of so many bits may lose digits."""
_NOT_FINITE: Final = rb'"(?:NaN|-?Infinity)"'
_CHANGED: Final = re.compile(r"Column\((?P<path>[^)]*)\) changed from (?P<old>\w+) to (?P<new>\w+) in row (?P<row>\d+)")
_CURES: Final = {
    "specified twice": "remove one",
    "Number too big": "correct it, or write it in quotes",
    "surrogate": "correct the text",
}
_ROW: Final = re.compile(r" in row (\d+)$")


def json_tables(source: Source, types: Callable[[str], Any], dialect: Dialect) -> Iterator[pa.Table]:
    """The rows, with the columns that they have.

    A column that `types` declares has that type, with texts instead of times and bytes.

    Raises InvalidRecordError, which names the row, for what isn't an object, and for a value of another type.
    """
    first_row = 0
    known: list[str] = []
    for chunk in _chunks(source, dialect.encoding):
        rows = _parsed(chunk, types, source.name, first_row)
        if dialect.needs_every_key and rows.num_columns:
            known = known or rows.column_names
            _refuse_lacking_keys(chunk, rows, known, f"source {source.name!r}, row", first_row)
        first_row += len(rows)
        if rows.num_columns:
            yield rows


def declared_type(kind: Any, declared: Any, *, reads_texts: bool) -> Any:
    """The declared type for a column that was read: of a struct, only the fields that were found.

    `declared` is None if nothing declares it. Without `reads_texts`, times and bytes are texts: Arrow's JSON reader does
    not read them, or not with their zone.
    """
    if declared is None:
        return kind if reads_texts else _as_texts(kind)
    if pa.types.is_struct(kind) and pa.types.is_struct(declared):
        fields: list[Any] = []
        for field in kind:
            place = declared.get_field_index(field.name)
            known = declared.field(place).type if place >= 0 else None
            fields.append(field.with_type(declared_type(field.type, known, reads_texts=reads_texts)))
        return pa.struct(fields)
    if pa.types.is_list(kind) and pa.types.is_list(declared):
        item = declared_type(kind.value_type, declared.value_type, reads_texts=reads_texts)
        return pa.list_(kind.value_field.with_type(item))
    if pa.types.is_temporal(declared) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return kind  # an epoch, whose unit has to be stated
    return declared if reads_texts else _as_texts(declared)


def _as_texts(kind: Any) -> Any:
    if pa.types.is_temporal(kind) or is_bytes(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_texts(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_as_texts(kind.value_type)))
    return kind


def _chunks(source: Source, encoding: str | None) -> Iterator[bytes]:
    """The text, divided at the ends of lines."""
    rest = b""
    with text_of(source, encoding) as text, readable(source.name):
        while data := text.read(_CHUNK_BYTES):
            head, newline, tail = data.rpartition(b"\n")
            if newline:
                yield rest + head
                rest = tail
            else:
                rest += data
        if rest:
            yield rest


def _parsed(chunk: bytes, types: Callable[[str], Any], place: str, first_row: int) -> pa.Table:
    try:
        chunk.decode()
    except UnicodeDecodeError as error:
        row = first_row + chunk.count(b"\n", 0, error.start) + 1
        raise InvalidRecordError(
            f"source {place!r}, row {row}: its bytes are not UTF-8: name the encoding that it was written in, such as "
            "--encoding latin-1"
        ) from None
    if not chunk.strip():
        return pa.table({})
    is_declared = False
    try:
        rows = _read(chunk, None)
        wanted: list[Any] = [
            column.with_type(declared_type(column.type, types(column.name), reads_texts=False))
            for column in rows.schema
        ]
        schema, is_declared = pa.schema(wanted), True
        rows = rows if schema == rows.schema else _read(chunk, schema)
        for name in rows.column_names if _LONG_NUMBER[32].search(chunk.replace(b":", b",")) else ():
            _refuse_rounded(rows.column(name), name, chunk, place, first_row)
        return rows
    except pa.ArrowNotImplementedError as error:
        raise InvalidRecordError(f"source {place!r}: {error}: use Parquet for such a column") from None
    except pa.ArrowException as error:
        spelled = _with_numbers(chunk, str(error))
        if spelled != chunk:
            return _parsed(spelled, types, place, first_row)
        raise InvalidRecordError(_what(str(error), place, first_row, is_declared=is_declared)) from None


def _refuse_lacking_keys(chunk: bytes, rows: pa.Table, known: Sequence[str], row: str, first_row: int) -> None:
    """Raises InvalidRecordError, which names the row, for an object without a key that another one of the source has."""
    cure = (
        "it would become null there: write null if it is meant, or load rows of other columns from a file of their own"
    )
    new = next((name for name in rows.column_names if name not in known), None)
    if new is not None:
        raise InvalidRecordError(f"{row} {first_row} lacks the column {new!r}, which a later row has, so {cure}")
    doubtful = [name for name in known if name not in rows.column_names or rows.column(name).null_count]
    for number, keys in enumerate(_objects(chunk.decode()) if doubtful else (), start=first_row + 1):
        lacking = next((name for name in doubtful if name not in keys), None)
        if lacking is not None:
            raise InvalidRecordError(f"{row} {number} lacks the column {lacking!r}, which another row has, so {cure}")


def _objects(text: str) -> Iterator[dict[str, Any]]:
    decoder, rest = json.JSONDecoder(parse_int=str, parse_float=str), re.compile(r"\s*(?=\S)")
    end = 0
    while begin := rest.match(text, end):
        found, end = decoder.raw_decode(text, begin.end())
        yield found


def _with_numbers(chunk: bytes, error: str) -> bytes:
    """The text with the words for NaN and infinity as numbers, in the column that has numbers beside texts."""
    changed = _CHANGED.search(error)
    name = "" if changed is None else next((part for part in changed["path"].split("/")[::-1] if part != "[]"), "")
    if changed is None or {changed["old"], changed["new"]} != {"number", "string"}:
        return chunk
    value = rb'("%b"\s*:\s*)(%b|\[(?:[^"{}]|%b)*\])' % (re.escape(name.encode()), _NOT_FINITE, _NOT_FINITE)
    return re.sub(
        value, lambda found: found[1] + re.sub(_NOT_FINITE, lambda word: word[0].strip(b'"'), found[2]), chunk
    )


def _refuse_rounded(column: Any, name: str, chunk: bytes, place: str, first_row: int) -> None:
    """Raises InvalidRecordError for a number of which a column of doubles or floats lost digits."""
    if pa.types.is_struct(column.type):
        for field, inner in zip(column.type, column.flatten(), strict=True):
            _refuse_rounded(inner, field.name, chunk, place, first_row)
    elif pa.types.is_list(column.type):
        _refuse_rounded(pc.list_flatten(column), name, chunk, place, first_row)
    elif pa.types.is_floating(column.type):
        bits = max(column.type.bit_width, 32)
        values = rb'"%b"\s*:\s*(\[[^"{}]*|(?:%b)\s*[,}])' % (re.escape(name.encode()), _LONG[bits])
        for value in re.finditer(values, chunk):
            numbers = (one[1] for one in _LONG_NUMBER[bits].finditer(value[1]))
            number = next((one for one in numbers if _is_rounded_in(column, one)), None)
            if number is not None:
                row = first_row + chunk.count(b"\n", 0, value.start()) + 1
                raise InvalidRecordError(
                    f"source {place!r}, row {row}: column {name!r}: {number.decode()} has more digits than a {column.type} "
                    "holds: write the column in quotes, or state a decimal with --schema"
                )


def _is_rounded_in(column: Any, digits: bytes) -> bool:
    """Whether the column has the number as another one. A nested field of the same name may hold it exactly."""
    number: Any = pa.scalar(float(digits), column.type)
    return not keeps_digits(digits.decode(), number.as_py()) and pc.index(column, number).as_py() >= 0


def _read(chunk: bytes, schema: pa.Schema | None) -> pa.Table:
    # Arrow refuses a null object whose fields are never null. What a field holds is checked once the rows are there.
    lenient = None if schema is None else pa.schema([pa.field(own.name, lenient_type(own.type)) for own in schema])
    parse = pyarrow.json.ParseOptions(explicit_schema=lenient, unexpected_field_behavior="infer")
    # In one block, so that an error's row is counted from the start.
    read = pyarrow.json.ReadOptions(use_threads=False, block_size=len(chunk) + 1)
    stream: Any = pa.BufferReader(chunk)  # Arrow's own thread must not hold a stream of Python at the end of a process
    return pyarrow.json.read_json(stream, read_options=read, parse_options=parse)


def _what(error: str, place: str, first_row: int, *, is_declared: bool) -> str:
    text = error.removeprefix("JSON parse error: ")
    changed = _CHANGED.search(text)
    if changed is not None:
        where = f"source {place!r}, row {first_row + int(changed['row']) + 1}"
        if not changed["path"]:
            return f"{where}: {changed['new']} instead of an object: write one object per line, as `jq -c '.[]'` does"
        name = changed["path"].strip("/").replace("/", ".")
        if is_declared:
            cure = "write it in quotes" if changed["old"] == "string" else f"write it as {changed['old']}"
            return (
                f"{where}: column {name!r} is {changed['new']}, and {changed['old']} in the table, or as --schema states: "
                f"{cure}"
            )
        return (
            f"{where}: column {name!r} is {changed['new']} instead of {changed['old']}: write all of its values alike"
        )
    row = _ROW.search(text)
    if row is None:
        return f"source {place!r}: {text}; correct the value"
    where = f"source {place!r}, row {first_row + int(row[1]) + 1}"
    cure = next(
        (cure for symptom, cure in _CURES.items() if symptom in text), "write one object per line, as `jq -c .` does"
    )
    return f"{where}: {text[: row.start()].rstrip('.')}: {cure}"

"""Record keys and partition paths of whole columns, as Hudi's key generators make them (`table.key_format`)."""

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from eventide_adapters.format.encoding.columns.arrow_numpy import ArrowColumn
from eventide_adapters.format.encoding.columns.field_path import column_at
from eventide_core.errors import InvalidRecordError, UnsupportedTableError
from eventide_core.table.files.table_path import why_no_partition
from eventide_core.table.settings.key_format import NULL_PARTITION, KeyFormat, PartitionTime, Slashes, TimeKind

_ESCAPED: Final = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_PATTERN: Final = re.compile(
    r"'(?P<literal>[^']*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>[^A-Za-z']+)"
)
_DIRECTIVES: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "DDD": "%j"}


def record_keys(columns: pa.Table, keys: KeyFormat) -> tuple[ArrowColumn, tuple[ArrowColumn, ...]]:
    """Each record's key, and the texts of its key fields.

    Raises InvalidRecordError with the row and column of a null or an empty text.
    """
    parts = tuple(_key_texts(column_at(columns, name).combine_chunks(), name) for name in keys.key_fields)
    if not keys.names_key_fields:
        return parts[0], parts
    named: list[Any] = []
    for name, part in zip(keys.key_fields, parts, strict=True):
        named += [f"{',' if named else ''}{name}:", part]
    return pc.binary_join_element_wise(*named, ""), parts


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NAME_BYTES_MAX = 255
"""The limit for one name on every common file system and on HDFS. Checked early: in the storage, it would fail mid-write."""


def partition_paths(columns: pa.Table, keys: KeyFormat) -> ArrowColumn:
    """Each record's partition path. Raises InvalidRecordError for a value that cannot be a path inside the table."""
    if not keys.partition_fields:
        return pa.repeat("", len(columns))
    parts: list[Any] = []
    for name in keys.partition_fields:
        column = column_at(columns, name).combine_chunks()
        if keys.partition_time is not None and name in keys.time_fields:
            column = _times(column, keys.partition_time, name)
        texts = _texts(column, name).dictionary_encode()
        directories = [_directory_of(number, texts, name, keys) for number in range(len(texts.dictionary))]
        # A null's index is one after the dictionary's last.
        lookup = pa.array([*directories, _directory(None, name, keys)], pa.string())
        parts.append(lookup.take(pc.fill_null(texts.indices, len(directories))))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, "/")


def _directory_of(number: int, texts: Any, name: str, keys: KeyFormat) -> str:
    """The directory of a value of the dictionary. Raises InvalidRecordError with the first row that has the value."""
    try:
        return _directory(texts.dictionary[number].as_py(), name, keys)
    except InvalidRecordError as error:
        row = pc.index(texts.indices, pa.scalar(number, texts.indices.type)).as_py()
        raise InvalidRecordError(f"row {row}: {error}") from None


def _directory(value: str | None, name: str, keys: KeyFormat) -> str:
    text = value or NULL_PARTITION
    if keys.is_url_encoded:
        text = _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
    if keys.slashes is not None and keys.slashes.directories == 3 and _DAY.fullmatch(text):
        text = text.replace("-", "/")  # the extractor of days takes a day back from no other directories
    directory = f"{name}={text}" if keys.is_hive_style else text
    if keys.slashes is not None and name not in keys.time_fields and value:
        _require_slashes(directory, name, keys.slashes)
    # A scheme is only possible at the beginning of a path. A value that leads to a parent directory is refused after `name=`
    # too.
    path = directory if name == keys.partition_fields[0] else f"_/{directory}"
    if _CONTROL.search(text) or why_no_partition(path) is not None or why_no_partition(f"_/{text}") is not None:
        raise InvalidRecordError(
            f"partition field {name!r} has the value {value!r}, which cannot be a directory of the table; correct the value"
        )
    if max(len(part.encode()) for part in directory.split("/")) > _NAME_BYTES_MAX:
        raise InvalidRecordError(
            f"partition field {name!r} has a value of {len(text)} characters, {text[:40]!r}...: the name of "
            f"its directory would be longer than the {_NAME_BYTES_MAX} bytes that file systems allow; "
            "shorten the value"
        )
    return directory


def _require_slashes(directory: str, name: str, slashes: Slashes) -> None:
    """Hudi may have made a different path for the same value. To guess would write the key in two partitions."""
    if slashes.directories is None or directory.count("/") + 1 != slashes.directories:
        raise UnsupportedTableError(
            f"partition field {name!r}: the directory would be {directory!r}, and the table's partitions may have a "
            f"different form by {slashes.setting}, which eventide can't make of this value; write to the table with Hudi"
        )


def _key_texts(column: ArrowColumn, name: str) -> ArrowColumn:
    texts = _texts(column, name)
    checks: list[tuple[str, Any]] = [("null", texts.is_null()), ("empty", pc.equal(texts, pa.scalar("")))]
    for problem, is_bad in checks:
        row: int = pc.index(is_bad, pa.scalar(value=True)).as_py()
        if row >= 0:
            raise InvalidRecordError(f"row {row}: record key field {name!r} is {problem}; every record needs a key")
    return texts


def _texts(column: ArrowColumn, name: str) -> ArrowColumn:
    kind = column.type
    types = pa.types
    if types.is_string(kind):
        return column
    if types.is_large_string(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind):
        return column.cast(pa.string())
    raise UnsupportedTableError(
        f"field {name!r} of type {kind} in a key or partition path: supported are texts, whole numbers, "
        "booleans and dates"
    )


def _times(column: ArrowColumn, time: PartitionTime, name: str) -> ArrowColumn:
    """The partition paths of a time-based key generator."""
    kind = column.type
    if not (pa.types.is_timestamp(kind) or pa.types.is_date32(kind)):
        column = _PARSERS[time.kind](column, time, name)
    moments = pc.floor_temporal(column.cast(pa.timestamp("us")), unit="second").cast(pa.timestamp("s"))
    try:
        zoned = pc.assume_timezone(moments, "UTC").cast(pa.timestamp("s", time.zone))
        return pc.strftime(zoned, _directives(time.output_format))
    except pa.ArrowInvalid as error:
        raise UnsupportedTableError(f"partition times in the zone {time.zone!r}: {error}") from error


def _numbers(unit: pa.DataType) -> Callable[[ArrowColumn, PartitionTime, str], ArrowColumn]:
    def parse(column: ArrowColumn, time: PartitionTime, name: str) -> ArrowColumn:  # noqa: ARG001
        try:
            return column.cast(pa.int64()).cast(unit)
        except pa.ArrowException as error:
            raise InvalidRecordError(f"partition field {name!r} is not the number of a time: {error}") from error

    return parse


def _dates(column: ArrowColumn, time: PartitionTime, name: str) -> ArrowColumn:
    if time.input_format is None or not pa.types.is_string(column.type):
        raise UnsupportedTableError(f"partition field {name!r}: texts of times need one input format")
    try:
        return pc.strptime(column, format=_directives(time.input_format), unit="us")
    except pa.ArrowException as error:
        raise InvalidRecordError(
            f"partition field {name!r} does not have the form {time.input_format}: {error}"
        ) from error


_PARSERS: Final = {
    TimeKind.SECONDS: _numbers(pa.timestamp("s")),
    TimeKind.MILLISECONDS: _numbers(pa.timestamp("ms")),
    TimeKind.MICROSECONDS: _numbers(pa.timestamp("us")),
    TimeKind.TEXT: _dates,
}


def _directives(pattern: str) -> str:
    """A Java time pattern as a C pattern."""
    out: list[str] = []
    for part in _PATTERN.finditer(pattern):
        letters = part["letters"]
        if letters is not None and letters not in _DIRECTIVES:
            raise UnsupportedTableError(
                f"time format {pattern!r}: {letters!r} is not one of {', '.join(_DIRECTIVES)}; write with Hudi"
            )
        out.append(_DIRECTIVES[letters] if letters else (part["literal"] or part["other"] or "").replace("%", "%%"))
    return "".join(out)

"""A table's settings as Hudi stores them: Java's `Properties.store`, with a checksum of the table's name.

Hudi changes them in place: it copies `hoodie.properties` to `hoodie.properties.backup`, deletes the first, writes it
again, and then deletes the second. So a reader uses the first of the two that exists and is complete.
"""

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from eventide_core.cure import Cure
from eventide_core.errors import MissingFileError, NotAHudiTableError, ResourceLimitError
from eventide_core.table.property_keys import DATABASE_NAME, TABLE_CHECKSUM, TABLE_NAME, TIMELINE_TIMEZONE

PROPERTIES_PATH = ".hoodie/hoodie.properties"
BACKUP_PATH = f"{PROPERTIES_PATH}.backup"
PROPERTIES_BYTES_MAX: Final = 8 * 1024 * 1024 - 1
"""A schema of ten thousand columns takes less than a megabyte. With one byte more, it is the largest range that remote
storages read by one request.
"""

_SIGNS: Final = (
    (".hoodie_partition_metadata", "it is a partition of one; pass the directory above, which has .hoodie"),
    ("hoodie.properties", "it is the .hoodie of one; pass the directory above"),
    ("_delta_log/_last_checkpoint", "it is a Delta Lake table"),
    ("_delta_log/00000000000000000000.json", "it is a Delta Lake table"),
    ("metadata/version-hint.text", "it is an Iceberg table"),
)
"""Files that show what a directory without settings is."""

ReadFileRange = Callable[[str, int, int], bytes]
"""As Storage.read_range: path, offset, length. Raises MissingFileError."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_KEY_AND_VALUE = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_KEY_ESCAPES = {"\t": "\\t", "\f": "\\f", "\r": "\\r"}
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def settings_text(read_range: ReadFileRange, root: str) -> str:
    """The text of the current settings; `root` names the table in errors.

    Raises NotAHudiTableError if there are no complete settings, and ResourceLimitError if the file is far too large.
    """
    text = known_settings(read_range, root)
    if text is not None:
        return text
    for path, kind in _SIGNS:
        if _exists(read_range, path):
            raise NotAHudiTableError(f"{root} is not a Hudi table: {kind}")
    raise NotAHudiTableError(
        f"{root} is not a Hudi table: it has no {PROPERTIES_PATH}; check the path; if the file of a table is lost, "
        f"{Cure.recover_settings(root)} makes it again"
    )


def known_settings(read_range: ReadFileRange, root: str) -> str | None:
    """The text of the current settings; None if there are none, as before the first commit of a new table.

    Raises NotAHudiTableError if they are not complete, and ResourceLimitError.
    """
    wrong = ""
    # A change that ends between the first two reads removes the backup and leaves the file.
    for path in (PROPERTIES_PATH, BACKUP_PATH, PROPERTIES_PATH):
        try:
            data = properties_bytes(read_range, path)
        except MissingFileError:
            continue
        problem = settings_problem(data)
        if problem is None:
            return data.decode()
        wrong = wrong or f"{path} {problem}"
    if wrong:
        raise NotAHudiTableError(
            f"{root}: {wrong}; restore the whole file, or let {Cure.recover_settings(root)} make it again"
        )
    return None


def settings_problem(data: bytes) -> str | None:
    """Why a properties file can't be used; None if it is complete."""
    try:
        properties = _parsed(data.decode())
    except UnicodeDecodeError:
        return "is not a text file"
    if properties.get(TABLE_CHECKSUM) == table_checksum(properties):
        return None
    checksum = (
        f"{TABLE_CHECKSUM}={properties[TABLE_CHECKSUM]}" if TABLE_CHECKSUM in properties else f"no {TABLE_CHECKSUM}"
    )
    return (
        f"contains {checksum}, but the names of database and table result in {table_checksum(properties)}: its writer "
        "stopped halfway, or someone changed it; Hudi doesn't load such a table either"
    )


def _exists(read_range: ReadFileRange, path: str) -> bool:
    try:
        read_range(path, 0, 1)
    except MissingFileError:
        return False
    return True


def properties_bytes(read_range: ReadFileRange, path: str) -> bytes:
    """A properties file, of which no more than PROPERTIES_BYTES_MAX is read. Raises ResourceLimitError if it has more."""
    data = read_range(path, 0, PROPERTIES_BYTES_MAX + 1)
    if len(data) > PROPERTIES_BYTES_MAX:
        raise ResourceLimitError(
            f"{path} has more than {PROPERTIES_BYTES_MAX} bytes, which no settings of Hudi's have; restore it from a copy"
        )
    return data


def table_checksum(properties: Mapping[str, str]) -> str:
    """Hudi's checksum, which it verifies at every load: the CRC-32 of "<database>.<table>"."""
    name = f"{properties.get(DATABASE_NAME, '')}.{properties.get(TABLE_NAME, '')}"
    return str(zlib.crc32(name.encode()))


def names(properties: Mapping[str, str], key: str) -> tuple[str, ...]:
    """The comma-separated names of a setting; none if it isn't set."""
    return tuple(part.strip() for part in properties.get(key, "").split(",") if part.strip())


def has_utc_instants(properties: Mapping[str, str]) -> bool:
    """Whether instants are UTC; otherwise, they are in the local time zone of whoever writes, Hudi's default."""
    return properties.get(TIMELINE_TIMEZONE, "LOCAL").upper() == "UTC"


def parse_properties(text: str) -> dict[str, str]:
    """The text as a dictionary, without comments and with escapes resolved, as Java's `Properties.load` reads it."""
    return dict(_parsed(text))


def stored_properties(properties: Mapping[str, str]) -> str:
    """The text that `parse_properties` reads."""
    return "".join(f"{_escaped_key(key)}={_escaped(value)}\n" for key, value in properties.items())


def with_settings(text: str, values: Mapping[str, str | None]) -> str:
    """The text with these values of settings; a key with None is removed. Everything else stays as it is."""
    lines = _logical_lines(text)
    kept = "".join(raw for raw, line in lines if line is None or _key_and_value(line)[0] not in values)
    end = "" if not kept or kept[-1] in "\r\n" else "\n"
    return kept + end + stored_properties({key: value for key, value in sorted(values.items()) if value is not None})


@lru_cache(maxsize=16)  # a use case reads the same settings repeatedly
def _parsed(text: str) -> Mapping[str, str]:
    return dict(_key_and_value(line) for _, line in _logical_lines(text) if line is not None)


def _logical_lines(text: str) -> Iterator[tuple[str, str | None]]:
    """The lines as they are, and what they say, as Java's Properties takes them: None for a comment or an empty line.

    A line that ends in a backslash goes on in the next one.
    """
    lines = iter(_LINE.findall(text))
    for raw in lines:
        line = _without_ends(raw)
        if line[:1] in ("", "#", "!"):
            yield raw, None
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            more = next(lines, "")
            raw, line = raw + more, line[:-1] + _without_ends(more)
        yield raw, line


def _key_and_value(line: str) -> tuple[str, str]:
    parts = _KEY_AND_VALUE.fullmatch(line)
    assert parts is not None, f"a line is a key and an optional value: {line!r}"
    key, value = parts.groups()
    return _unescaped(key), _unescaped(value).rstrip()


def _without_ends(raw: str) -> str:
    return raw.lstrip(" \t\f").rstrip("\r\n")


def _escaped(text: str) -> str:
    """A value in the form of Java's Properties: characters outside Latin-1 are UTF-16 escapes."""
    units = text.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-16-be")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x7F else f"\\u{code:04x}" for code in codes)


def _escaped_key(text: str) -> str:
    """A key: what would end it, or make the line a comment, is escaped, too."""
    return re.sub(r"[ \t\f\r=:#!]", lambda found: _KEY_ESCAPES.get(found[0], f"\\{found[0]}"), _escaped(text))


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    # Java writes characters outside Latin-1 in UTF-16, so a character may take two escapes.
    halves = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1]) or _character(match[1]), text)
    return halves.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if len(escape) > 1 else escape

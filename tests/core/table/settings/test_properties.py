"""hoodie.properties: read as Java stored it, from the file that is whole, as Hudi reads it while another changes it."""

import zlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.errors import MissingFileError, NotAHudiTableError, ResourceLimitError
from eventide_core.table.settings.properties import (
    BACKUP_PATH,
    PROPERTIES_BYTES_MAX,
    PROPERTIES_PATH,
    ReadFileRange,
    parse_properties,
    settings_text,
    with_settings,
)
from support.files.java_properties import properties_text

WHOLE = properties_text({"hoodie.table.name": "trips", "hoodie.table.checksum": str(zlib.crc32(b".trips"))})
OTHER = properties_text(
    {
        "hoodie.table.name": "trips",
        "hoodie.database.name": "lake",
        "hoodie.table.checksum": str(zlib.crc32(b"lake.trips")),
    }
)
TORN = WHOLE.partition("hoodie.table.checksum")[0]
WRONG = WHOLE.replace("=trips", "=tripz")

# Blanks at the ends are nobody's in a table's settings, and are dropped.
trimmed = st.text(min_size=1).map(str.strip)


@given(st.dictionaries(trimmed.filter(bool), trimmed))
def test_what_java_stored_reads_back(properties: dict[str, str]) -> None:
    assert parse_properties(properties_text(properties)) == properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key : value\nother:v", {"key": "value", "other": "v"}),
        ("key value\n\tother\tv", {"key": "value", "other": "v"}),
        ("key = a,\\\n    b\r\nother=1", {"key": "a,b", "other": "1"}),
        ("key=a\\\\\nother=1", {"key": "a\\", "other": "1"}),
        ("a\\:b\\ c=d:e=f", {"a:b c": "d:e=f"}),
        ("# c = d \\\nkey\n!x=y\n\nlast=\\", {"key": "", "last": ""}),
    ],
)
def test_settings_in_every_form_of_java_are_read(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_setting_is_replaced_in_whatever_form_it_stands() -> None:
    text = "# head\na : 1\nb = 2,\\\n  3\nc=4"
    assert with_settings(text, {"a": None, "b": "x=\u20ac"}) == "# head\nc=4\nb=x=\\u20ac\n"
    assert with_settings("", {"a": "1"}) == "a=1\n"


@given(st.text())
def test_no_text_is_too_odd_for_a_properties_file(text: str) -> None:
    assert isinstance(parse_properties(text), dict)


def reader(*looks: Mapping[str, str]) -> ReadFileRange:
    """Gives the files as each look in turn finds them."""
    answers = iter(looks)

    def read_range(path: str, offset: int, length: int) -> bytes:
        files = next(answers, looks[-1])
        if path not in files:
            raise MissingFileError(path)
        return files[path].encode("latin-1")[offset : offset + length]

    return read_range


@pytest.mark.parametrize("text", [WHOLE, OTHER])
def test_settings_with_their_checksum_hold(text: str) -> None:
    assert settings_text(reader({PROPERTIES_PATH: text, BACKUP_PATH: "else"}), "/lake/trips") == text


@pytest.mark.parametrize("left", [{}, {PROPERTIES_PATH: TORN}, {PROPERTIES_PATH: ""}, {PROPERTIES_PATH: "\xff"}])
def test_a_change_that_stopped_halfway_leaves_the_backup_in_force(left: Mapping[str, str]) -> None:
    assert settings_text(reader({**left, BACKUP_PATH: WHOLE}), "/lake/trips") == WHOLE


def test_a_change_that_ends_between_two_reads_is_seen() -> None:
    during, after = {BACKUP_PATH: OTHER}, {PROPERTIES_PATH: WHOLE}
    assert settings_text(reader(during, after), "/lake/trips") == WHOLE


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "/lake/trips is not a Hudi table: it has no .hoodie/hoodie.properties"),
        ({".hoodie_partition_metadata": ""}, "it is a partition of one; pass the directory above"),
        ({"hoodie.properties": WHOLE}, r"it is the \.hoodie of one; pass the directory above"),
        ({"_delta_log/00000000000000000000.json": "{}"}, "it is a Delta Lake table"),
        ({"metadata/version-hint.text": "3"}, "it is an Iceberg table"),
        ({PROPERTIES_PATH: TORN}, "contains no hoodie.table.checksum"),
        ({PROPERTIES_PATH: WRONG}, f"contains hoodie.table.checksum={zlib.crc32(b'.trips')}"),
        ({BACKUP_PATH: WRONG}, "hoodie.properties.backup contains hoodie.table.checksum"),
        ({PROPERTIES_PATH: "\xff"}, "hoodie.properties is not a text file"),
        ({PROPERTIES_PATH: TORN, BACKUP_PATH: "\xff"}, "hoodie.properties contains no hoodie.table.checksum"),
    ],
)
def test_a_table_without_whole_settings_is_none(files: Mapping[str, str], why: str) -> None:
    with pytest.raises(NotAHudiTableError, match=why):
        settings_text(reader(files), "/lake/trips")


def test_a_huge_file_is_refused_without_being_read_whole() -> None:
    asked: list[tuple[str, int]] = []

    def read_range(path: str, offset: int, length: int) -> bytes:
        asked.append((path, offset + length))
        return b"#" * length

    with pytest.raises(ResourceLimitError, match=r"hoodie\.properties has more than .* restore it from a copy"):
        settings_text(read_range, "/lake/trips")
    assert asked == [(PROPERTIES_PATH, PROPERTIES_BYTES_MAX + 1)]

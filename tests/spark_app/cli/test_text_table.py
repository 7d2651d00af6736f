"""Tables on a screen: nothing wider than it, times whole, long words without their middle."""

import pytest
from rich.cells import cell_len

from eventide.cli.text_table import Lines, drawn, shortened, wrapped

TIME = "2026-11-21T00:00:00.123+01:00"
FILE_ID = "00000002-4f2b-45ab-bdbb-1e3da7cf1d2c-0"


def test_a_table_that_fits_is_drawn_whole_with_numbers_to_the_right() -> None:
    table = Lines("", ("partition", "rows"), (("day=1", 5), ("day=2", 1200), (None, None)))
    assert list(drawn(table, 80)) == [
        "partition  rows",
        "───────────────",
        "day=1         5",
        "day=2      1200",
        "",
    ]


def test_long_words_lose_their_middle_before_anything_else_changes() -> None:
    table = Lines("slices", ("file", "least", "greatest"), ((FILE_ID, TIME[:23] + "Z", TIME[:23] + "Z"),))
    wide, narrow = list(drawn(table, 100)), list(drawn(table, 80))
    assert FILE_ID in wide[-1]
    assert FILE_ID not in narrow[-1]
    assert narrow[-1].count(TIME[:23] + "Z") == 2
    assert narrow[-1].startswith(FILE_ID[:13])


def test_a_text_is_wrapped_at_spaces_and_its_further_lines_are_indented() -> None:
    assert wrapped("  one two three four\nfive", 12) == "  one two\n    three\n    four\nfive"
    assert wrapped("a" * 20 + " b", 12) == "a" * 20 + "\n  b"
    assert wrapped("one two", None) == "one two"


@pytest.mark.parametrize("width", [60, 80])
def test_a_sentence_in_the_last_column_is_wrapped_at_spaces(width: int) -> None:
    said = f"event times from {TIME} to {TIME}, in each of the log files"
    table = Lines("", ("table", "s3://lake/" + "deep/" * 20), (("type", "MERGE_ON_READ"), ("in log files", said)))
    lines = list(drawn(table, width))
    assert len(lines) <= 7, "no block of lines for each row"
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(line[14:] for line in lines[3:]) == said
    assert lines[2] == "type          MERGE_ON_READ"


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_of_many_columns_is_a_block_of_lines_for_each_row(width: int) -> None:
    names = tuple(f"column_{number}" for number in range(30))
    lines = list(drawn(Lines("", names, ((TIME,) * 30, (TIME,) * 30)), width))
    assert len(lines) == 61
    assert lines[0].split() == ["column_0", TIME]
    assert all(cell_len(line) <= width for line in lines)


def test_a_long_list_is_wrapped_in_its_column_and_no_line_ends_with_spaces() -> None:
    keys = ", ".join(f"key-{number}" for number in range(3_000))
    lines = list(drawn(Lines("", ("check", "findings"), (("links", ""), ("keys", keys))), 80))
    assert lines[2] == "links"
    assert lines[-1].endswith("key-2999")
    assert all(line == line.rstrip() and cell_len(line) <= 80 for line in lines)


@pytest.mark.parametrize("width", [66, 80, 120])
def test_words_lose_as_little_as_fits_and_times_and_instants_nothing(width: int) -> None:
    instant = "20261121060113021"
    cells = ("city=" + "a" * 200, TIME[:23] + "Z", instant)
    (*_, row) = drawn(Lines("", ("table", "watermark", "instant"), (cells,)), width)
    assert row.split()[1:] == [TIME[:23] + "Z", instant]
    assert cell_len(row) <= width
    assert len(row.split()[0]) >= min(width - 24 - 17 - 4, 64) - 16


def test_words_of_rows_stay_whole_if_something_else_reads_them() -> None:
    key = "k" * 100
    lines = list(drawn(Lines("", ("key", "time"), ((key, TIME),)), 80, keeps_words=True))
    assert lines == [f"key   {key}", f"time  {TIME}"]


def test_wide_characters_and_several_lines_stay_in_their_column() -> None:
    lines = list(drawn(Lines("", ("name", "n"), (("東京\nline two", 7), ("x", 12))), 80))
    assert [cell_len(line) for line in lines[2:]] == [12, 8, 12]


def test_sentences_and_short_words_are_never_shortened() -> None:
    for text in ("a sentence of many words, which a person is to read", "short"):
        assert shortened(text, 28) == text
    assert shortened(TIME, 16) == TIME
    assert cell_len(shortened("x" * 500, 28)) == 28
    assert cell_len(shortened("  " + "x" * 500, 28)) == 28

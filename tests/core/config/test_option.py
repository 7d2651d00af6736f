"""What an option reads, and what it says of a value or a key that it does not take."""

import pickle
import re
from dataclasses import FrozenInstanceError
from enum import StrEnum
from typing import Any

import pytest

from eventide_core.config.option import (
    BYTES,
    DURATION,
    FLAG,
    FRACTION,
    NAMES,
    TEXT,
    WHOLE_NUMBER,
    Option,
    Options,
    OptionType,
    choice,
    one_of,
    unknown_keys,
    whole_number,
)
from eventide_core.errors import ConfigError


class Color(StrEnum):
    RED = "red"
    DARK_BLUE = "dark-blue"


KEPT = Option("t.kept", WHOLE_NUMBER, 3, "How many are kept.", aliases=("t.retained",))
NAMED = Option("t.name", TEXT, None, "A name.", otherwise="the table's own")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (WHOLE_NUMBER, "0", 0),
        (WHOLE_NUMBER, " 12 ", 12),
        (whole_number(1, 65_535), "65535", 65_535),
        (BYTES, "134217728", 134_217_728),
        (FLAG, "TRUE", True),
        (FLAG, "false", False),
        (TEXT, " a b ", "a b"),
        (DURATION, "1h30m", 5400),
        (DURATION, "0", 0),
        (FRACTION, "1e-9", 1e-9),
        (NAMES, "a, b,,c", ("a", "b", "c")),
        (choice(Color), "Dark-Blue", Color.DARK_BLUE),
        (one_of("UP", "down"), "up", "UP"),
    ],
)
def test_a_value_is_read_as_its_type_has_it(kind: OptionType[object], text: str, value: object) -> None:
    assert Options({"t.key": text}).get(Option("t.key", kind, None, "")) == value


@pytest.mark.parametrize(
    ("kind", "text", "allowed"),
    [
        (WHOLE_NUMBER, "-1", "a whole number of 0 or more"),
        (WHOLE_NUMBER, "1.5", "a whole number of 0 or more"),
        (whole_number(1), "0", "a whole number of 1 or more"),
        (whole_number(1, 65_535), "65536", "a whole number of 1 to 65535"),
        (BYTES, "128MB", "a whole number of bytes"),
        (FLAG, "yes", "true or false"),
        (DURATION, "an hour", "a duration such as 90s, 30m, 2h or 1d"),
        (DURATION, "00", "a duration such as 90s, 30m, 2h or 1d"),
        (FRACTION, "1", "a number between 0 and 1"),
        (FRACTION, "some", "a number between 0 and 1"),
        (NAMES, ",", "a list of names with commas between"),
        (choice(Color), "green", "one of red, dark-blue"),
        (one_of("UP", "down"), "left", "one of UP, down"),
    ],
)
def test_an_invalid_value_is_refused_with_the_allowed_values(kind: OptionType[object], text: str, allowed: str) -> None:
    option = Option("t.key", kind, None, "", otherwise="off")
    with pytest.raises(ConfigError) as refused:
        Options({"t.key": text}).get(option)
    assert str(refused.value) == f"option t.key='{text}' is not {allowed}; omit it for the default, off"


def test_an_absent_or_blank_value_is_the_default() -> None:
    assert Options({}).get(KEPT) == Options({"t.kept": " "}).get(KEPT) == 3
    assert Options({"t.name": ""}).get(NAMED) is None


def test_of_several_names_the_first_that_is_given_counts_and_is_the_one_in_a_message() -> None:
    assert Options({"t.retained": "5"}).get(KEPT) == 5
    assert Options({"t.retained": "5", "t.kept": "4"}).get(KEPT) == 4
    assert Options({"t.retained": "5", "t.kept": ""}).get(KEPT) == 5
    assert Options({"t.retained": "5"}).name(KEPT) == "t.retained"
    assert Options({}).name(KEPT) == "t.kept"
    with pytest.raises(ConfigError, match=r"option t\.retained='many' is not .* default, 3"):
        Options({"t.retained": "many"}).get(KEPT)


def test_an_option_that_stands_for_many_keys_reads_all_that_begin_so() -> None:
    many = Option("t.many.*", TEXT, None, "")
    assert Options({"t.many.a": "1", "t.many.b.c": "2", "t.manya": "3"}).below(many) == {
        "t.many.a": "1",
        "t.many.b.c": "2",
    }


def test_an_option_stands_for_its_key_and_goes_to_other_processes_as_one() -> None:
    assert {KEPT: "7"} == {"t.kept": "7"}
    assert f"{KEPT}" == "t.kept"
    (key,) = pickle.loads(pickle.dumps({KEPT: "7"}))
    assert (key, type(key)) == ("t.kept", str)


def test_an_option_does_not_change() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot assign to field"):
        KEPT.default = 4  # type: ignore[misc, unused-ignore]
    assert KEPT.default == 3


def test_no_value_is_shown() -> None:
    assert "secret" not in repr(Options({"s3.secret-access-key": "secret"}))


def test_an_unknown_key_is_named_with_the_nearest_one() -> None:
    known: list[Option[Any]] = [
        Option("eventide.table.exclusive", FLAG, False, ""),
        Option("s3.region", TEXT, None, "", aliases=("fs.region",)),
    ]
    assert unknown_keys(["s3.regio", "s3.zzz"], known) == (
        "option s3.regio is unknown and has no effect; did you mean s3.region?",
        "option s3.zzz is unknown and has no effect; docs/reference has all options",
    )


@pytest.mark.parametrize(
    ("key", "cure"),
    [
        ("eventide.table.exlusive", "did you mean eventide.table.exclusive?"),
        ("hoodie.eventide.zzz", "docs/reference has all options"),
    ],
)
def test_an_unknown_key_that_only_eventide_could_read_is_refused(key: str, cure: str) -> None:
    known: list[Option[Any]] = [Option("eventide.table.exclusive", FLAG, False, "")]
    with pytest.raises(ConfigError, match=rf"^option {re.escape(key)} is unknown; {re.escape(cure)}$"):
        unknown_keys([key], known)


def test_a_misspelled_key_of_hudi_is_named_and_its_other_keys_are_passed_over() -> None:
    known: list[Option[Any]] = [
        Option(key, TEXT, None, "")
        for key in ("hoodie.table.name", "hoodie.keep.min.commits", "hoodie.keygen.timebased.*")
    ]
    assert unknown_keys(["hoodie.tabel.name", "hoodie.keep.min.comits"], known) == (
        "option hoodie.tabel.name is unknown to eventide; did you mean hoodie.table.name?",
        "option hoodie.keep.min.comits is unknown to eventide; did you mean hoodie.keep.min.commits?",
    )
    others = ["hoodie.keep.max.commits", "hoodie.table.names.of.others", "hoodie.keygen.timebased.timezone", "hoodie.x"]
    assert unknown_keys(others, known) == ()


def test_keys_that_are_known_or_belong_to_others_are_passed_over() -> None:
    known: list[Option[Any]] = [Option("eventide.table.exclusive", FLAG, False, "")]
    assert (
        unknown_keys(["eventide.table.exclusive", "hoodie.memory.fraction", "fs.s3a.x", "path", "spark.x"], known) == ()
    )

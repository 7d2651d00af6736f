"""Wherever a document of the timeline names a path, anyone may have put any text: no service leaves the table by it.

A text is refused when the document is decoded, which comes before the first write, or what it names is a data file of a
partition, which is below the root and not in `.hoodie`.

EVENTIDE_CAMPAIGN=n draws n times as many texts: 10,000 are EVENTIDE_CAMPAIGN=100.
"""

import os
import posixpath
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptTimelineError, EventideError, UnsafePathError
from support.faults.hostile_paths import ALL, HOSTILE, filled
from support.faults.path_fields import FIELDS, PathField
from support.run.campaign import IS_REPEATED, tries
from support.run.reach import reached

DATA_FILE = re.compile(
    r"(?s)[^./].*_\d+-\d+-\d+_\d{14,20}\.[A-Za-z0-9_]+|\..+_\d{14,20}\.log\.\d+(_\d+-\d+-\d+)?(\.cdc)?"
)
LEAVING = re.compile(r"\.hoodie/\.(temp|heartbeat)/[0-9]{14,20}")


def is_harmless(path: str) -> bool:
    """Whether by every reading the path names a data file of a partition, or what a write leaves beside them.

    One reading takes a backslash for a slash.
    """
    if LEAVING.fullmatch(path):
        return True
    if "\\" in path and not is_harmless(path.replace("\\", "/")):
        return False
    parts = path.split("/")
    return (
        posixpath.normpath(posixpath.join("/lake/table", path)) == f"/lake/table/{path}"
        and Path("/lake/table", path).parts[:3] == ("/", "lake", "table")
        and "\0" not in path
        and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path)
        and ".hoodie" not in parts
        and DATA_FILE.fullmatch(parts[-1]) is not None
        and len(parts[-1].encode()) <= 255
    )


def answer(field: PathField, text: str) -> str:
    """How the text is answered in that field."""
    try:
        data = field.bytes_with(text)
    except UnicodeEncodeError:
        return "cannot be written"
    try:
        touched = field.touched_by(data)
    except (UnsafePathError, CorruptTimelineError) as refusal:
        return type(refusal).__name__
    for path in touched:
        assert is_harmless(path), f"{field} = {text!r} leads to {path!r}"
    return "harmless"


def test_there_are_more_than_two_hundred_texts_of_every_kind() -> None:
    assert len(set(ALL)) == len(ALL) >= 200
    assert all(HOSTILE.values())


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_path_in_a_stored_document_is_refused_or_stays_within_the_tables_data(field: PathField) -> None:
    assert answer(field, field.proper) == "harmless", "what belongs there is believed"
    answers = Counter(answer(field, filled(text, field.proper)) for text in ALL)
    for kind, count in answers.items():
        reached(f"hostile paths, {kind}", count)
    refused = answers.total() - answers["harmless"] - answers["cannot be written"]
    assert refused >= 60, answers


@given(
    st.sampled_from(FIELDS),
    st.lists(
        st.sampled_from(["..", ".", "/", "\\", "\0", ":", "s3:", ".hoodie", "{}", "%2e", " ", "\n", "_", ".log.1", "é"])
        | st.text(max_size=3),
        min_size=1,
        max_size=8,
    ).map("".join),
)
@settings(max_examples=tries(test=100, proof=100), derandomize=IS_REPEATED, database=None)
def test_no_drawn_text_leads_out_of_the_table(field: PathField, text: str) -> None:
    answer(field, filled(text, field.proper))


def test_a_path_that_a_disk_takes_lies_below_its_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the operating system's own reading, of unicode and blanks too."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    root = tmp_path / "lake" / "table"
    storage = LocalStorage(root)
    answers: Counter[str] = Counter()
    for number, text in enumerate(ALL):
        path = filled(text, f"file{number}")
        try:
            storage.put(path, b"hostile")
        except EventideError as refusal:
            answers[type(refusal).__name__] += 1
        else:
            answers["taken"] += 1
            assert storage.read(path) == b"hostile"
            assert (root / path).resolve().is_relative_to(root)
            storage.delete(path)
    assert names_in(tmp_path) == ["lake"]
    assert names_in(tmp_path / "lake") == ["table"]
    assert answers["UnsafePathError"] >= 60
    assert answers["taken"] >= 60
    assert answers["StorageError"] >= 3, "names that are too long, or directories"


def names_in(directory: Path) -> list[str]:
    return [entry.name for entry in directory.iterdir()]

"""Words of the command line that name a place: a partition of the table, and a file on this machine."""

from pathlib import Path

import pytest

from support.run.command_line import content_of, run
from support.tables.append import make, rows

T = "2026-11-21T00:00Z"
SHOWING = (
    ("show", "TABLE"),
    ("plan", "TABLE", "--before", T),
    ("compact", "TABLE", "--before", T, "--engine", "local"),
    ("compact", "TABLE", "--before", T, "--schedule-only"),
    ("verify", "TABLE"),
)
TO_A_FILE = (
    ("read", "TABLE", "--to", "{}.parquet"),
    ("report", "TABLE", "--to", "{}.html"),
    ("status", "TABLE", "--to", "{}.html"),
    ("repair", "TABLE", "--lost-keys", "{}.csv"),
)


@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
@pytest.mark.parametrize("partition", ["NOPE", "part=NOPE", ".hoodie", ".hoodie/timeline"])
def test_a_partition_that_the_table_lacks_is_wrong_usage(
    words: tuple[str, ...], partition: str, tmp_path: Path
) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    before = content_of(tmp_path)
    shown = run(*(table.uri if word == "TABLE" else word for word in words), "--partition", partition)
    assert shown.exit_code == 2, shown
    assert f"no partition {partition!r} in {table.uri}" in shown.stderr
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("words", SHOWING, ids=" ".join)
def test_a_partition_may_end_with_a_slash(words: tuple[str, ...], tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    table.upsert(rows(("1", "a", 2, "y")))
    partition = next(path.parent.name for path in (tmp_path / "t").rglob("*.parquet"))
    shown = run(*(table.uri if word == "TABLE" else word for word in words), "--partition", f"{partition}/")
    assert shown.exit_code == 0, shown
    assert "none of these file slices" not in shown.stdout


@pytest.mark.parametrize("words", TO_A_FILE, ids=" ".join)
@pytest.mark.parametrize("place", ["s3://bucket/out", "file:///tmp/out"])
def test_a_uri_is_not_a_file_to_write(words: tuple[str, ...], place: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    shown = run(*(table.uri if word == "TABLE" else word.format(place) for word in words))
    assert shown.exit_code == 2, shown
    assert "is a URI: name a path on this machine" in shown.stderr


@pytest.mark.parametrize("words", TO_A_FILE[:3], ids=" ".join)
@pytest.mark.parametrize("below", ["out", "part/out", ".hoodie/out"])
def test_no_file_is_written_into_a_table(words: tuple[str, ...], below: str, tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    table.upsert(rows(("1", "a", 1, "x")))
    (tmp_path / "t" / "part").mkdir(exist_ok=True)
    before = content_of(tmp_path)
    shown = run(*(table.uri if word == "TABLE" else word.format(tmp_path / "t" / below) for word in words))
    assert shown.exit_code == 2, shown
    assert f"would be in the Hudi table {str(tmp_path / 't')!r}" in shown.stderr
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("words", [("show", "t"), ("ingest", "TABLE", "rows.csv")])
def test_a_working_directory_that_is_gone_is_named(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "t")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    shown = run(*(table.uri if word == "TABLE" else word for word in words))
    assert (shown.exit_code, shown.stderr) == (
        2,
        "error: the working directory does not exist anymore: change to another one\n",
    )

"""What leaves a table comes back as it left, or is refused: each type with null, its least, greatest and empty values."""

import re
from pathlib import Path

import pytest

from eventide_core.errors import InvalidRecordError
from support.run.command_line import run, run_json
from support.values.round_trips import MOVES, REFUSED, VALUES, content, two_tables


@pytest.mark.parametrize("way", MOVES)
def test_every_value_comes_back_as_it_left(tmp_path: Path, way: str) -> None:
    names = [name for name in VALUES if name not in REFUSED.get(way, ())]
    left, into = two_tables(tmp_path, names)
    MOVES[way](left, into, ["id", *names])
    assert content(into, names) == content(left, names)


@pytest.mark.parametrize(("way", "name"), [(way, name) for way in MOVES for name in sorted(REFUSED.get(way, ()))])
def test_a_type_that_a_format_cannot_give_back_is_refused(tmp_path: Path, way: str, name: str) -> None:
    left, into = two_tables(tmp_path, [name])
    reason = f"column '{name}' is of type|JSON conversion to map.*use Parquet|outside of the years 1 to 9999.*Parquet"
    with pytest.raises(InvalidRecordError, match=reason) as told:
        MOVES[way](left, into, ["id", name])
    assert not len(into.snapshot().to_arrow())
    named = re.findall("JSON(?= or)|Parquet", str(told.value).rpartition(": ")[2])
    assert named
    for other in named:
        MOVES[other.lower()](left, into, ["id", name])
        assert content(into, [name]) == content(left, [name])


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_a_text_that_is_no_base64_is_refused_in_a_column_of_bytes(tmp_path: Path, kind: str) -> None:
    _, into = two_tables(tmp_path, ["a_binary"])
    file = tmp_path / f"x.{kind}"
    file.write_text("id,a_binary\na,YQ==\nb,a b\n" if kind == "csv" else '{"id": "a", "a_binary": "a b"}\n')
    answer = run("ingest", into.uri, file)
    assert answer.exit_code == 2
    assert "column 'a_binary': 'a b' isn't of type binary in base64" in answer.stderr


def test_an_empty_map_is_an_object_of_json(tmp_path: Path) -> None:
    left, _ = two_tables(tmp_path, ["a_map"])
    rows = run_json("read", left.uri, "--all", "--columns", "a_map")["data"]
    assert sorted(map(str, rows)) == ["{'a_map': None}", "{'a_map': {'k': 1.5, 'NaN': 'NaN'}}", "{'a_map': {}}"]

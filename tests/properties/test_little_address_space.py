"""Verbs that run out of address space (`ulimit -v`) at any point end, and the table is well.

They end with a documented exit code, or are aborted by a library.
A process that does not end says where all of its threads wait, and fails the test.
"""

import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
import pytest

from eventide import Table
from support.processes.little_memory import SAYS_IT_HANGS, LittleMemory, little_memory
from support.run.command_line import run_json
from support.run.reach import reached
from support.tables.small import HOUR_MS, LATER_MS, OPTIONS, SOON, make, rows, seen

pytestmark = pytest.mark.proof

_ENDS: Final = {0, 1, 2, 3, 4, 5, -signal.SIGABRT, -signal.SIGSEGV, 127}
"""The C++ libraries abort the process where they can't report that memory is short, or crash, as a kill does. The C library
ends it with 127 if it can't begin a thread's own data.
"""
_MEGABYTES: Final = (*range(0, 96, 4), *range(96, 256, 16), *range(256, 1280, 128))
_KEYS: Final = 2000
_VERBS: Final = {
    "compact": ("compact", "--before", LATER_MS - 12 * HOUR_MS, "--cut", "exact"),
    "ingest": ("ingest", "own.parquet"),
    "delete": ("ingest", "gone.parquet", "--op", "delete"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose exact cut before now leaves rows over, and the files of the two writes."""
    path = tmp_path_factory.mktemp("little")
    make(path / "table", 9)
    keys = range(_KEYS)
    batches = {
        "first": rows(*((f"k{n}", -3, "first") for n in keys)),
        "second": rows(*((f"k{n}", -2 if n % 2 else 2, "second") for n in keys)),
        "third": rows(*((f"k{n}", -1, "third") for n in keys if n % 3)),
        "own": rows(*((f"k{n}", 3, "own") for n in keys)),
        "gone": rows(*((f"k{n}", 4, "") for n in keys if n % 2)).drop_columns(["word"]),
    }
    for name, batch in batches.items():
        pq.write_table(batch, path / f"{name}.parquet")
        if name not in ("own", "gone"):
            run_json("ingest", path / "table", path / f"{name}.parquet", *OPTIONS)
    return path


@pytest.fixture(scope="module")
def little() -> Iterator[LittleMemory]:
    with little_memory() as found:
        yield found


@pytest.mark.parametrize("verb", _VERBS)
def test_it_ends_and_the_table_is_well(verb: str, begun: Path, little: LittleMemory, tmp_path: Path) -> None:
    table, said, ends = tmp_path / "table", tmp_path / "said", Counter[int]()
    name, *rest = (begun / str(word) if str(word).endswith(".parquet") else word for word in _VERBS[verb])
    before = seen(Table.open(str(begun / "table")).snapshot().to_arrow())
    after = _after(verb, before, begun)
    for megabytes in _MEGABYTES:
        shutil.copytree(begun / "table", table)
        exit_code = little.run(megabytes, said, name, table, *rest, *OPTIONS)
        ends[exit_code] += 1
        reached(f"little address space: {verb} ended with {exit_code}")
        words = said.read_text(encoding="utf-8", errors="replace")
        place = f"{verb} with {megabytes} MB ended with {exit_code}: {words[-4000:]}"
        assert SAYS_IT_HANGS not in words, place
        assert exit_code in _ENDS, place
        found = seen(Table.open(str(table)).snapshot().to_arrow())
        assert found == after or (exit_code != 0 and found == before), place
        _check_that_others_go_on(table, found, place)
        shutil.rmtree(table)
    assert ends[0], ends
    assert ends[5], ends


def _after(verb: str, before: dict[str, tuple[int, str]], begun: Path) -> dict[str, tuple[int, str]]:
    if verb == "ingest":
        return before | seen(pq.read_table(begun / "own.parquet"))
    gone = set() if verb == "compact" else {*pq.read_table(begun / "gone.parquet")["id"].to_pylist()}
    return {key: row for key, row in before.items() if key not in gone}


def _check_that_others_go_on(table: Path, found: dict[str, tuple[int, str]], place: str) -> None:
    later = rows(("k0", 6, "later"))
    opened = Table.open(str(table), {str(key): value for key, value in SOON.items()})
    opened.upsert(later)
    assert seen(opened.snapshot().to_arrow()) == found | seen(later), place
    assert opened.verify(deep=True).failed == (), place

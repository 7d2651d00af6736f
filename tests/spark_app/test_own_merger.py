"""Tables with a user-defined merger, through the public face: reads, compactions, writes, refusals."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from eventide import Table
from eventide.engine_local import LocalEngine
from eventide_adapters.format.slice.merge.record_mergers import RECORD_MERGERS
from eventide_core.errors import ConfigError, InvalidRecordError, RecordMergerError, UnsupportedTableError
from support.run.command_line import content_of, run, run_json
from support.tables.small import HOUR_MS, LATER_MS, SOON, make, rows

pytestmark = pytest.mark.slow

STRATEGY = "3f1c5a1e-6d2b-4f58-9a51-0d8f4a3f7c21"
T = TypeVar("T")
R = TypeVar("R")
LOCAL = ("--engine", "local")


def mapped(merger: str) -> dict[str, str]:
    return {RECORD_MERGERS: f"{STRATEGY}=support.values.mergers:{merger}"}


def words(table: pa.Table) -> dict[str, str]:
    return {row["id"]: row["word"] for row in table.to_pylist()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A table whose owner's merger decides. Its writes lie hours apart."""
    path = tmp_path / "t"
    make(path, 9)
    properties = path / ".hoodie" / "hoodie.properties"
    kept = [line for line in properties.read_text().splitlines() if not line.startswith("hoodie.record.merge")]
    own = ["hoodie.record.merge.mode=CUSTOM", f"hoodie.record.merge.strategy.id={STRATEGY}"]
    properties.write_text("\n".join([*kept, *own]) + "\n")
    return path


def opened(path: Path, merger: str) -> Table:
    return Table.open(str(path), options=SOON | mapped(merger))


def written(path: Path, merger: str) -> Table:
    table = opened(path, merger)
    for hours, word in ((0, "a"), (1, "bb"), (5, "c")):
        table.upsert(rows(("k0", hours, word), ("k1", hours, word)))
    return table


def threshold() -> int:
    """Between the second write and the third."""
    return LATER_MS - 12 * HOUR_MS + 3 * HOUR_MS


@pytest.mark.parametrize(("merger", "word"), [("Longest", "bb"), ("Joined", "abbc"), ("Bracketed", "(a(bbc))")])
def test_a_compaction_changes_no_row_of_a_query(path: Path, merger: str, word: str) -> None:
    table = written(path, merger)
    expected = table.snapshot().to_arrow()
    assert words(expected) == {"k0": word, "k1": word}
    table.compact(table.plan_compaction(before=LATER_MS))
    after = table.snapshot().to_arrow()
    names = [name for name in expected.column_names if name != "_hoodie_file_name"]
    assert after.select(names).sort_by("id") == expected.select(names).sort_by("id")
    assert words(table.read_optimized().to_arrow()) == words(expected)
    assert table.verify(deep=True).ok
    table.upsert(rows(("k0", 6, "dddd")))
    expected_word = {"Longest": "dddd", "Joined": "abbcdddd", "Bracketed": "((a(bbc))dddd)"}[merger]
    assert words(table.snapshot().to_arrow())["k0"] == expected_word


def test_an_associative_merger_lets_a_slice_be_merged_in_part(path: Path) -> None:
    table = written(path, "Joined")
    plan = table.plan_compaction(before=threshold())
    assert "custom-merger" not in str(plan)
    table.compact(plan)
    assert words(table.read_optimized().to_arrow()) == {"k0": "abb", "k1": "abb"}
    assert words(table.snapshot().to_arrow()) == {"k0": "abbc", "k1": "abbc"}
    assert table.verify(deep=True).ok


@pytest.mark.parametrize("merger", ["Bracketed", "Joined"])
def test_a_slice_is_compacted_in_full_where_a_merger_could_make_other_rows(path: Path, merger: str) -> None:
    table = written(path, merger)
    if merger == "Joined":  # is associative, so only a delete is in the way
        table.delete(rows(("k0", 6, "")).select(["id", "part", "ms"]))
        table.delete(rows(("k1", 6, "")).select(["id", "part", "ms"]))
    expected = words(table.snapshot().to_arrow())
    answer = run_json("plan", path, "--before", threshold(), *options(merger))
    assert {op["fallback"] for op in answer["operations"]} == {"custom-merger"}
    table.compact(table.plan_compaction(before=threshold()))
    assert words(table.read_optimized().to_arrow()) == words(table.snapshot().to_arrow()) == expected


def options(merger: str) -> tuple[str, ...]:
    return ("--option", f"{RECORD_MERGERS}={STRATEGY}=support.values.mergers:{merger}")


def test_an_exact_cut_merges_no_record_twice(path: Path) -> None:
    table = written(path, "Joined")
    table.compact(table.plan_compaction(before=threshold(), cut="exact"))
    assert words(table.snapshot().to_arrow()) == {"k0": "abbc", "k1": "abbc"}


def test_an_incremental_query_merges_the_versions_of_its_commits(path: Path) -> None:
    table = written(path, "Joined")
    assert words(table.incremental("earliest").to_arrow()) == {"k0": "abbc", "k1": "abbc"}
    first = min(str(time) for time in table.snapshot().to_arrow()["_hoodie_commit_time"].to_pylist())
    table.upsert(rows(("k0", 6, "d")))
    table.upsert(rows(("k0", 7, "e")))
    assert words(table.incremental(first).to_arrow()) == {"k0": "cde", "k1": "c"}


def test_a_write_with_two_versions_of_a_key_is_refused(path: Path) -> None:
    table = written(path, "Joined")
    with pytest.raises(InvalidRecordError, match="record key 'k0' occurs twice in one write"):
        table.upsert(rows(("k0", 6, "d"), ("k0", 7, "e")))
    assert words(table.snapshot().to_arrow()) == {"k0": "abbc", "k1": "abbc"}


VERBS: tuple[tuple[str, ...], ...] = (
    ("show",),
    ("read",),
    ("plan", "--before", str(LATER_MS)),
    ("compact", "--before", str(LATER_MS), *LOCAL),
    ("verify", "--deep"),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_without_a_mapping_every_verb_names_the_option(path: Path, verb: tuple[str, ...]) -> None:
    written(path, "Joined")
    before = content_of(path)
    answer = run(verb[0], path, *verb[1:])
    assert answer.exit_code == UnsupportedTableError.exit_code == 3
    for part in ("hoodie.record.merge.strategy.id", STRATEGY, f"{RECORD_MERGERS}={STRATEGY}=MODULE:CLASS"):
        assert part in " ".join(answer.stderr.split()).replace("- ", "-"), answer.stderr
    assert content_of(path) == before


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_mapping_to_no_merger_is_refused_before_anything_is_written(path: Path, verb: tuple[str, ...]) -> None:
    written(path, "Joined")
    before = content_of(path)
    for name in ("NoMethod", "NoDeletes", "NoSuchClass"):
        answer = run(verb[0], path, *verb[1:], *options(name))
        assert answer.exit_code == ConfigError.exit_code, answer.stderr
    assert content_of(path) == before


def test_a_result_that_does_not_fit_ends_a_compaction_without_a_commit(path: Path) -> None:
    written(path, "Joined")
    table = opened(path, "Short")
    with pytest.raises(RecordMergerError, match=r"support\.values\.mergers:Short returned"):
        table.compact(table.plan_compaction(before=LATER_MS))
    good = opened(path, "Joined")
    assert words(good.snapshot().to_arrow()) == {"k0": "abbc", "k1": "abbc"}
    good.compact(good.plan_compaction(before=LATER_MS))
    assert words(good.read_optimized().to_arrow()) == {"k0": "abbc", "k1": "abbc"}


class EngineWithoutTheModule(LocalEngine):
    """As a cluster whose executors cannot import the merger."""

    def map(
        self,
        function: Callable[[T], R],  # noqa: ARG002
        items: Sequence[T],  # noqa: ARG002
        *,
        sizes: Sequence[int] | None = None,  # noqa: ARG002
        on_done: Callable[[], None] | None = None,  # noqa: ARG002
    ) -> list[R]:
        raise ConfigError("support.values.mergers:Longest can't be loaded")


def test_an_engine_that_cannot_load_the_merger_gets_no_plan(path: Path) -> None:
    table = written(path, "Longest")
    before = content_of(path)
    with pytest.raises(ConfigError, match="can't be loaded"):
        table.compact(before=threshold(), engine=EngineWithoutTheModule())
    assert content_of(path) == before

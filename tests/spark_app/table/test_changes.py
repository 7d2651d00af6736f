"""The query of changes: what each write did to each row, distinguished by snapshots before and after it."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide.options.queries import INCREMENTAL_FORMAT
from eventide_core.errors import CleanedHistoryError, UnsupportedTableError
from support.run.command_line import run_json
from support.tables.small import LATER_MS, SOON, make, rows

Shown = dict[str, dict[str, Any]]


def captured(path: Path) -> Table:
    """The table as if Hudi had written it with change data capture, to which eventide itself doesn't write."""
    settings = path / ".hoodie" / "hoodie.properties"
    settings.write_text(settings.read_text().replace("hoodie.table.cdc.enabled=false", "hoodie.table.cdc.enabled=true"))
    return Table.open(str(path), SOON)


def shown(table: Table) -> Shown:
    rows = table.snapshot().to_arrow().select(["_hoodie_commit_time", "id", "ms", "word"])
    return {row["id"]: row for row in rows.to_pylist()}


def difference(before: Shown, after: Shown, instant: str) -> set[tuple[str, str | None, str | None]]:
    """Operation and words before and after, of each key that changed."""
    parts = {
        ("u" if key in before else "i", before[key]["word"] if key in before else None, row["word"])
        for key, row in after.items()
        if row["_hoodie_commit_time"] == instant
    }
    return parts | {("d", row["word"], None) for key, row in before.items() if key not in after}


def told(table: Table, begin: str = "000") -> dict[str, set[tuple[str, str | None, str | None]]]:
    """The changes by instant."""
    changes: dict[str, set[tuple[str, str | None, str | None]]] = {}
    for row in table.changes(begin).to_arrow().to_pylist():
        before, after = (None if row[name] is None else json.loads(row[name])["word"] for name in ("before", "after"))
        changes.setdefault(row["ts_ms"], set()).add((row["op"], before, after))
    return changes


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("seed", range(3))
def test_changes_are_the_differences_of_snapshots_also_across_compactions(
    version: int, seed: int, tmp_path: Path
) -> None:
    chosen, path = random.Random(seed), tmp_path / "t"
    table, expected = make(path, version), dict[str, set[tuple[str, str | None, str | None]]]()
    before: Shown = {}
    for number in range(8):
        keys = chosen.sample([f"k{key}" for key in range(6)], 3)
        if chosen.random() < 0.3 and before:
            result = table.delete(rows(*((key, 9, "") for key in keys)).drop_columns(["word"]))
        else:
            result = table.upsert(rows(*((key, chosen.randrange(8), f"{key} {number}") for key in keys)))
        after = shown(table)
        if changed := difference(before, after, result.instant):
            expected[result.instant] = changed
        before = after
        if number in (3, 6):
            table.compact(before=LATER_MS - chosen.choice((0, 10)) * 3_600_000)
            before = shown(table)
    assert told(captured(path)) == expected


def test_changes_are_asked_for_by_hudis_option_and_by_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 9)
    table.upsert(rows(("k0", 0, "one")))
    begin = table.settled_until()
    table.upsert(rows(("k0", 1, "two"), ("k1", 0, "new")))
    captured(path)
    by_option = Table.open(str(path), {INCREMENTAL_FORMAT: "cdc"}).incremental(begin)
    assert by_option.schema.names == ["op", "ts_ms", "before", "after"]
    assert set(by_option.to_arrow(["op"]).column("op").to_pylist()) == {"i", "u"}
    words = ("read", path, "--query", "incremental", "--begin", begin, "--option", f"{INCREMENTAL_FORMAT}=cdc")
    document = run_json(*words, "--filter", "op = 'u'")
    assert [json.loads(row["before"])["word"] for row in document["data"]] == ["one"]


def test_a_table_without_change_data_capture_has_no_changes(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    with pytest.raises(UnsupportedTableError, match=r"hoodie\.table\.cdc\.enabled is not true"):
        table.changes("000")


def test_changes_whose_files_were_cleaned_are_missed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, 9)
    table.upsert(rows(("k0", 0, "one")))
    table.upsert(rows(("k0", 1, "two")))
    for word in ("three", "four"):
        table.compact(before=LATER_MS)
        table.upsert(rows(("k0", 2, word)))
    assert table.clean(retain_commits=1).deleted
    changed = captured(path)
    with pytest.raises(CleanedHistoryError, match="can no longer be read"):
        changed.changes("000")

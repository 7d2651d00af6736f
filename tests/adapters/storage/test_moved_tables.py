"""A table that is copied file by file from one store to another is the same table there."""

import itertools
import json
from pathlib import Path

import pytest

from eventide import Table
from eventide.rows.reader import Rows
from eventide_core.ports import Storage
from support.run.command_line import run, run_json
from support.tables.backends import Backend, backend, files_of
from support.tables.small import HOUR_MS, LATER_MS, SERVE, SOON

WORDS = tuple(word for key, value in SOON.items() for word in ("--option", f"{key}={value}"))
MIDNIGHT_MS = 1_700_006_400_000


def copied(source: Backend, target: Backend) -> None:
    """As docs/guide/migration.md says: every file, and what a symbolic link leads to in place of the link."""
    there = target.storage
    for path in files_of(source.storage):
        _copy(source.storage, there, path)


def _copy(source: Storage, target: Storage, path: str) -> None:
    assert target.put_if_absent(path, source.read(path))


def lived(there: Backend, directory: Path) -> None:
    """A table with left-overs, made by the command line."""
    for number, hours in enumerate((0, 3, 1)):
        lines = [
            json.dumps(
                {"id": f"k{key}", "part": "ab"[key % 2], "ms": MIDNIGHT_MS + hours * HOUR_MS, "word": f"w{number}"}
            )
            for key in range(6)
        ]
        source = directory / f"rows{number}.json"
        source.write_text("\n".join(lines) + "\n")
        create = ("--create", "--record-key", "id", "--partition", "part", "--event-time", "ms") if number == 0 else ()
        answer = run("ingest", there.uri, source, "--op", "upsert", *create, *WORDS, *there.words())
        assert answer.exit_code == 0, answer.stderr
    before = MIDNIGHT_MS + 2 * HOUR_MS
    answer = run("compact", there.uri, "--before", before, "--engine", "local", *WORDS, *there.words())
    assert answer.exit_code == 0, answer.stderr


def seen(there: Backend) -> dict[str, object]:
    """The rows of four queries, and the watermark."""
    table = Table.open(there.uri, {**there.options, **SOON})
    first = table.state().timeline.completed[0].requested_time
    queries = {
        "snapshot": table.snapshot(),
        "read optimized": table.read_optimized(),
        "as of the first commit": table.as_of(first),
        "incremental": table.incremental(first),
    }
    rows = {name: rows_of(query) for name, query in queries.items()}
    assert all(rows.values())
    return {**rows, "watermark": table.freshness().watermark_ms}


def rows_of(query: Rows) -> object:
    return query.to_arrow(["id", "ms", "word"]).sort_by([("id", "ascending"), ("ms", "ascending")]).to_pylist()


def snapshot(there: Backend) -> object:
    return rows_of(there.table().snapshot())


@pytest.mark.broad
@pytest.mark.parametrize(
    "way",
    [("moto", "azurite", "fake_gcs", "local"), ("hdfs_with_symlinks", "moto", "azurite", "hdfs_with_symlinks")],
    ids=" to ".join,
)
def test_a_moved_table_has_the_same_rows_and_the_same_watermark(
    way: tuple[str, ...], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    places = [backend(name, request, tmp_path) for name in way]
    lived(places[0], tmp_path)
    before = seen(places[0])
    for source, target in itertools.pairwise(places):
        copied(source, target)
        assert seen(target) == before
        assert run_json("verify", target.uri, "--deep", *target.words())["ok"]
    # The last one goes on where the first one was left.
    end = places[-1]
    answer = run("compact", end.uri, "--before", LATER_MS, "--engine", "local", *WORDS, *end.words())
    assert answer.exit_code == 0, answer.stderr
    assert snapshot(end) == before["snapshot"]
    assert end.table().freshness().watermark_ms == LATER_MS


@pytest.mark.broad
@pytest.mark.parametrize("name", ["fake_gcs", "azurite"])
def test_the_whole_way_by_the_command_line(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    there = backend(name, request, tmp_path)
    lived(there, tmp_path)
    before = seen(there)
    words = (*WORDS, *there.words())
    served = run_json(
        "serve", there.uri, "--rounds", 1, *(word for word in SERVE if word not in ("--output", "json")), *words
    )
    assert served["state"] == "compacted"
    assert snapshot(there) == before["snapshot"]
    assert run("clean", there.uri, *words).exit_code == 0
    source = tmp_path / "rows1.json"
    assert run("ingest", there.uri, source, "--op", "upsert", *words).exit_code == 0
    last = there.table().state().timeline.completed[-1].requested_time
    assert run("rollback", there.uri, last, *words).exit_code == 0
    assert snapshot(there) == before["snapshot"]
    # As a writer leaves it that died while it replaced the settings.
    settings = there.storage.read(".hoodie/hoodie.properties")
    there.storage.put(".hoodie/hoodie.properties.backup", settings)
    there.storage.put(".hoodie/hoodie.properties", b"")
    repaired = run("repair", there.uri, "--apply", *words)
    assert repaired.exit_code == 0, repaired
    assert there.storage.read(".hoodie/hoodie.properties") == settings
    assert run_json("verify", there.uri, "--deep", *there.words())["ok"]
    assert snapshot(there) == before["snapshot"]

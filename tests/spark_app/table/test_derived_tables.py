"""Derived tables: what they were made of is in their commits, and they are only as fresh as that."""

import json
from pathlib import Path
from typing import Any

import pytest

from eventide import ConfigError, Table
from eventide.integrations.lineage import _with_sources
from eventide_core.service.common.facts.arrival import source_notes
from eventide_core.table.timeline.source_notes import SOURCE_PREFIX
from support.doubles.catalogs import MemoryCatalog
from support.run.command_line import run
from support.tables.hourly import SOON, at, made, rows

pytestmark = pytest.mark.slow


def status(table: Table) -> dict[str, Any]:
    answer = run("status", table.uri, "--output", "json")
    assert answer.exit_code == 0, answer.stderr
    entry: dict[str, Any] = json.loads(answer.stdout)["tables"][0]
    return entry


@pytest.fixture(params=[6, 8, 9])
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_a_derived_table_is_as_fresh_as_the_lower_of_its_own_and_its_sources(tmp_path: Path, version: int) -> None:
    raw, derived = made(tmp_path, "raw", version), made(tmp_path, "derived", version)
    raw.upsert(rows(0.5, 1.5, 2.5))
    result = raw.compact(before=at(2))
    derived.upsert(rows(0, 1), sources={raw: result})
    assert derived.freshness().watermark_ms is None, "nothing of its own is compacted"
    derived.compact(before=at(9))
    freshness = derived.freshness()
    assert freshness.watermark_ms == at(2)
    assert [(one.name, one.evidence.split()[-1], one.progress_ms) for one in freshness.sources] == [
        (raw._application.storage.root, result.instant, at(2))
    ]
    assert not freshness.has_reached(at(3))
    derived.upsert(rows(1.75))
    assert derived.freshness().watermark_ms == at(1.75), "its own late record"
    assert {one.watermark_ms for one in derived.freshness_by_partition().values()} == {at(1.75)}


def test_a_note_is_kept_by_compactions_archival_and_writes_without_sources(tmp_path: Path, version: int) -> None:
    raw, derived = made(tmp_path, "raw", version), made(tmp_path, "derived", version)
    raw.upsert(rows(0.5))
    raw.compact(before=at(2))
    instant = derived.upsert(rows(0), sources={raw: raw.freshness()}).instant
    for hour in range(8):
        derived.upsert(rows(hour))
        derived.compact(before=at(20 + hour))
        derived.clean()
        derived.archive()
    assert instant not in {one.instant for one in derived.history()}
    assert derived.freshness().watermark_ms == at(2)


def test_a_note_is_found_in_the_archive_where_other_engines_wrote_since(tmp_path: Path, version: int) -> None:
    raw, derived = made(tmp_path, "raw", version), made(tmp_path, "derived", version)
    raw.upsert(rows(0.5))
    raw.compact(before=at(2))
    derived.upsert(rows(0), sources={raw: raw.freshness()})
    derived.compact(before=at(20))
    state = derived.state()
    notes = source_notes(derived._application.files, state)
    with pytest.MonkeyPatch.context() as patch:  # as other engines would write
        patch.setattr(type(derived._application.append), "_noted", lambda *_: {})
        patch.setattr(type(state), "carried_metadata", lambda *_, **__: {})
        for hour in range(8):
            derived.upsert(rows(hour))
            derived.compact(before=at(21 + hour))
            derived.clean()
            derived.archive()
    assert not derived.state().said_of_sources().notes
    assert source_notes(derived._application.files, derived.state()) == notes
    assert derived.freshness().watermark_ms == at(2)


def test_a_write_that_is_rolled_back_takes_its_note_along(tmp_path: Path, version: int) -> None:
    raw, derived = made(tmp_path, "raw", version), made(tmp_path, "derived", version)
    raw.upsert(rows(0.5))
    raw.compact(before=at(2))
    derived.upsert(rows(0), sources={raw: raw.freshness()})
    derived.compact(before=at(20))
    raw.compact(before=at(4))
    wrong = derived.upsert(rows(3), sources={raw: raw.freshness()})
    assert [one.progress_ms for one in derived.freshness().sources] == [at(4)]
    derived.rollback(wrong.instant)
    assert [one.progress_ms for one in derived.freshness().sources] == [at(2)]


def test_windows_note_their_end_and_corrections_keep_it(tmp_path: Path, version: int) -> None:
    raw, derived = made(tmp_path, "raw", version), made(tmp_path, "derived", version)
    raw.upsert(rows(0.5, 1.5, 2.5))
    raw.compact(before=at(3))
    for window in raw.windows("1h", "derive"):
        derived.upsert(window.to_arrow().select(["id", "ms"]), sources={raw: window})
        window.done()
    assert [note.watermark_ms for note in derived.state().said_of_sources().notes] == [at(3)]
    raw.upsert(rows(0.75))
    raw.compact(before=at(3))
    corrections = 0
    for window in raw.windows("1h", "derive"):
        assert window.is_correction
        corrections += 1
        written = derived.upsert(window.to_arrow().select(["id", "ms"]), sources={raw: window})
        assert derived.state().said_of_sources().notes[0].noted_at == written.instant
        window.done()
    assert corrections == 1
    assert [note.watermark_ms for note in derived.state().said_of_sources().notes] == [at(3)]


def test_the_end_of_a_chain_waits_for_the_raw_data(tmp_path: Path) -> None:
    raw, hourly, daily = (made(tmp_path, name) for name in ("raw", "hourly", "daily"))
    raw.upsert(rows(0.5, 1.5, 2.5))
    hourly.upsert(rows(0), sources={raw: raw.compact(before=at(1))})
    result = hourly.compact(before=at(9))
    raw.compact(before=at(3))  # the hourly table does not have that yet
    hourly.upsert(rows(1, 2), sources={raw: raw.freshness()})
    daily.upsert(rows(0), sources={hourly: result})
    daily.compact(before=at(9))
    assert daily.freshness().watermark_ms == at(1), "the view of the hourly table was made of the first hour alone"
    assert run("freshness", daily.uri, "--require", str(at(1))).exit_code == 0
    late = run("freshness", daily.uri, "--require", str(at(3)), "--output", "json")
    assert late.exit_code == 1
    assert [one["progress_ms"] for one in json.loads(late.stdout)["sources"]] == [at(1)]
    hourly.compact(before=at(9))
    daily.upsert(rows(0), sources={hourly: hourly.freshness()})
    daily.compact(before=at(9))
    assert daily.freshness().watermark_ms == at(3)


def test_the_status_draws_the_chain_and_names_the_table_that_holds_back_the_end(tmp_path: Path) -> None:
    raw, hourly, daily = (made(tmp_path, name) for name in ("raw", "hourly", "daily"))
    raw.upsert(rows(0.5, 4.5))
    hourly.upsert(rows(0), sources={raw: raw.compact(before=at(2))})
    daily.upsert(rows(0), sources={hourly: hourly.compact(before=at(5))})
    daily.compact(before=at(5))
    entry = status(daily)
    assert entry["watermark_ms"] == at(2)
    assert entry["chain"]["held_back_by"].endswith("raw"), "no later table waits for anything"
    raw.compact(before=at(4))
    assert status(daily)["chain"]["held_back_by"].endswith("hourly"), "it has not taken what the raw table has"
    drawn = run("status", daily.uri).stdout
    assert drawn.index("/daily:") < drawn.index("/hourly:") < drawn.index("/raw:")
    assert "held back by" in drawn
    daily.upsert(rows(4.75))
    daily.upsert(rows(0.25))
    assert status(daily)["chain"]["held_back_by"].endswith("daily"), "its own late record"
    assert status(raw)["chain"] is None


def test_a_source_that_cannot_be_read_ends_the_chain(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5))
    derived.upsert(rows(0), sources={raw: raw.compact(before=at(2))})
    derived.compact(before=at(9))
    (tmp_path / "raw").rename(tmp_path / "moved")
    assert status(derived)["chain"]["sources"][0]["problem"]
    assert derived.freshness().watermark_ms == at(2)


def test_what_does_not_say_how_much_was_read_is_refused(tmp_path: Path) -> None:
    raw, other, derived = (made(tmp_path, name) for name in ("raw", "other", "derived"))
    written: Any = raw.upsert(rows(0.5))
    with pytest.raises(ConfigError, match="does not say how much"):
        derived.upsert(rows(0), sources={raw: written})
    raw.compact(before=at(2))
    (window, *_) = iter_first(raw)
    with pytest.raises(ConfigError, match="not of"):
        derived.upsert(rows(0), sources={other: window})
    with pytest.raises(ConfigError, match="is the table itself"):
        derived.upsert(rows(0), sources={Table.open(derived.uri): derived.freshness()})
    assert not [one for one in derived.history() if one.records]


def iter_first(table: Table) -> list[Any]:
    return [next(iter(table.windows("1h", "first")))]


def test_the_notes_are_extra_metadata_of_the_commit(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5))
    instant = derived.upsert(rows(0), sources={raw: raw.compact(before=at(2))}).instant
    extra = derived.state().commits[instant].extra_metadata
    (key,) = [name for name in extra if name.startswith(SOURCE_PREFIX)]
    assert key == f"{SOURCE_PREFIX}0"
    assert json.loads(extra[key])["watermark_ms"] == at(2)


def test_wrong_sources_are_named_and_nothing_is_written(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    before = sorted((tmp_path / "derived").rglob("*"))
    wrong: list[Any] = [3, [raw], {"raw": raw.freshness()}, {raw: at(1)}, {raw: None}]
    for sources in wrong:
        with pytest.raises(ConfigError, match="sources"):
            derived.upsert(rows(0), sources=sources)
    assert sorted((tmp_path / "derived").rglob("*")) == before


@pytest.mark.parametrize(
    "write",
    [
        lambda table, sources: table.insert(rows(3), sources=sources),
        lambda table, sources: table.bulk_insert(rows(3), sources=sources),
        lambda table, sources: table.insert_overwrite(rows(3), sources=sources),
        lambda table, sources: table.insert_overwrite_table(rows(3), sources=sources),
        lambda table, sources: table.delete(rows(0), sources=sources),
        lambda table, sources: table.merge(rows(3), when_not_matched_insert="*", sources=sources),
        lambda table, sources: table.upsert(rows(3), columns="partial", sources=sources),
    ],
    ids=["insert", "bulk_insert", "insert_overwrite", "insert_overwrite_table", "delete", "merge", "some_columns"],
)
def test_each_write_notes_its_sources(write: Any, tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5))
    derived.upsert(rows(0))
    write(derived, {raw: raw.compact(before=at(2))})
    assert [note.watermark_ms for note in derived.state().said_of_sources().notes] == [at(2)]


def test_windows_of_a_derived_table_close_when_its_sources_had(tmp_path: Path) -> None:
    raw, hourly = made(tmp_path, "raw"), made(tmp_path, "hourly")
    raw.upsert(rows(0.5, 1.5, 2.5))
    hourly.upsert(rows(0.25, 1.25), sources={raw: raw.compact(before=at(2))})
    hourly.compact(before=at(9))

    def delivered() -> list[int]:
        windows = []
        for window in hourly.windows("1h", "report"):
            windows.append(window.begin_ms)
            window.done()
        return windows

    assert delivered() == [at(0), at(1)], "the raw table may still get rows of the third hour"
    hourly.upsert(rows(2.25), sources={raw: raw.compact(before=at(3))})
    assert delivered() == [], "no view has these rows yet"
    hourly.compact(before=at(9))
    assert delivered() == [at(2)]


def test_a_catalog_and_lineage_get_the_freshness_of_a_derived_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0.5))
    derived.upsert(rows(0), sources={raw: raw.compact(before=at(2))})
    derived.compact(before=at(9))
    catalog = MemoryCatalog()
    monkeypatch.setattr("eventide.catalog.open_catalog", lambda *_: catalog)
    derived.sync(database="lake")
    assert catalog.tables["lake", "derived_ro"].properties["hoodie.ro.event.time.watermark"] == str(at(2))

    application = derived._application
    done = application.runner.reached()
    assert done.freshness.watermark_ms == at(9)
    assert _with_sources(application, done).freshness.watermark_ms == at(2)


def test_the_option_says_for_every_write_what_its_rows_were_made_of(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0, 1))
    raw.compact(before=at(2))
    said = json.dumps({raw.uri: str(at(2))})
    Table.open(derived.uri, {**SOON, "eventide.sources": said}).upsert(rows(0))
    assert [one.progress_ms for one in derived.freshness().sources] == [at(2)]
    file = tmp_path / "rows.csv"
    file.write_text(f"id,ms\nk1,{at(1)}\n")
    raw.upsert(rows(3))
    raw.compact(before=at(4))
    later = json.dumps({raw.uri: str(at(4))})
    done = run("ingest", derived.uri, file, "--option", f"eventide.sources={later}")
    assert done.exit_code == 0, done.stderr
    assert [one.progress_ms for one in derived.freshness().sources] == [at(4)]
    refused = run("ingest", derived.uri, file, "--option", "eventide.sources=nonsense")
    assert refused.exit_code == 2
    assert "option eventide.sources='nonsense' is not JSON" in refused.stderr

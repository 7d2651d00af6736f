"""`eventide repair` where `hoodie.properties` and its backup are lost, on tables that real Hudi wrote."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.errors import ConfigError, NotAHudiTableError, RefusedError
from eventide_core.table.settings.properties import parse_properties
from support.faults.lost_settings import answers_of, lose_settings
from support.pasts import golden
from support.run.command_line import content_of, run
from support.tables.thresholds import dividing_plan

TABLES = [
    "v6_mdt",
    "v6_encoded",
    "v6_log_only",
    "v8_event_bucket",
    "v9_mdt",
    "v9_copy_on_write",
    "v9_archived",
    "v9_120_event",
]


def words(settings: dict[str, str]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--setting", f"{key}={value}")]


def _rows(path: Path) -> list[dict[str, Any]]:
    return sorted(Table.open(path).snapshot().to_arrow().to_pylist(), key=repr)


@pytest.mark.parametrize("name", TABLES)
def test_lost_settings_are_made_again_from_the_files_and_what_the_user_states(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = _rows(path)
    settings = lose_settings(path)
    damaged = content_of(path)

    listed = run("repair", path, "--output", "json")
    assert listed.exit_code == 1, listed.stderr
    known, missing = listed.document["settings"], listed.document["missing"]
    assert {key: one["value"] for key, one in known.items() if settings.get(key, "") != one["value"]} == {}
    assert missing.keys() >= {"hoodie.table.recordkey.fields", "hoodie.table.timeline.timezone"}
    refused = run("repair", path, "--apply")
    assert refused.exit_code == 2
    assert "no file records" in refused.stderr
    assert content_of(path) == damaged

    answers = answers_of(settings, missing)
    while (again := run("repair", path, *words(answers), "--output", "json").document)[
        "missing"
    ]:  # some depend on others
        answers |= answers_of(settings, again["missing"])
    assert content_of(path) == damaged
    applied = run("repair", path, *words(answers), "--apply")
    assert applied.exit_code == 0, applied.stderr
    assert _rows(path) == before
    assert run("verify", path, "--deep").exit_code == 0

    refused = run("repair", path, *words(answers), "--apply")
    assert refused.exit_code == RefusedError.exit_code
    assert "only a lost one is made again" in refused.stderr
    assert run("repair", path, "--undo").exit_code == 0
    with pytest.raises(NotAHudiTableError):
        Table.open(path)


def test_the_archived_files_tell_their_directory(tmp_path: Path) -> None:
    path = golden.unpack("v6_archived", tmp_path)
    (path / ".hoodie/archived").rename(path / ".hoodie/old")
    settings = lose_settings(path)
    listed = run("repair", path, "--output", "json").document
    assert listed["settings"]["hoodie.archivelog.folder"]["value"] == "old"
    assert settings["hoodie.archivelog.folder"] == "archived", "the golden table's own, before the move"


def test_commits_of_eventide_tell_the_key_and_ordering_fields(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    table = Table.open(path)
    table.compact(dividing_plan(table, "event_ts", "copy"))
    settings = lose_settings(path)
    found = Table.recover_settings(str(path))
    for key in ("hoodie.table.recordkey.fields", "hoodie.table.partition.fields", "hoodie.table.ordering.fields"):
        assert found.known[key].value == settings[key]
        assert found.known[key].evidence.startswith(".hoodie/timeline/")
    assert found.known["hoodie.datasource.write.hive_style_partitioning"].value == "true"
    with pytest.raises(
        ConfigError, match=r"ordering\.fields=id contradicts \.hoodie/timeline/.*, which has 'event_ts'"
    ):
        Table.recover_settings(str(path), {"hoodie.table.ordering.fields": "id"})


def test_a_stated_field_has_to_be_a_column(tmp_path: Path) -> None:
    path = golden.unpack("v6_mdt", tmp_path)
    lose_settings(path)
    with pytest.raises(ConfigError, match=r"recordkey\.fields=key: the table has no column key; it has id, "):
        Table.recover_settings(str(path), {"hoodie.table.recordkey.fields": "key"})


def test_a_directory_without_a_timeline_is_no_table(tmp_path: Path) -> None:
    assert "is not a Hudi table" in run("repair", tmp_path).stderr


@pytest.mark.parametrize("place", ["nowhere", "empty"])
def test_a_place_with_nothing_is_named_and_no_repair_is_advised(place: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shown = run("show", tmp_path / place)
    assert shown.exit_code == 2
    assert shown.stderr.endswith(f"{place} is not a Hudi table: nothing is there; check the path\n")
    assert run("repair", tmp_path / place).stderr == shown.stderr
    (tmp_path / "empty" / "part-0.parquet").touch()
    assert "`eventide repair TABLE` makes it again" in run("show", tmp_path / "empty").stderr


def test_an_interrupted_recovery_is_completed_by_the_next(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    settings = lose_settings(path)
    stated = answers_of(settings, Table.recover_settings(str(path)).missing)
    done = Table.recover_settings(str(path), stated, apply=True)
    file = path / ".hoodie" / "hoodie.properties"
    written = file.read_bytes()
    file.unlink()
    (path / ".hoodie" / ".backup" / str(done.backup) / "applied").unlink()
    again = run("repair", path, "--apply")  # what was stated before holds
    assert again.exit_code == 0, again.stderr
    assert file.read_bytes() == written


def test_whatever_decides_a_merge_is_asked_for(tmp_path: Path) -> None:
    path = golden.unpack("v9_mdt", tmp_path)
    partial = "hoodie.table.partial.update.mode"
    settings = {**lose_settings(path), partial: "IGNORE_DEFAULTS"}
    marker = "hoodie.record.merge.property.hoodie.payload.delete"
    missing = Table.recover_settings(path).missing
    assert {partial, f"{marker}.field"} <= missing.keys()
    assert f"{marker}.marker" in Table.recover_settings(path, {f"{marker}.field": "op"}).missing
    custom = Table.recover_settings(path, {"hoodie.record.merge.mode": "CUSTOM"}).missing
    assert {"hoodie.record.merge.strategy.id", "hoodie.compaction.payload.class"} <= custom.keys()
    Table.recover_settings(path, answers_of(settings, missing), apply=True)
    assert Table.open(path).properties[partial] == "IGNORE_DEFAULTS"


def _of_berlin(path: Path, version: int) -> Table:
    fields: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("part", pa.string())]
    schema = pa.schema([*fields, pa.field("at", pa.timestamp("us"))])
    options = {"eventide.event.time.zone": "Europe/Berlin", "hoodie.bucket.index.num.buckets": "3"}
    table = Table.create(
        str(path),
        schema=schema,
        record_key="id",
        partition="part",
        event_time="at",
        version=version,
        options=options,
    )
    table.upsert(
        pa.Table.from_pylist([{"id": "1", "part": "a", "at": datetime.fromisoformat("2026-03-03T00:30")}], schema)
    )
    return table


@pytest.mark.parametrize("version", [6, 9])
def test_lost_settings_for_writers_come_back_from_the_latest_commit(version: int, tmp_path: Path) -> None:
    """In another zone, local times are other event times; with another number of buckets, keys are elsewhere."""
    path = tmp_path / "t"
    _of_berlin(path, version)
    settings = lose_settings(path)
    found = Table.recover_settings(str(path))
    for key in (
        "eventide.event.time.zone",
        "hoodie.payload.event.time.field",
        "hoodie.index.type",
        "hoodie.bucket.index.num.buckets",
    ):
        assert found.known[key].value == settings[key]
    answers = answers_of(settings, found.missing)
    while missing := Table.recover_settings(str(path), answers).missing:
        answers |= answers_of(settings, missing)
    assert "eventide.event.time.zone" not in answers
    Table.recover_settings(str(path), answers, apply=True)
    recovered = parse_properties((path / ".hoodie" / "hoodie.properties").read_text())
    kept = ("eventide.", "hoodie.index.", "hoodie.bucket.", "hoodie.payload.event")
    assert {k: v for k, v in recovered.items() if k.startswith(kept)} == {
        k: v for k, v in settings.items() if k.startswith(kept)
    }
    assert Table.open(str(path)).verify().ok


def test_the_zone_of_local_times_is_asked_for_if_no_commit_records_it(tmp_path: Path) -> None:
    path = golden.unpack("v9_avro_types", tmp_path)
    settings = lose_settings(path)
    assert "Europe/Berlin" in Table.recover_settings(str(path)).missing["eventide.event.time.zone"]
    answers = {"eventide.event.time.zone": "Asia/Tokyo"}
    while missing := Table.recover_settings(str(path), answers).missing:
        answers |= answers_of(settings, missing)
    Table.recover_settings(str(path), answers, apply=True)
    assert Table.open(str(path)).state().config.event_time_texts.zone == "Asia/Tokyo"

"""Event times without a zone, timestamps and dates, are of the zone that the table states: cuts, gates, windows."""

from datetime import date, datetime
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from eventide import Table
from eventide_core.config import BUCKETS, EVENT_TIME_FORMAT, EVENT_TIME_ZONE
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.table.records.event_time import parse_threshold
from support.run.command_line import run, run_json

LOCAL: "pa.DataType" = pa.timestamp("us")
ZONE = str(EVENT_TIME_ZONE)
BERLIN = {ZONE: "Europe/Berlin"}
MIDNIGHT_UTC, MIDNIGHT_IN_BERLIN = "2026-03-03T00:00Z", "2026-03-02T23:00Z"
NOTE = f"event times in 'at' have no zone and are read as UTC: the table states no {ZONE}"


def _schema(kind: pa.DataType) -> pa.Schema:
    fields: list[pa.Field[Any]] = [pa.field("id", pa.string()), pa.field("at", kind), pa.field("seq", pa.int64())]
    return pa.schema(fields)


def _create(path: Path, options: dict[str, str], kind: pa.DataType = LOCAL, **words: Any) -> Table:
    words = {"ordering": "seq", "event_time": "at", "version": 9, **words}
    return Table.create(str(path), schema=_schema(kind), record_key="id", options={BUCKETS: "1", **options}, **words)


def _write(table: Table, *rows: tuple[str, datetime | date | None], kind: pa.DataType = LOCAL) -> None:
    dicts = [{"id": key, "at": at, "seq": 1} for key, at in rows]
    table.upsert(pa.Table.from_pylist(dicts, schema=_schema(kind)))


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _unstated(path: Path, kind: pa.DataType = LOCAL, **words: Any) -> Table:
    """A table as earlier versions made it: it states no zone."""
    table = _create(path, BERLIN, kind, **words)
    properties = path / ".hoodie/hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(ZONE)]
    properties.write_text("\n".join(lines))
    return Table.open(table.uri)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("ordering", ["seq", "at"])
@pytest.mark.parametrize("cut", ["file", "exact"])
def test_no_gate_is_met_while_a_row_of_the_day_before_lies_in_a_log(
    tmp_path: Path, version: int, ordering: str, cut: Literal["file", "exact"]
) -> None:
    """00:30 of Tuesday in Berlin is 23:30Z of Monday."""
    table = _create(tmp_path / "t", BERLIN, ordering=ordering, version=version)
    _write(table, ("a", _at("2026-03-02T12:00")))
    _write(table, ("b", _at("2026-03-02T23:30")), ("c", _at("2026-03-03T02:00")))
    opened = Table.open(table.uri)
    opened.compact(before=MIDNIGHT_IN_BERLIN, cut=cut)
    _write(opened, ("late", _at("2026-03-03T00:30")))
    opened.compact(before=MIDNIGHT_IN_BERLIN, cut=cut)
    assert opened.freshness().earliest_log_event_time_ms == parse_threshold("2026-03-02T23:30Z")
    assert run("freshness", table.uri, "--require", MIDNIGHT_IN_BERLIN).exit_code == 0
    assert run("freshness", table.uri, "--require", MIDNIGHT_UTC).exit_code == 1
    opened.compact(before=MIDNIGHT_UTC, cut=cut)
    assert run("freshness", table.uri, "--require", MIDNIGHT_UTC).exit_code == 0
    found = set(opened.read_optimized().to_arrow(["id"]).column("id").to_pylist())
    assert found == ({"a", "b", "late"} if cut == "exact" else {"a", "b", "c", "late"})
    assert run("verify", table.uri, "--deep").exit_code == 0


def test_a_date_is_its_first_moment_in_the_zone(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", BERLIN, pa.date32())
    _write(table, ("z", date(2026, 3, 1)), kind=pa.date32())
    _write(table, ("a", date(2026, 3, 3)), kind=pa.date32())
    assert table.freshness().earliest_log_event_time_ms == parse_threshold(MIDNIGHT_IN_BERLIN)


def test_windows_have_the_rows_of_their_hours(tmp_path: Path) -> None:
    table = _create(tmp_path / "t", BERLIN)
    _write(table, ("a", _at("2026-03-02T23:30")), ("b", _at("2026-03-03T00:30")), ("c", _at("2026-03-05T00:00")))
    table.compact(before="2026-03-04T00:00Z", cut="exact")
    windows = table.windows(every="1d", consumer="night", since="2026-03-02T00:00Z")
    window = next(iter(windows))
    assert window.rows().to_arrow(["id"]).column("id").to_pylist() == ["a", "b"]


@pytest.mark.parametrize("words", [{}, {"event_time": None, "ordering": "at"}], ids=["named", "by the ordering"])
@pytest.mark.parametrize("kind", [LOCAL, pa.timestamp("ms"), pa.date32()], ids=str)
def test_a_new_table_asks_for_the_zone_of_times_that_have_none(
    tmp_path: Path, kind: pa.DataType, words: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"'at' has times without a zone: set option eventide\.event\.time\.zone"):
        _create(tmp_path / "t", {}, kind, **words)
    assert not (tmp_path / "t").exists()
    assert _create(tmp_path / "t", {ZONE: "UTC"}, kind, **words).properties[ZONE] == "UTC"


def test_ingest_asks_for_the_zone_of_csv_times(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,at\na,2026-03-03 00:30:00\n")
    words = ["ingest", str(tmp_path / "t"), str(source), "--create", "--record-key", "id", "--event-time", "at"]
    refused = run(*words)
    assert refused.exit_code == 2
    assert "set option eventide.event.time.zone" in " ".join(refused.stderr.split())
    assert run(*words, "--option", f"{ZONE}=Europe/Berlin").exit_code == 0
    assert Table.open(str(tmp_path / "t")).properties[ZONE] == "Europe/Berlin"


@pytest.mark.parametrize("kind", [LOCAL, pa.date32()], ids=str)
def test_a_table_without_a_zone_is_read_as_utc_and_says_so(tmp_path: Path, kind: pa.DataType) -> None:
    table = _unstated(tmp_path / "t", kind)
    at = _at("2026-03-03T00:00") if kind == LOCAL else date(2026, 3, 3)
    _write(table, ("a", at), kind=kind)
    _write(table, ("a", at), kind=kind)
    assert table.freshness().earliest_log_event_time_ms == parse_threshold(MIDNIGHT_UTC)
    for verb in ("show", "freshness", "verify"):
        assert NOTE in " ".join(run(verb, table.uri).stdout.split()), verb
    assert NOTE in run_json("show", table.uri)["notes"]
    assert NOTE in run_json("freshness", table.uri)["notes"]
    assert any(NOTE in check["remarks"] for check in run_json("verify", table.uri)["checks"])
    assert NOTE in str(table.freshness())


@pytest.mark.parametrize("verb", ["show", "freshness", "verify"])
def test_a_table_with_a_zone_needs_no_note(tmp_path: Path, verb: str) -> None:
    table = _create(tmp_path / "t", BERLIN)
    _write(table, ("a", _at("2026-03-03T00:00")))
    assert "read as UTC" not in run(verb, table.uri).stdout


def test_an_option_states_the_zone_of_a_table_that_has_none(tmp_path: Path) -> None:
    """And figures that were written without it are not used."""
    table = _unstated(tmp_path / "t")
    _write(table, ("z", _at("2026-03-01T00:30")))
    _write(table, ("a", _at("2026-03-03T00:30")))
    berlin = Table.open(table.uri, BERLIN)
    assert berlin.freshness().earliest_log_event_time_ms == parse_threshold("2026-03-02T23:30Z")
    _write(berlin, ("b", _at("2026-03-03T00:15")))
    assert berlin.freshness().earliest_log_event_time_ms == parse_threshold("2026-03-02T23:15Z")
    assert table.freshness().earliest_log_event_time_ms == parse_threshold("2026-03-03T00:15Z")


def test_figures_of_a_version_that_took_the_option_for_texts_are_of_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It wrote event times of UTC, and named the zone beside them."""
    table = _unstated(tmp_path / "t")
    berlin = Table.open(table.uri, BERLIN)
    with monkeypatch.context() as patched:
        patched.setattr(
            "eventide_core.table.records.record_shape.RecordShape.event_time_source", "at zone=Europe/Berlin"
        )
        patched.setattr("eventide_adapters.format.encoding.columns.event_times.zone_of_local", lambda _: None)
        _write(berlin, ("z", _at("2026-03-01T00:30")))
        _write(berlin, ("a", _at("2026-03-03T00:30")))
    again = Table.open(table.uri, BERLIN)
    assert again.freshness().earliest_log_event_time_ms == parse_threshold("2026-03-02T23:30Z")


def test_a_cut_by_utc_is_never_continued_in_another_zone(tmp_path: Path) -> None:
    table = _unstated(tmp_path / "t")
    _write(table, ("z", _at("2026-03-01T00:30")))
    _write(table, ("a", _at("2026-03-03T00:30")))
    table.compact(before=MIDNIGHT_UTC)
    for act in (Table.freshness, lambda one: one.compact(before="2026-03-04T00:00Z"), _write_one):
        with pytest.raises(RefusedError, match=r"Europe/Berlin: the published cut is in terms of the event times 'at'"):
            act(Table.open(table.uri, BERLIN))
    assert Table.open(table.uri, {ZONE: "UTC"}).freshness().watermark_ms == parse_threshold(MIDNIGHT_UTC)
    zoned = _create(tmp_path / "zoned", BERLIN)
    _write(zoned, ("z", _at("2026-03-01T00:30")))
    zoned.compact(before=MIDNIGHT_UTC)
    with pytest.raises(ConfigError, match="was created with"):
        Table.open(zoned.uri, {ZONE: "UTC"}).freshness()


def _write_one(table: Table) -> None:
    _write(table, ("b", _at("2026-03-03T00:30")))


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        (pa.timestamp("us", "UTC"), BERLIN, "neither texts nor times without a zone"),
        (pa.int64(), BERLIN, "neither texts nor times without a zone"),
        (LOCAL, {**BERLIN, str(EVENT_TIME_FORMAT): "yyyy-MM-dd HH:mm"}, "'at' has no texts"),
    ],
)
def test_an_option_that_the_column_does_not_need_is_refused(
    tmp_path: Path, kind: pa.DataType, options: dict[str, str], why: str
) -> None:
    """At create, and on a table that exists."""
    with pytest.raises(ConfigError, match=f"{why}: omit it"):
        _create(tmp_path / "new", options, kind)
    table = _unstated(tmp_path / "t", kind) if kind == LOCAL else _create(tmp_path / "t", {}, kind)
    for _ in range(2):
        table.upsert(pa.table({"id": ["a"], "at": pa.array([1], pa.int64()).cast(kind), "seq": [1]}))
    for act in (Table.freshness, lambda one: one.compact(before=MIDNIGHT_UTC)):
        with pytest.raises(ConfigError, match=f"{why}: omit it"):
            act(Table.open(table.uri, options))


@pytest.mark.parametrize(
    ("local", "moment"),
    [("2026-10-25T02:30", "2026-10-25T00:30Z"), ("2026-03-29T02:30", "2026-03-29T01:00Z")],
    ids=["twice", "never"],
)
def test_a_time_that_clocks_have_twice_or_never_is_taken_for_the_earlier_one(
    tmp_path: Path, local: str, moment: str
) -> None:
    table = _create(tmp_path / "t", BERLIN)
    _write(table, ("z", _at("2026-01-01T00:00")))
    _write(table, ("a", _at(local)))
    assert table.freshness().earliest_log_event_time_ms == parse_threshold(moment)

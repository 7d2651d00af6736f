"""Sources: what vouches that everything before T has come, beside what the files of the table show."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest

from eventide import ConfigError, InvalidThresholdError, NotAHudiTableError, Table
from eventide.bootstrap import SystemClock
from eventide.rows.writer import incoming_records
from eventide_adapters.arrival import open as arrival
from eventide_adapters.entry_points import Adapters
from eventide_core.config import BUCKETS, Options
from eventide_core.errors import format_timestamp
from eventide_core.ports import NoProgress, SourceQuestion
from eventide_core.service.common.state.table import TableState
from eventide_core.service.write.append import Append
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.instant import instant_epoch_ms
from eventide_core.table.timeline.source_progress import SourceProgress
from support.run.command_line import run
from support.tables.hourly import HOUR_MS, SCHEMA, SOON, at, made, rows

pytestmark = pytest.mark.slow


@pytest.fixture(params=[6, 8, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    return made(tmp_path, "t", request.param)


def gate(table: Table, moment: int, *more: str) -> tuple[int, dict[str, Any]]:
    answer = run("freshness", table.uri, "--require", str(moment), "--output", "json", *more)
    document: dict[str, Any] = json.loads(answer.stdout)
    return answer.exit_code, document


def test_without_a_source_the_gate_says_that_it_rests_on_files(table: Table) -> None:
    table.upsert(rows(0, 1))
    table.compact(before=at(9))
    code, answer = gate(table, at(9))
    assert (code, answer["basis"], answer["sources"], answer["held_back_by"]) == (0, "files", [], None)
    said = run("freshness", table.uri)
    assert "basis: files" in said.stdout


def test_the_gate_is_the_lower_of_files_and_sources_and_names_it(table: Table) -> None:
    table.upsert(rows(0, 1), sources={"orders": at(2), "refunds": format_timestamp(at(3))})
    table.compact(before=at(9))
    code, answer = gate(table, at(3))
    assert (code, answer["watermark_ms"], answer["held_back_by"]) == (1, at(2), "orders")
    assert answer["files_watermark_ms"] == at(9)
    assert [(one["name"], one["kind"], one["progress_ms"]) for one in answer["sources"]] == [
        ("orders", "stated", at(2)),
        ("refunds", "stated", at(3)),
    ]
    assert gate(table, at(2))[0] == 0
    table.upsert(rows(1.5), sources={"orders": at(8), "refunds": at(8)})
    code, answer = gate(table, at(2))
    assert (code, answer["held_back_by"]) == (1, "files"), "the late row is in a log file"


def test_a_statement_that_goes_back_lowers_the_gate(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(5)})
    table.compact(before=at(9))
    table.upsert(rows(7), sources={"orders": at(2)})
    table.compact(before=at(9))
    assert table.freshness().watermark_ms == at(2)


def test_a_statement_outlives_compaction_clean_and_archival(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(2)})
    stated_at = table.state().timeline.writes[0].requested_time
    for hour in range(1, 8):
        table.upsert(rows(hour))
        table.compact(before=at(hour + 1))
        table.clean()
        table.archive()
    assert table.state().timeline.is_archived(stated_at)
    assert table.freshness().watermark_ms == at(2)
    assert stated_at in next(iter(table.sources)).evidence


def test_a_statement_goes_with_its_commit(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(2)})
    table.savepoint(table.state().timeline.writes[-1].requested_time)
    kept = table.state().timeline.writes[-1].requested_time
    later = table.upsert(rows(1), sources={"orders": at(5), "refunds": at(5)})
    assert [one.progress_ms for one in table.sources] == [at(5), at(5)]
    assert later.instant is not None
    table.rollback(later.instant)
    assert [(one.name, one.progress_ms) for one in table.sources] == [("orders", at(2))]
    table.upsert(rows(1), sources={"orders": at(6)})
    table.compact(before=at(9))
    table.restore(kept)
    assert [(one.name, one.progress_ms) for one in table.sources] == [("orders", at(2))]


def test_a_declared_source_that_never_spoke_holds_the_gate(table: Table) -> None:
    table.sources.declare("orders")
    table.upsert(rows(0))
    table.compact(before=at(9))
    code, answer = gate(table, at(1))
    assert (code, answer["watermark_ms"], answer["held_back_by"]) == (1, None, "orders")
    assert answer["sources"][0]["evidence"] == "no commit states how far it has come"
    table.upsert(rows(1), sources={"orders": at(4)})
    table.compact(before=at(9))
    assert gate(table, at(4))[0] == 0


def test_a_forgotten_source_is_needed_again_after_a_later_statement(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(2)})
    table.compact(before=at(9))
    assert run("sources", table.uri, "--forget", "orders", "--output", "json").exit_code == 0
    assert gate(table, at(9))[0] == 0
    assert table.freshness().basis == "files"
    table.upsert(rows(1))
    table.compact(before=at(9.5))
    assert table.freshness().basis == "files", "the write repeats what was stated before"
    table.upsert(rows(2), sources={"orders": at(3)})
    assert table.freshness().sources[0].progress_ms == at(3)


def test_silence_counts_as_progress_only_for_as_long_as_it_is_said(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(2)})
    table.compact(before=at(9))
    assert gate(table, at(2) + 1)[0] == 1
    code, answer = gate(table, at(2) + 1, "--idle", "1h")
    assert code == 0
    assert at(2) < answer["sources"][0]["progress_ms"] < at(3)
    assert answer["sources"][0]["idle_since_ms"] is not None
    table.sources.declare("orders", idle="1h")
    assert gate(table, at(2) + 1)[0] == 0


@pytest.mark.parametrize("text", ["yesterday", "2026-03-03", ""])
def test_what_another_writer_states_that_is_not_a_time_holds_the_gate(tmp_path: Path, text: str) -> None:
    table = made(tmp_path)
    application = table._application
    append = replace(application.append, stated={"orders": text})
    append.write(WriteOperation.UPSERT, incoming_records(application, WriteOperation.UPSERT, rows(0)), NoProgress())
    table.compact(before=at(9))
    fresh = table.freshness()
    assert fresh.watermark_ms is None
    assert "not a T" in fresh.sources[0].evidence


@pytest.mark.parametrize("key", ["orders.watermrk", "orders"])
def test_a_mistyped_key_of_another_writer_holds_the_gate_and_is_shown(tmp_path: Path, key: str) -> None:
    table = made(tmp_path)
    texts = {f"eventide.source.{key}": "hunter2", "eventide.source.clicks.watermark": str(at(1))}
    application = table._application
    incoming = incoming_records(application, WriteOperation.UPSERT, rows(0))
    application.append.write(WriteOperation.UPSERT, incoming, NoProgress(), extra_metadata=texts)
    table.compact(before=at(9))
    fresh = table.freshness()
    assert (fresh.watermark_ms, fresh.held_back_by) == (None, "orders")
    assert f"states 'eventide.source.{key}', which is not a T" in fresh.sources[1].evidence
    table.upsert(rows(1), sources={"orders": at(2)})
    assert [one.progress_ms for one in table.sources] == [at(1), at(2)]


def test_what_cannot_be_a_source_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows(0))
    before = table.state().timeline.instants
    with pytest.raises(InvalidThresholdError, match="'yesterday'"):
        table.upsert(rows(1), sources={"orders": "yesterday"})
    with pytest.raises(ConfigError, match="a name has letters"):
        table.upsert(rows(1), sources={"a b": at(1)})
    with pytest.raises(ConfigError, match="neither the name of a source nor a table"):
        table.upsert(rows(1), sources={3: at(1)})  # type: ignore[dict-item]
    with pytest.raises(ConfigError, match="the kind 'sundial' is unknown here; known are stated, table"):
        table.sources.declare("orders", "sundial")
    for secret in ("password", "passwd", "pwd", "api_key", "sas", "auth", "dsn"):
        with pytest.raises(ConfigError, match="every reader sees it"):
            table.sources.declare("orders", **{secret: "x"})
    with pytest.raises(ConfigError, match="is not a duration"):
        table.sources.declare("orders", idle="soon")
    with pytest.raises(ConfigError, match="the table has none of that name"):
        table.sources.forget("orders")
    assert run("ingest", table.uri, "nothing.csv", "--source", "orders").exit_code == 2
    assert table.state().timeline.instants == before
    assert "eventide.source" not in (tmp_path / "t/.hoodie/hoodie.properties").read_text()


def test_the_command_line_states_declares_and_shows(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps({"id": "a", "ms": at(0)}))
    table = made(tmp_path)
    done = run("ingest", table.uri, str(tmp_path / "rows.json"), "--source", f"orders={format_timestamp(at(2))}")
    assert done.exit_code == 0, done.stderr
    shown = run("sources", table.uri, "--declare", "clicks", "--set", "idle=2h", "--output", "json")
    assert [(one["name"], one["progress"]) for one in json.loads(shown.stdout)["sources"]] == [
        ("clicks", None),
        ("orders", format_timestamp(at(2))),
    ]
    assert "eventide.source.clicks.idle=2h" in (tmp_path / "t/.hoodie/hoodie.properties").read_text()
    assert run("sources", table.uri, "--forget", "clicks").exit_code == 0
    assert [one.name for one in table.sources] == ["orders"]
    assert run("sources", table.uri, "--kind", "stated").exit_code == 2


def test_windows_close_no_earlier_than_the_sources_have_come(table: Table) -> None:
    def ends() -> list[int]:
        found = list[int]()
        for window in table.windows(every="1h", consumer="c", since=at(0)):
            found.append(window.end_ms)
            window.done()
        return found

    table.upsert(rows(0.5, 1.5, 2.5), sources={"orders": at(1)})
    table.compact(before=at(3))
    assert ends() == [at(1)]
    table.upsert(rows(2.6), sources={"orders": at(2)})
    table.compact(before=at(3))
    assert ends() == [at(2)]


def test_partitions_and_status_and_report_have_the_same_answer(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows(0, 1), sources={"orders": at(2)})
    table.compact(before=at(9))
    assert {fresh.watermark_ms for fresh in table.freshness_by_partition().values()} == {at(2)}
    entry = json.loads(run("status", table.uri, "--output", "json").stdout)["tables"][0]
    assert entry["watermark_ms"] == at(2)
    assert "orders" in json.dumps(entry)
    fresh = table.report(tmp_path / "report.html").freshness
    assert fresh is not None
    assert fresh.watermark_ms == at(2)


def serve(table: Table, *more: str) -> dict[str, Any]:
    answer = run("serve", table.uri, "--rounds", "1", "--data-latency", "30m", "--output", "json", *more)
    assert answer.exit_code == 0, answer.stderr
    done: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return done


def test_a_service_publishes_no_later_cut_than_its_sources_have_come(table: Table) -> None:
    table.upsert(rows(0, 1, 2.5), sources={"orders": at(2)})
    assert serve(table)["watermark_ms"] == at(2)
    assert table.freshness().cut_ms == at(2)
    assert serve(table)["instant"] is None
    table.upsert(rows(2.6), sources={"orders": at(3)})
    assert serve(table)["watermark_ms"] == at(3)
    table.sources.declare("clicks")
    table.upsert(rows(2.7), sources={"orders": at(4)})
    idle = serve(table)
    assert (idle["instant"], idle["watermark_ms"]) == (None, None)
    assert "the source clicks holds the cut: no commit states how far it has come" in idle["idle"]


def test_a_view_does_not_rest_on_what_an_open_write_says_later(tmp_path: Path) -> None:
    """The write has an earlier instant than the compaction, and completes after it: the view has none of its rows."""
    table = made(tmp_path)
    table.upsert(rows(0.5, 1.5), sources={"orders": at(1)})
    application = table._application
    append = replace(application.append, stated={"orders": str(at(2))})
    opened = append.begin(
        WriteOperation.UPSERT, incoming_records(application, WriteOperation.UPSERT, rows(1.6)), NoProgress()
    )
    table.compact(before=at(3))
    append.complete(opened)
    view = table.watermarks()[-1]
    state = table.state()
    assert table.freshness().sources[0].progress_ms == at(2)
    assert application.arrival.watermark(state, view.compaction.requested_time, view.watermark_ms) == at(1)


def test_a_source_with_the_name_of_the_files_does_not_stand_for_them(table: Table) -> None:
    table.upsert(rows(0), sources={"files": at(9)})
    table.compact(before=at(2))
    assert table.freshness().watermark_ms == at(2)


def test_any_name_that_a_writer_states_can_be_forgotten_without_harm_to_the_settings(tmp_path: Path) -> None:
    table = made(tmp_path)
    application = table._application
    names = ("a b", "x=y", "#c", "é:z", "z\nhoodie.table.name=evil\nq")
    append = replace(application.append, stated={name: str(at(1)) for name in names})
    append.write(WriteOperation.UPSERT, incoming_records(application, WriteOperation.UPSERT, rows(0)), NoProgress())
    before = table.properties
    for name in names:
        table.sources.forget(name)
    assert [*table.sources] == []
    kept = {key: value for key, value in table.properties.items() if not key.startswith("eventide.source.")}
    assert kept == before


def test_what_was_forgotten_has_to_be_said_again(table: Table) -> None:
    table.upsert(rows(0), sources={"orders": at(9)})
    table.compact(before=at(9))
    table.sources.forget("orders")
    table.sources.declare("orders")
    assert table.freshness().watermark_ms is None


class Broken:
    def progress(self, _question: SourceQuestion) -> SourceProgress:
        raise OSError("the password is x")


def test_a_source_that_fails_as_it_is_asked_holds_the_gate_and_its_text_is_not_shown(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows(0))
    table.compact(before=at(9))
    application = table._application
    reader = replace(application.arrival, open_source=lambda _: Broken())
    replace(application.declared_sources, open_source=lambda _: Broken()).declare("ledger", "books", {})
    state = table.state()
    fresh = reader.freshness(state, application.freshness.now(state))
    assert fresh.watermark_ms is None
    assert fresh.sources[0].evidence == "it cannot be asked: OSError"


@dataclass(frozen=True)
class Talking:
    """It shows its settings. Its progress is the offset that the newest commit with one states."""

    settings: Mapping[str, str]
    asked: ClassVar[list[int]] = []

    def progress(self, question: SourceQuestion) -> SourceProgress:
        self.asked.append(len(question.commits))
        if self.settings.get("fails"):
            raise ConfigError(f"cannot log in: {self.settings}")
        texts = [commit.extra_metadata.get("eventide.source.orders.watermark") for commit in question.commits]
        offsets = [int(text.rpartition(":")[2]) for text in texts if text]
        shown = f"{self.settings}, of the last {len(texts)}"
        return SourceProgress("orders", "talking", offsets[0] if offsets else None, shown, cure=shown)


@pytest.fixture
def talking(monkeypatch: pytest.MonkeyPatch) -> None:
    factories = {"talking": f"{__name__}:talking_source"}
    monkeypatch.setattr(arrival, "SOURCES", Adapters("eventide.arrival", factories))


def talking_source(_name: str, settings: Mapping[str, str], _options: Options) -> Talking:
    return Talking(settings)


@pytest.mark.usefixtures("talking")
def test_what_a_source_shows_of_its_secrets_is_masked(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.sources.declare("orders", "talking", topic="trips")
    secret = ("--option", "eventide.source.orders.sasl_password=hunter2")
    shown = table.uri, {"eventide.source.orders.sasl_password": "hunter2"}
    (said,) = Table.open(*shown).sources
    assert "trips" in said.evidence
    assert "hunter2" not in said.evidence + said.cure
    with pytest.raises(ConfigError, match="cannot log in") as refused:
        tuple(Table.open(shown[0], {**shown[1], "eventide.source.orders.fails": "yes"}).sources)
    assert "hunter2" not in str(refused.value)
    answer = run("sources", table.uri, *secret)
    assert "hunter2" not in answer.stdout + answer.stderr


@pytest.mark.usefixtures("talking")
def test_a_secret_of_an_option_goes_only_where_options_say(tmp_path: Path) -> None:
    """Whoever writes the table's settings would else receive it."""
    table = made(tmp_path)
    table.sources.declare("orders", "talking", topic="trips", bootstrap_servers="stranger:9092")
    secret = {"eventide.source.orders.sasl_password": "hunter2"}
    with pytest.raises(ConfigError, match="the table alone says bootstrap_servers") as refused:
        tuple(Table.open(table.uri, secret).sources)
    assert "hunter2" not in str(refused.value)
    (said,) = Table.open(table.uri, {**secret, "eventide.source.orders.bootstrap_servers": "own:9092"}).sources
    assert "own:9092" in said.evidence


@pytest.mark.usefixtures("talking")
@pytest.mark.parametrize(
    ("setting", "value"),
    [("ssl_key_pem", "x"), ("at", "s3://key:word@lake/counts.csv"), ("pem", "-----BEGIN PRIVATE KEY-----")],
)
def test_a_declaration_keeps_no_secret_whatever_its_setting_is_called(tmp_path: Path, setting: str, value: str) -> None:
    table = made(tmp_path)
    with pytest.raises(ConfigError, match=f"{setting} would be kept in the table") as refused:
        table.sources.declare("orders", "talking", **{setting: value})
    assert value not in str(refused.value).removeprefix(f"source orders: {setting}")
    assert not any(key.startswith("eventide.source") for key in Table.open(table.uri).properties)


@pytest.mark.usefixtures("talking")
def test_a_source_that_is_asked_is_stated_in_its_own_words(table: Table) -> None:
    with pytest.raises(InvalidThresholdError):
        table.upsert(rows(0), sources={"orders": "trips,0:1"})
    table.sources.declare("orders", "talking")
    table.upsert(rows(0), sources={"orders": "trips,0:7"})
    stated_at = table.state().timeline.writes[-1].requested_time
    for hour in range(1, 8):
        table.upsert(rows(hour))
        table.compact(before=at(hour + 1))
        table.archive()
    assert table.state().timeline.is_archived(stated_at)
    assert [one.progress_ms for one in table.sources] == [7]
    table.upsert(rows(8), sources={"orders": "trips,0:5"})
    assert [one.progress_ms for one in table.sources] == [5]
    table.sources.forget("orders")
    table.sources.declare("orders", "talking")
    assert [one.progress_ms for one in table.sources] == [None]


@pytest.mark.usefixtures("talking")
def test_a_source_is_asked_of_a_view_without_what_an_open_write_says_later(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.sources.declare("orders", "talking")
    table.upsert(rows(0.5), sources={"orders": "trips,0:1"})
    application = table._application
    append = replace(application.append, stated={"orders": "trips,0:2"})
    opened = append.begin(
        WriteOperation.UPSERT, incoming_records(application, WriteOperation.UPSERT, rows(1.6)), NoProgress()
    )
    table.compact(before=at(3))
    append.complete(opened)
    state, compaction = table.state(), table.watermarks()[-1].compaction
    assert [one.progress_ms for one in table.sources] == [2]
    asked = application.arrival.progress(state, before=compaction.requested_time)
    assert [one.progress_ms for one in asked] == [1]


@dataclass(frozen=True)
class Register:
    """It was closed up to `closed_ms` at `said_ms`, or as it is asked, when the rows before had been written."""

    closed_ms: int
    said_ms: int | None = None
    writes_meanwhile: Callable[[], object] = int

    def progress(self, question: SourceQuestion) -> SourceProgress:
        self.writes_meanwhile()
        is_of_these = (self.said_ms or SystemClock().now_ms()) <= question.as_of_ms()
        return SourceProgress("orders", "register", self.closed_ms if is_of_these else None, "the register")


def test_what_a_source_says_later_closes_no_window_of_an_earlier_view(table: Table) -> None:
    """A row of the window waits in a log file: it came before the register was closed, and after the view."""
    table.upsert(rows(0.5))
    table.compact(before=at(1))
    table.upsert(rows(0.6))
    declare_register(table)
    state, view = table.state(), table.watermarks()[-1].compaction
    register = Register(at(1), instant_epoch_ms(state.timeline.writes[-1].requested_time))
    reader = replace(table._application.arrival, open_source=lambda _: register)
    assert reader.watermark(state, view.requested_time, at(1)) is None
    assert [one.progress_ms for one in reader.progress(state)] == [at(1)], "of the table as it is"
    table.compact(before=at(1))
    state, view = table.state(), table.watermarks()[-1].compaction
    assert reader.watermark(state, view.requested_time, at(1)) == at(1)


def test_what_a_source_says_of_rows_that_come_as_it_is_asked_opens_no_gate(table: Table) -> None:
    table.upsert(rows(0.5))
    table.compact(before=at(1))
    declare_register(table)
    state = table.state()
    other = Table.open(table.uri)
    registers = [Register(at(1)), Register(at(1), writes_meanwhile=lambda: other.upsert(rows(0.7)))]
    for register, progress_ms in zip(registers, (at(1), None), strict=True):
        reader = replace(table._application.arrival, open_source=Mock(return_value=register))
        assert [one.progress_ms for one in reader.progress(state)] == [progress_ms]


def declare_register(table: Table) -> None:
    declaring = replace(table._application.declared_sources, open_source=lambda _: Register(0))
    declaring.declare("orders", "register", {})


@pytest.mark.usefixtures("talking")
def test_windows_and_markers_ask_a_source_once_whatever_number_of_views_there_is(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.sources.declare("orders", "talking")
    for hour in (1, 2, 3):
        table.upsert(rows(hour - 0.5), sources={"orders": f"trips,0:{at(hour)}"})
        table.compact(before=at(hour))
    Talking.asked.clear()
    windows = []
    for window in table.windows(every="1h", consumer="c", since=at(0)):
        windows.append(window.end_ms)
        window.done()
    assert windows == [at(1), at(2), at(3)]
    assert len(Talking.asked) == 1
    marking = Table.open(table.uri, {"eventide.done.marker.every": "1h", "eventide.done.marker.since": str(at(0))})
    Talking.asked.clear()
    assert len(marking.mark_done()) == 3
    assert len(Talking.asked) == 1


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}/"])
def test_a_table_is_a_source_by_any_form_of_its_uri(tmp_path: Path, form: str) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0, 1))
    derived.sources.declare("trips", "table", table=form.format(raw.uri))
    assert [(one.kind, one.progress_ms) for one in derived.sources] == [("table", None)]
    derived.upsert(rows(0, 1), sources={raw: raw.compact(before=at(3))})
    assert [(one.name, one.progress_ms) for one in derived.sources] == [(f"file://{raw.uri}", at(3))]
    with pytest.raises(ConfigError, match="table is missing: the URI"):
        derived.sources.declare("trips", "table")
    with pytest.raises(NotAHudiTableError):
        derived.sources.declare("trips", "table", table=f"{raw.uri}s")


def test_a_table_that_settings_and_commits_name_differently_is_shown_with_both_names(tmp_path: Path) -> None:
    raw, derived = made(tmp_path, "raw"), made(tmp_path, "derived")
    raw.upsert(rows(0, 1))
    derived.upsert(rows(0, 1), sources={raw: raw.compact(before=at(3))})
    by_hand = {"eventide.source.trips.kind": "table", "eventide.source.trips.table": f"{raw.uri}/"}
    said = {one.name: one.evidence for one in Table.open(derived.uri, by_hand).sources}
    assert said["trips"] == f"no commit says how much of {raw.uri}/ was read; commits name file://{raw.uri}"


@pytest.fixture
def other_engine(monkeypatch: pytest.MonkeyPatch) -> Callable[[Table, str, float], None]:
    """A write as of an engine that repeats nothing, which states how far a source has come."""

    def write(table: Table, name: str, hour: float) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(Append, "_noted", lambda *_: {})
            incoming = incoming_records(table._application, WriteOperation.UPSERT, rows(hour))
            texts = {f"eventide.source.{name}.watermark": str(at(hour))} if name else {}
            table._application.append.write(WriteOperation.UPSERT, incoming, NoProgress(), extra_metadata=texts)

    return write


def archive_all(table: Table, write: Callable[[], None]) -> None:
    """Archives the writes so far behind others, and compactions that repeat nothing."""
    for _ in range(8):
        write()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(TableState, "carried_metadata", lambda *_, **__: {})
            table.compact(before=at(9))
        table.clean()
        table.archive()


def test_a_commit_repeats_also_what_only_the_archive_has(
    table: Table, other_engine: Callable[[Table, str, float], None]
) -> None:
    other_engine(table, "refunds", 1)
    archive_all(table, lambda: other_engine(table, "orders", 2))
    assert [one.name for one in table.state().said_of_sources().statements] == ["orders"]
    assert [one.name for one in table.sources] == ["orders", "refunds"]
    table.upsert(rows(3))
    assert [one.name for one in table.sources] == ["orders", "refunds"]
    table.compact(before=at(9))
    table.upsert(rows(4), sources={"orders": at(4)})
    assert [one.name for one in table.sources] == ["orders", "refunds"]


@pytest.mark.parametrize("version", [8, 9])
def test_of_archived_statements_the_one_that_completed_last_counts(
    tmp_path: Path, version: int, other_engine: Callable[[Table, str, float], None]
) -> None:
    options = {**SOON, BUCKETS: "64"}  # the writes share no file group
    table = Table.create(
        str(tmp_path / "t"), schema=SCHEMA, record_key="id", event_time="ms", version=version, options=options
    )
    application = table._application
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Append, "_noted", lambda *_: {})
        texts = {"eventide.source.orders.watermark": str(at(1))}
        incoming = incoming_records(application, WriteOperation.UPSERT, rows(1))
        opened = application.append.begin(WriteOperation.UPSERT, incoming, NoProgress(), extra_metadata=texts)
        other_engine(table, "orders", 2)
        application.append.complete(opened)
    assert [one.progress_ms for one in table.sources] == [at(1)]
    archive_all(table, lambda: other_engine(table, "", 2))
    assert not table.state().said_of_sources().statements
    assert [one.progress_ms for one in table.sources] == [at(1)]


def test_silence_after_a_view_closes_no_window_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source spoke again since, with a row that the view doesn't have."""
    table = made(tmp_path)
    table.sources.declare("orders", idle="1h")
    table.upsert(rows(0.2, 2.1), sources={"orders": at(2)})
    table.compact(before=at(9), cut="exact")
    later_ms = SystemClock().now_ms() + HOUR_MS * 9 // 10
    monkeypatch.setattr(SystemClock, "now_ms", lambda _: later_ms)
    table.upsert(rows(2.2), sources={"orders": at(2.1)})
    begun: list[float] = []
    for window in table.windows("30m", "c"):
        begun.append((window.begin_ms - at(0)) / HOUR_MS)
        window.done()
    assert begun == [0, 0.5, 1, 1.5]

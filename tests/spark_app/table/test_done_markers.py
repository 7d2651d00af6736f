"""`mark_done`: files and calls for windows that are complete by the files of a table and by its sources."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from eventide import ConfigError, Table
from eventide.table.done_markers import mark_done
from eventide_adapters.markers.calls import MarkerCalls
from eventide_core.config import MARKER_EVERY, MARKER_NAME, MARKER_SECRET, MARKER_SINCE, MARKER_TO, MARKER_ZONE, Options
from eventide_core.errors import MarkerError, UnsupportedTableError
from eventide_core.ports import NoProgress
from support.pasts import golden
from support.servers.receiver import RESET, SILENCE, Receiver, receiving
from support.tables.hourly import at, made, rows

pytestmark = pytest.mark.slow


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Two hours are closed, and the third one has begun."""
    found = made(tmp_path)
    found.upsert(rows(0.5, 1.5, 2.5))
    found.compact(before=at(2), cut="exact")
    return found


def mark(table: Table, **options: str) -> list[tuple[str, int]]:
    """The events, with the number of the hour."""
    application = Table.open(table.uri, dict(table.options))._application
    return hours(mark_done(application, Options({**table.options, MARKER_EVERY: "1h", **options})))


def hours(events: Any) -> list[tuple[str, int]]:
    return [(event.kind, round((event.begin_ms - at(0)) / 3_600_000)) for event in events]


def named(hour: int) -> str:
    return datetime.fromtimestamp(at(hour) / 1000, UTC).strftime("%Y-%m-%dT%H%M%z/_SUCCESS")


def test_markers_go_to_another_directory_by_their_window(table: Table, tmp_path: Path) -> None:
    assert mark(table, **{str(MARKER_TO): str(tmp_path / "elsewhere")}) == [("done", 0), ("done", 1)]
    found = sorted(str(path.relative_to(tmp_path / "elsewhere")) for path in (tmp_path / "elsewhere").rglob("_SUCCESS"))
    assert found == [named(0), named(1)]
    assert json.loads((tmp_path / "elsewhere" / named(1)).read_bytes()) == {
        "version": 1,
        "table": table._application.storage.root,
        "begin": "2023-11-14T23:00:00Z",
        "end": "2023-11-15T00:00:00Z",
        "basis": "files",
    }


def test_a_marker_of_a_later_version_is_not_withdrawn(table: Table, tmp_path: Path) -> None:
    place = {str(MARKER_TO): str(tmp_path / "elsewhere")}
    mark(table, **place)
    file = tmp_path / "elsewhere" / named(1)
    file.write_text(json.dumps({**json.loads(file.read_text()), "version": 2}))
    table.upsert(rows(1.7))
    with pytest.raises(UnsupportedTableError, match=r"_SUCCESS has version 2, .*use a newer eventide"):
        mark(table, **place)
    assert file.exists()


def test_a_table_that_was_moved_withdraws_the_markers_in_it(table: Table, tmp_path: Path) -> None:
    mark(table)
    Path(table.uri).rename(tmp_path / "moved")
    moved = Table.open(str(tmp_path / "moved"), dict(table.options))
    moved.upsert(rows(1.7))
    assert mark(moved) == [("reopened", 1)]
    assert not (tmp_path / "moved/.hoodie/.aux/eventide/done" / named(1)).exists()


def test_two_tables_share_neither_files_nor_ids(table: Table, tmp_path: Path, receiver: Receiver) -> None:
    other = made(tmp_path, "other")
    other.upsert(rows(0.5, 2.5))
    other.compact(before=at(2), cut="exact")
    place = {str(MARKER_TO): str(tmp_path / "elsewhere")}
    mark(table, **place)
    content = {path: path.read_bytes() for path in (tmp_path / "elsewhere").rglob("_SUCCESS")}
    with pytest.raises(MarkerError, match=f"marks a window of .*{table.uri}: use another directory"):
        mark(other, **place)
    assert {path: path.read_bytes() for path in (tmp_path / "elsewhere").rglob("_SUCCESS")} == content
    for one in (table, other):
        mark(one, **{str(MARKER_TO): receiver.url})
    ids = [call["id"] for call, *_ in receiver.calls]
    assert len(set(ids)) == len(ids) == 4
    assert {call["basis"] for call, *_ in receiver.calls} == {"files"}


def test_markers_begin_where_they_began(table: Table) -> None:
    assert mark(table, **{str(MARKER_SINCE): str(at(1))}) == [("done", 1)]
    with pytest.raises(
        ConfigError, match="the markers began with the window of 2023-11-14T23:00:00Z, not of 2023-11-15T00"
    ):
        mark(table, **{str(MARKER_SINCE): str(at(2))})


def test_a_restore_to_before_all_views_withdraws_each_marker(tmp_path: Path) -> None:
    found = made(tmp_path)
    found.upsert(rows(0.5, 1.5, 2.5))
    instant = found.state().timeline.writes[-1].requested_time
    found.savepoint(instant)
    found.compact(before=at(2), cut="exact")
    assert mark(found) == [("done", 0), ("done", 1)]
    found.restore(instant)
    assert sorted(mark(found)) == [("reopened", 0), ("reopened", 1)]


def test_since_leaves_out_earlier_windows(table: Table) -> None:
    assert mark(table, **{str(MARKER_SINCE): str(at(1))}) == [("done", 1)]


def test_a_row_of_1970_asks_for_the_first_window(table: Table) -> None:
    table.upsert(rows(of_1970(0.5)))
    table.compact(before=at(2), cut="exact")
    windows = table.windows("1h", "c")
    for asked in (windows.progress, lambda: next(iter(windows)), lambda: mark(table)):
        with pytest.raises(ConfigError, match=r"is 1970-01-01T00:30:00Z, so 472,\d+ windows would come first; .*since"):
            asked()
    assert mark(table, **{str(MARKER_SINCE): str(at(1))}) == [("done", 1)]
    assert mark(table, **{str(MARKER_SINCE): str(at(1))}) == []


def test_a_renewal_after_a_row_of_1970_delivers_windows_that_have_rows(tmp_path: Path) -> None:
    table = made(tmp_path)
    table.upsert(rows(0.5, 1.5))
    saved = table.upsert(rows(1.6, 2.5)).instant
    table.savepoint(saved)
    table.compact(before=at(2), cut="exact")
    assert begins(table) == [0, 1]
    table.restore(saved)
    table.upsert(rows(of_1970(0.5)))
    table.compact(before=at(2), cut="exact")
    assert begins(table) == [of_1970(0), 0, 1]


def begins(table: Table) -> list[float]:
    found = []
    for window in islice(table.windows("1h", "c", renew=True), 4):
        found.append((window.begin_ms - at(0)) / 3_600_000)
        window.done()
    return found


def of_1970(hour: float) -> float:
    return hour - at(0) / 3_600_000


def test_late_data_before_the_first_window_marks_nothing(table: Table) -> None:
    assert mark(table) == [("done", 0), ("done", 1)]
    table.upsert(rows(-5))
    table.compact(before=at(2), cut="exact")
    assert mark(table) == []


def test_a_source_that_goes_back_reopens_windows_and_a_silent_one_holds_new_ones(table: Table) -> None:
    assert mark(table) == [("done", 0), ("done", 1)]
    table.sources.declare("refunds")
    table.upsert(rows(2.6), sources={"orders": at(3)})
    table.compact(before=at(3), cut="exact")
    assert mark(table) == []  # refunds has never spoken: nothing is done, and nothing reopened
    table.sources.forget("refunds")
    assert mark(table) == [("done", 2)]
    table.upsert(rows(3.5), sources={"orders": at(1.5)})
    assert mark(table) == [("reopened", 1), ("reopened", 2)]
    table.upsert(rows(3.6), sources={"orders": at(3)})
    assert mark(table) == [("done", 1), ("done", 2)]


def test_a_restore_reopens_what_it_undid(table: Table) -> None:
    instant = table.state().timeline.writes[-1].requested_time
    table.savepoint(instant)
    table.upsert(rows(3.5))
    table.compact(before=at(3), cut="exact")
    assert mark(table) == [("done", 0), ("done", 1), ("done", 2)]
    table.restore(instant)
    assert mark(table)[:1] == [("reopened", 2)]
    table.compact(before=at(3), cut="exact")
    assert mark(table)[-1:] == [("done", 2)]


def test_a_round_of_the_service_marks_windows(table: Table) -> None:
    options = {**table.options, str(MARKER_EVERY): "1h", "hoodie.compaction.event.time.threshold": str(at(3))}
    table.upsert(rows(3.5))
    done = Table.open(table.uri, options).service().round(NoProgress())
    assert done.troubles == ()
    assert hours(done.marked) == [("done", 0), ("done", 1), ("done", 2)]
    assert [one["event"] for one in done.to_json()["marked"]] == ["done"] * 3


def test_a_service_that_is_reported_to_end_marks_no_further_window(table: Table) -> None:
    options = {**table.options, str(MARKER_EVERY): "1h"}
    application = Table.open(table.uri, options)._application
    answers = iter((True, False))
    done = mark_done(application, Options(options), lambda: next(answers))
    assert hours(done) == [("done", 0)]
    assert mark(table) == [("done", 1)]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("_SUCCESS", {}),
        ("%H/_SUCCESS", {}),
        ("%Y-%m-%d/_SUCCESS", {}),
        ("%Y-%m-%dT%I/_SUCCESS", {}),
        ("%Y/%m/%Y-%m-%dT%H/_SUCCESS", {}),
        ("%Y-%m-%dT%H/_SUCCESS", {str(MARKER_ZONE): "Africa/Casablanca"}),
        ("%Y-%m-%dT%H/_SUCCESS", {str(MARKER_ZONE): "Europe/Berlin"}),
        ("/%Y-%m-%dT%H", {}),
        ("../%Y-%m-%dT%H", {}),
        (".hoodie/%Y-%m-%dT%H", {}),
        ("%Y-%m-%dT%H/.hoodie_partition_metadata", {}),
    ],
)
def test_a_name_that_is_of_several_windows_or_of_hudi_is_refused(table: Table, name: str, more: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="marker"):
        mark(table, **{str(MARKER_NAME): name, **more})


def test_a_secret_without_a_url_and_a_user_in_one_are_refused(table: Table) -> None:
    with pytest.raises(ConfigError, match="only calls are signed"):
        mark(table, **{str(MARKER_SECRET): "hush"})
    with pytest.raises(ConfigError, match="contains a user") as failure:
        mark(table, **{str(MARKER_TO): "https://user:hush@example.com/hook"})
    assert "hush" not in str(failure.value)
    for url in ("http://[::1", "https://a..b/hush", "https://example.com/hüsh", "https:///hush"):
        with pytest.raises(ConfigError, match="is not a URL") as failure:
            mark(table, **{str(MARKER_TO): url})
        assert url not in str(failure.value)


def test_a_copy_on_write_table_has_no_windows(tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack("v9_copy_on_write", tmp_path)), {MARKER_EVERY: "1h"})
    with pytest.raises(UnsupportedTableError):
        table.mark_done()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    impatient = partial(MarkerCalls, timeout_seconds=0.5, sleep=lambda _: None)
    monkeypatch.setattr("eventide.table.done_markers.MarkerCalls", impatient)
    with receiving() as found:
        yield found


def received(receiver: Receiver) -> list[tuple[str, int]]:
    return [(event, round((begin_ms - at(0)) / 3_600_000)) for event, begin_ms in receiver.events]


def test_a_url_is_told_each_event_in_order_and_signed(table: Table, receiver: Receiver) -> None:
    options = {str(MARKER_TO): receiver.url, str(MARKER_SECRET): "s3cret"}
    assert mark(table, **options) == received(receiver) == [("done", 0), ("done", 1)]
    for call, headers, body in receiver.calls:
        signature = hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
        assert headers["X-Eventide-Signature"] == f"sha256={signature}"
        assert headers["X-Eventide-Event"] == call["id"]
        assert call["table"] == table._application.storage.root
    kept = b"".join(path.read_bytes() for path in Path(table.uri).rglob("*") if path.is_file())
    assert b"s3cret" not in kept
    assert b"hush" not in kept


@pytest.mark.parametrize("answer", [500, 503, 429, RESET, SILENCE])
def test_a_call_that_fails_twice_is_made_again(table: Table, receiver: Receiver, answer: int | None) -> None:
    receiver.answers = [answer, answer]
    assert mark(table, **{str(MARKER_TO): receiver.url}) == received(receiver) == [("done", 0), ("done", 1)]


@pytest.mark.parametrize("answers", [[500] * 3, [RESET] * 3, [404], [302]])
def test_an_event_that_nobody_takes_is_told_again_before_any_later_one(
    table: Table, receiver: Receiver, answers: list[int | None]
) -> None:
    receiver.answers = [200, *answers]
    table = Table.open(table.uri, {**table.options, MARKER_EVERY: "1h", MARKER_TO: receiver.url})
    with pytest.raises(MarkerError) as failure:
        table.mark_done()
    assert "127.0.0.1" in str(failure.value)
    assert "hush" not in str(failure.value)
    assert received(receiver) == [("done", 0)]
    assert receiver.answers == []
    assert hours(table.mark_done()) == [("done", 1)]
    assert received(receiver) == [("done", 0), ("done", 1)]


def test_an_event_whose_answer_was_lost_comes_again_with_its_id(table: Table, receiver: Receiver) -> None:
    """The receiver has it, and the service dies before it knows."""
    options = {**table.options, MARKER_EVERY: "1h", MARKER_TO: receiver.url, "eventide.done.marker.lease": "1s"}
    dying = Table.open(table.uri, options)
    storage = dying._application.storage
    put, count = storage.put_if_absent, [0]

    def dies(path: str, data: bytes) -> bool:
        if "/windows/done-" in path and path.endswith(".json"):
            count[0] += 1
            if count[0] == 4:  # view, begin, open, done
                raise KeyboardInterrupt
        return put(path, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(storage), "put_if_absent", lambda _, path, data: dies(path, data))
        with pytest.raises(KeyboardInterrupt):
            dying.mark_done()
    assert len(receiver.calls) == 1
    again = Table.open(table.uri, options)
    held = again._application.clock
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(held), "now_ms", lambda _: datetime.now(UTC).timestamp() * 1000 + 2000)
        again.mark_done()
    assert len(receiver.calls) == 3
    assert received(receiver) == [("done", 0), ("done", 1)]

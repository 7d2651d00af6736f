"""Event times that cannot be read: refused by a write, and the gate says so where another writer left them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from eventide import Table
from eventide.rows.given import CutName
from eventide_core.config import BUCKETS
from eventide_core.errors import ConfigError, InvalidRecordError
from eventide_core.service.write.settings import write_shape
from support.run.command_line import run, run_json

COLUMNS: "list[pa.Field[Any]]" = [pa.field("id", pa.string()), pa.field("at", pa.string()), pa.field("seq", pa.int64())]
SCHEMA = pa.schema(COLUMNS)
T = "2026-11-21T00:00Z"


def _table(path: Path, version: int) -> Table:
    return Table.create(
        str(path),
        schema=SCHEMA,
        record_key="id",
        ordering="seq",
        event_time="at",
        version=version,
        options={BUCKETS: 1},
    )


def _rows(*rows: tuple[str, str | None, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


@pytest.fixture(params=[6, 9])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Table:
    made = _table(tmp_path / "t", request.param)
    made.upsert(_rows(("a", "2026-11-20T01:00Z", 1), ("b", None, 1)))
    return made


@pytest.fixture
def other_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of another engine: it asks nothing of event times, and its blocks and stats state none."""

    def shape(*args: Any) -> Any:
        found = write_shape(*args)
        layout = replace(found.layout, notes_event_times=False, tracks_event_times=False)
        return replace(found, refuses_unreadable_times=False, layout=layout)

    monkeypatch.setattr("eventide_core.service.write.append.write_shape", shape)


@pytest.mark.parametrize("value", ["2026-11-20 03:00:00", "11/20/2026 03:00", "20261120030000", "soon", ""])
def test_a_write_refuses_them_before_anything_is_written(table: Table, value: str) -> None:
    before = table.state().timeline
    with pytest.raises(
        InvalidRecordError, match=r"row 1: the event time .* in column 'at' cannot be read: give ISO-8601"
    ):
        table.upsert(_rows(("b", "2026-11-20T02:00Z", 2), ("c", value, 2)))
    assert table.state().timeline == before


@pytest.mark.usefixtures("other_writer")
@pytest.mark.parametrize("cut", ["file", "exact"])
def test_the_gate_stays_shut_until_they_are_merged(table: Table, cut: CutName) -> None:
    table.compact(before=T, cut=cut)
    table.upsert(_rows(("a", "2026-11-20 03:00:00", 2), ("b", "2026-11-22T00:00Z", 2), ("d", None, 2)))
    table.upsert(_rows(("e", "2026-11-23T00:00Z", 3)))
    answer = run("freshness", table.uri, "--require", T)
    assert answer.exit_code == 1
    log = next(found.log_files[-2] for found in table.state().view.latest_slices())
    assert f"{log.path}: key 'a' has the event time '2026-11-20 03:00:00'" in answer.stdout
    document = run_json("freshness", table.uri)
    assert (document["watermark_ms"], document["unreadable_event_time_records"]) == (None, 1)
    assert document["unknown_event_time_records"] == 1
    report = run("report", table.uri, "--to", f"{table.uri.removeprefix('file://')}.html")
    assert "watermark  none, held back by 1 record whose event time cannot be read" in report.stdout
    plan = run("plan", table.uri, "--before", T, "--cut", cut)
    assert "1 record with an event time that cannot be read" in " ".join(plan.stdout.split())
    deep = run("verify", table.uri, "--deep")
    assert "key 'a' has '2026-11-20 03:00:00'" in " ".join(deep.stdout.split())

    table.compact(before=T, cut=cut)
    assert run("freshness", table.uri, "--require", T).exit_code == 0
    shown = {row["id"]: row["at"] for row in table.read_optimized().to_arrow(["id", "at"]).to_pylist()}
    assert shown["a"] == "2026-11-20 03:00:00"


def test_nulls_keep_the_gate_shut_only_on_request(table: Table) -> None:
    table.compact(before=T, cut="file")
    table.upsert(_rows(("b", None, 2), ("c", "2026-11-22T00:00Z", 2)))
    answer = run("freshness", table.uri, "--require", T)
    assert answer.exit_code == 0
    assert "1 record without an event time in log files" in answer.stdout
    assert run("freshness", table.uri, "--require", T, "--no-nulls").exit_code == 1


@pytest.mark.parametrize("kind", [pa.bool_(), pa.binary(), pa.list_(pa.int64())])
def test_a_column_that_can_hold_no_time_is_no_event_time(tmp_path: Path, kind: pa.DataType) -> None:
    schema = SCHEMA.append(pa.field("flag", kind))
    with pytest.raises(ConfigError, match="event-time field 'flag' has a type that cannot be an event time"):
        Table.create(str(tmp_path / "t"), schema=schema, record_key="id", ordering="seq", event_time="flag")


def test_a_text_that_only_orders_versions_need_not_be_a_time(tmp_path: Path) -> None:
    table = Table.create(str(tmp_path / "t"), schema=SCHEMA, record_key="id", ordering="at", options={BUCKETS: 1})
    table.upsert(_rows(("a", "v1", 1)))
    table.upsert(_rows(("a", "v2", 2)))
    assert table.freshness().unreadable_event_time_records == 1

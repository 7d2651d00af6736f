"""One cut of several tables: each as of the same event time, or none."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import eventide
from eventide import ConfigError, InvalidThresholdError, Table, WatermarkNotFoundError
from eventide_core.errors import RefusedError
from eventide_core.service.rollback.savepoint import Savepoints
from support.run.command_line import run
from support.tables.hourly import EPOCH_MS, HOUR_MS, at, made, rows

pytestmark = pytest.mark.slow


def hours(found: pa.Table) -> list[float]:
    times: list[Any] = found["ms"].to_pylist()
    return sorted((ms - EPOCH_MS) / HOUR_MS for ms in times)


@pytest.fixture(params=[6, 9])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Table, Table]:
    orders, refunds = (made(tmp_path, name, request.param) for name in ("orders", "refunds"))
    for table, early, late in ((orders, (0, 1), 2.5), (refunds, (0.5, 1.5), 3.5)):
        table.upsert(rows(*early))  # the first file of a bucket is a base file
        table.upsert(rows(late))
    return orders, refunds


def test_the_newest_view_of_t_is_read_and_kept(tables: tuple[Table, Table]) -> None:
    """A late row is in the cut once a compaction at the same T has merged it; the cut before stays without it."""
    for table in tables:
        table.compact(before=at(2), cut="exact")
    first = eventide.at(at(2), tables)
    tables[0].upsert(rows(1.25))
    tables[0].compact(before=at(2), cut="exact")
    second = eventide.at(at(2), tables)
    assert (hours(first[tables[0]].to_arrow()), hours(second[tables[0]].to_arrow())) == ([0, 1], [0, 1, 1.25])
    for cut, name in ((first, "first"), (second, "second")):
        cut.tag(name)
        kept = tables[0].read_optimized(tag=name)
        assert hours(kept.to_arrow()) == hours(cut[tables[0]].to_arrow())
        for table in tables:
            table.delete_tag(name)


def test_each_table_is_read_as_of_the_same_time(tables: tuple[Table, Table]) -> None:
    orders, refunds = tables
    orders.compact(before=at(2), cut="exact")
    refunds.compact(before=at(2), cut="exact")
    cut = eventide.at(at(2), tables)
    orders.compact(before=at(9), cut="exact")
    refunds.upsert(rows(1.75))
    refunds.compact(before=at(9), cut="exact")
    assert (hours(cut[orders].to_arrow()), hours(cut[refunds.uri].to_arrow())) == ([0, 1], [0.5, 1.5])
    assert hours(orders.read_optimized().to_arrow()) == [0, 1, 2.5]
    with pytest.raises(ConfigError, match="the cut has no table 'elsewhere'"):
        cut["elsewhere"]


def test_a_table_that_is_behind_is_named_with_what_holds_it_back(tables: tuple[Table, Table]) -> None:
    orders, refunds = tables
    orders.compact(before=at(9))
    refunds.compact(before=at(1))
    with pytest.raises(WatermarkNotFoundError, match=rf"{refunds.uri} is behind, at .*; compact up to T") as behind:
        eventide.at(at(2), tables)
    assert f"{orders.uri} is behind" not in str(behind.value)
    refunds.compact(before=at(9))
    refunds.upsert(rows(8), sources={"returns": at(1)})
    refunds.compact(before=at(9))
    with pytest.raises(WatermarkNotFoundError, match="held back by its source returns"):
        eventide.at(at(2), tables)


def test_a_view_from_before_the_sources_had_come_is_no_cut(tables: tuple[Table, Table]) -> None:
    """The row of 1.5 is in the table by the time that the source vouches for, and isn't in the view."""
    orders, _ = tables
    orders.upsert(rows(0.5), sources={"shop": at(1)})
    orders.compact(before=at(2), cut="exact")
    orders.upsert(rows(1.5), sources={"shop": at(2)})
    orders.compact(before=at(3), cut="exact")
    assert orders.freshness().has_reached(at(2))
    with pytest.raises(WatermarkNotFoundError, match=rf"the view of {orders.uri} at that time .* before its sources"):
        eventide.at(at(2), [orders])
    orders.upsert(rows(2.5), sources={"shop": at(3)})
    orders.compact(before=at(3), cut="exact")
    assert hours(eventide.at(at(3), [orders])[orders].to_arrow()) == [0, 0.5, 1, 1.5, 2.5]


def test_what_is_no_cut_is_refused(tables: tuple[Table, Table]) -> None:
    orders, _ = tables
    with pytest.raises(ConfigError, match="is not a table"):
        eventide.at(at(1), [orders, "refunds"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="one or more different tables"):
        eventide.at(at(1), [orders, orders])
    with pytest.raises(ConfigError, match="one or more different tables"):
        eventide.at(at(1), [])
    with pytest.raises(InvalidThresholdError):
        eventide.at("yesterday", tables)


def test_freshness_of_several_tables_is_one_answer(tables: tuple[Table, Table]) -> None:
    orders, refunds = tables
    orders.compact(before=at(9))
    refunds.compact(before=at(2))
    answer = run("freshness", orders.uri, refunds.uri, "--require", str(at(3)), "--output", "json")
    document = json.loads(answer.stdout)
    assert (answer.exit_code, document["met"], document["watermark_ms"]) == (1, False, at(2))
    assert document["behind"] == [refunds.uri]
    assert [one["met"] for one in document["tables"]] == [True, False]
    said = run("freshness", orders.uri, refunds.uri, "--require", str(at(3)))
    assert f"{refunds.uri} is at" in said.stdout
    assert run("freshness", orders.uri, refunds.uri, "--require", str(at(2))).exit_code == 0
    assert run("freshness", orders.uri, refunds.uri, "--by", "partition").exit_code == 2


def test_a_cut_is_tagged_whole_or_not_at_all(tables: tuple[Table, Table], monkeypatch: pytest.MonkeyPatch) -> None:
    _, refunds = tables
    for table in tables:
        table.compact(before=at(2), cut="exact")
    save_tag = Savepoints.save_tag

    def fails(savepoints: Savepoints, *words: Any, **more: Any) -> Any:
        if savepoints.files.storage.root.endswith(refunds.uri):
            raise RefusedError("no")
        return save_tag(savepoints, *words, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Savepoints, "save_tag", fails)
        with pytest.raises(RefusedError):
            eventide.at(at(2), tables).tag("month")
    assert [table.tags() for table in tables] == [(), ()]
    tags = eventide.at(at(2), tables).tag("month")
    assert [tag.instant for tag in tags] == [table.tags()[0].instant for table in tables]
    assert eventide.at(at(2), tables).tag("month") == tags
    refunds.delete_tag("month")
    with monkeypatch.context() as patch:
        patch.setattr(Savepoints, "save_tag", fails)
        with pytest.raises(RefusedError):
            eventide.at(at(2), tables).tag("month")
    assert [len(table.tags()) for table in tables] == [1, 0], "a tag of an earlier call stays"


def test_a_run_that_was_killed_between_two_tags_is_ended_by_the_next_one(tables: tuple[Table, Table]) -> None:
    orders, refunds = tables
    for table in tables:
        table.compact(before=at(2), cut="exact")
    cut = eventide.at(at(2), tables)
    cut._keep(orders, "month", cut._about)
    done = run("tag", orders.uri, refunds.uri, "--before", str(at(2)), "--name", "month", "--output", "json")
    assert done.exit_code == 0, done.stderr
    assert [one["table"] for one in json.loads(done.stdout)["tables"]] == [orders.uri, refunds.uri]
    orders.compact(before=at(9))
    assert hours(orders.read_optimized(tag="month").to_arrow()) == [0, 1]
    assert run("tag", orders.uri, refunds.uri, "--before", str(at(8))).exit_code == 2
    assert run("tag", orders.uri, "a", "b").exit_code == 2

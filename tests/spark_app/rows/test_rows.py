"""A query's rows as other libraries take them, filters in every form, and which partitions a filter leaves out."""

import sys
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide import ConfigError, InstantNotFoundError, InvalidFilterError, InvalidThresholdError, Table
from eventide.notebook import html_facts
from eventide.rows.row_filter import filter_expression, selected
from eventide_adapters.format.slice.merge.slice_reader import ArrowSliceReader
from eventide_core.table.files.slice_read import BlockFilter, QueryPlan, SliceRead
from eventide_core.table.settings.table_config import TableConfig
from support.pasts import golden
from support.values.columns import schema_of


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return Table.open(str(golden.unpack("v9_event_bucket", tmp_path_factory.mktemp("golden"))))


def test_rows_are_a_stream_of_arrow(table: Table) -> None:
    rows = table.snapshot()
    assert pa.table(rows).equals(pa.Table.from_batches(rows.to_batches()))
    assert len(rows) == rows.to_arrow().num_rows > 0


def test_rows_are_a_data_frame_of_pandas(table: Table) -> None:
    frame = table.snapshot().to_pandas(["id", "part"], "part = 'a'")
    assert list(frame.columns) == ["id", "part"]
    assert set(frame["part"]) == {"a"}


def test_rows_are_a_data_frame_of_polars(table: Table) -> None:
    frame = table.snapshot().to_polars(["id"])
    assert frame.to_arrow()["id"].to_pylist() == table.snapshot().to_arrow(["id"])["id"].to_pylist()


def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ConfigError, match=r"to_duckdb needs duckdb: run `pip install duckdb`"):
        table.snapshot().to_duckdb()


def test_duckdb_queries_the_rows(table: Table) -> None:
    relation = table.snapshot().to_duckdb(["part"])
    by_part = relation.aggregate("part, count(*)").order("part").fetchall()
    rows = table.snapshot().to_arrow(["part"])
    counts = rows.group_by("part").aggregate([([], "count_all")]).sort_by("part")
    assert by_part == [(one["part"], one["count_all"]) for one in counts.to_pylist()]


@pytest.mark.parametrize(
    "row_filter", ["part = 'a'", pc.field("part") == "a", [("part", "=", "a")]], ids=["sql", "arrow", "list"]
)
def test_every_form_of_a_filter_keeps_the_same_rows_and_leaves_out_other_partitions(
    table: Table, row_filter: Any
) -> None:
    rows = table.snapshot()
    everything = rows.to_arrow()
    kept = rows.to_arrow(None, row_filter)
    assert 0 < kept.num_rows < everything.num_rows
    assert kept.sort_by("id").equals(everything.filter(pc.field("part") == "a").sort_by("id"))
    expression = filter_expression(row_filter, rows.schema)
    assert {one.partition for one in rows.reading(None, expression).slices} == {"part=a"}
    assert {one.partition for one in rows.plan.slices} > {"part=a"}


@pytest.mark.parametrize(
    "row_filter", ["nothing = 1", [("part", "~", 1)], [("part",)], [("part", "=", 3)], [("part", "in", "a")], 7]
)
def test_a_filter_that_does_not_fit_is_reported(table: Table, row_filter: Any) -> None:
    with pytest.raises(InvalidFilterError):
        table.snapshot().to_arrow(None, row_filter)


SCHEMA = schema_of(day=pa.string(), hour=pa.int32(), x=pa.int64())
VALUES = st.text(alphabet="ab=/%1 ", max_size=4)


def _config(*, hive: bool, encoded: bool, keygen: str) -> TableConfig:
    return TableConfig.parse(
        "hoodie.table.version=9\nhoodie.table.type=MERGE_ON_READ\nhoodie.table.name=t\nhoodie.table.recordkey.fields=x\n"
        "hoodie.record.merge.mode=COMMIT_TIME_ORDERING\nhoodie.table.partition.fields=day,hour\n"
        f"hoodie.table.keygenerator.class=org.apache.hudi.keygen.{keygen}\n"
        f"hoodie.datasource.write.hive_style_partitioning={str(hive).lower()}\n"
        f"hoodie.datasource.write.partitionpath.urlencode={str(encoded).lower()}\n",
        "t",
    )


def _plan(*partitions: str) -> QueryPlan:
    blocks = BlockFilter(frozenset(), None)
    slices = tuple(SliceRead(path, str(n), None, (), blocks) for n, path in enumerate(partitions))
    return QueryPlan(slices, None)  # type: ignore[arg-type]  # a filter does not look at it


@given(
    rows=st.lists(st.tuples(VALUES, st.integers(-3, 3)), min_size=1, max_size=5),
    wanted=st.tuples(VALUES, st.integers(-3, 3)),
    is_or=st.booleans(),
    hive=st.booleans(),
    encoded=st.booleans(),
)
def test_no_partition_with_a_row_that_the_filter_keeps_is_left_out(
    rows: list[tuple[str, int]], wanted: tuple[str, int], is_or: bool, hive: bool, encoded: bool
) -> None:
    config = _config(hive=hive, encoded=encoded, keygen="ComplexKeyGenerator")
    day, hour = pc.field("day") == wanted[0], pc.field("hour") >= wanted[1]
    condition = day | hour if is_or else day & hour
    paths = [_path(row, hive=hive, encoded=encoded) for row in rows]
    kept = {one.partition for one in selected(_plan(*paths), condition, SCHEMA, config, is_by_path=True).slices}
    for row, path in zip(rows, paths, strict=True):
        is_wanted = (
            (row[0] == wanted[0] or row[1] >= wanted[1]) if is_or else (row[0] == wanted[0] and row[1] >= wanted[1])
        )
        assert not is_wanted or path in kept


def _path(row: tuple[str, int], *, hive: bool, encoded: bool) -> str:
    """A row's partition path, as Hudi makes it."""
    texts = [row[0] or "__HIVE_DEFAULT_PARTITION__", str(row[1])]
    if encoded:
        texts = ["".join(f"%{ord(c):02X}" if c in "=/% " else c for c in text) for text in texts]
    return "/".join(f"{name}={text}" if hive else text for name, text in zip(("day", "hour"), texts, strict=True))


def test_partitions_are_left_out_by_each_part_of_a_filter() -> None:
    config = _config(hive=True, encoded=False, keygen="ComplexKeyGenerator")
    plan = _plan("day=a/hour=1", "day=a/hour=2", "day=b/hour=1", "day=__HIVE_DEFAULT_PARTITION__/hour=1")

    def kept(condition: str) -> list[str]:
        expression = filter_expression(condition, SCHEMA)
        assert expression is not None
        return [one.partition for one in selected(plan, expression, SCHEMA, config, is_by_path=True).slices]

    null_day = "day=__HIVE_DEFAULT_PARTITION__/hour=1"
    assert kept("day = 'a' and x > 3") == ["day=a/hour=1", "day=a/hour=2", null_day]
    assert kept("hour = 2") == ["day=a/hour=2"]
    assert kept("hour > 1 or day = 'b'") == ["day=a/hour=2", "day=b/hour=1", null_day]
    assert kept("x = 1") == [one.partition for one in plan.slices]
    assert kept("day is null") == [null_day]


def test_no_partition_is_left_out_where_a_path_does_not_say_the_values() -> None:
    plan = _plan("2026/11", "a/1")
    condition = pc.field("day") == "z"
    for keygen in ("TimestampBasedKeyGenerator", "UserDefinedKeyGenerator"):
        assert (
            selected(plan, condition, SCHEMA, _config(hive=False, encoded=False, keygen=keygen), is_by_path=True).slices
            == plan.slices
        )


def test_a_table_returns_its_schema_version_properties_and_history(table: Table) -> None:
    assert table.schema == table.snapshot().schema
    assert table.version == 9
    assert table.properties["hoodie.table.version"] == "9"
    history = table.history()
    assert [one.instant for one in history] == sorted((one.instant for one in history), reverse=True)
    assert sum(one.records or 0 for one in history) > 0
    assert table.history(2) == history[:2]
    assert str(history[0]).startswith(history[0].instant)


def test_t_is_a_datetime_with_a_zone(table: Table) -> None:
    moment = datetime(2026, 11, 21, 1, tzinfo=UTC)
    opened = Table.open(table.uri, {"hoodie.payload.event.time.field": "event_ts"})
    assert opened.plan_compaction(before=moment).cut_ms == int(moment.timestamp() * 1000)
    with pytest.raises(InvalidThresholdError, match="with a zone"):
        opened.plan_compaction(before=datetime(2026, 11, 21))  # noqa: DTZ001


def test_a_query_takes_datetimes_with_a_zone(table: Table) -> None:
    last, first = table.history()[0].instant, table.history()[-1].instant
    begin, end = (datetime.strptime(f"{text}000 +0000", "%Y%m%d%H%M%S%f %z") for text in (first, last))
    oslo = timezone(timedelta(hours=1))
    assert table.as_of(end.astimezone(oslo)).to_arrow() == table.as_of(last).to_arrow()
    assert table.incremental(begin, end).to_arrow() == table.incremental(first, last).to_arrow()
    with pytest.raises(InstantNotFoundError, match="no time zone"):
        table.as_of(datetime(2026, 11, 21))  # noqa: DTZ001


def test_a_table_a_plan_and_rows_say_what_they_are(table: Table) -> None:
    opened = Table.open(table.uri, {"hoodie.payload.event.time.field": "event_ts"})
    plan = opened.plan_compaction(before=datetime(2026, 11, 21, tzinfo=UTC))
    assert "merge-on-read, version 9, keyed by id, partitioned by part" in repr(opened)
    assert "31 log files" in repr(plan)
    assert "before 2026-11-21T00:00:00Z" in repr(plan)
    assert "31 log files" in repr(opened.snapshot())
    assert "watermark: none" in str(opened.freshness())
    for large in (opened.verify(), opened.describe()):
        assert len(repr(large).replace(table.uri, "")) < 200
    for shown in (opened, plan, opened.freshness()):
        text = str(getattr(shown, "_repr_html_")())  # noqa: B009 - a notebook looks it up by name
        assert text.startswith("<table>")
        assert text.count("<tr>") == text.count("</tr>") >= 4


def test_a_name_of_the_table_is_no_markup() -> None:
    assert "<b>" not in html_facts("<b>", [("<b>", "<b>&\x1b")])


def test_a_limit_reads_that_many_rows_and_opens_no_slice_behind_them(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table.snapshot()
    total = len(rows)
    assert rows.limit(3).to_arrow().num_rows == len(rows.limit(3)) == rows.head(3).num_rows == 3
    assert rows.limit(3).limit(5).count() == 3
    assert rows.limit(0).to_arrow().schema == rows.schema
    assert rows.limit(total + 1).to_arrow().equals(pa.Table.from_batches(rows.to_batches()))
    read: list[str] = []
    reading = ArrowSliceReader.read

    def noted(reader: ArrowSliceReader, one: SliceRead, *words: Any) -> Any:
        read.append(one.file_id)
        return reading(reader, one, *words)

    monkeypatch.setattr(ArrowSliceReader, "read", noted)
    assert rows.limit(1).to_arrow().num_rows == 1
    assert len(read) == 1 < len(rows.plan.slices)
    with pytest.raises(ConfigError, match="limit must be 0 or more, not -1"):
        rows.limit(-1)


def test_rows_are_counted_by_footers_where_a_slice_is_only_a_base_file(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in (table.snapshot(), table.read_optimized(), table.incremental("earliest")):
        assert rows.count() == rows.to_arrow().num_rows
        assert rows.count("part = 'a'") == rows.to_arrow(filter="part = 'a'").num_rows > 0
    expected = table.read_optimized().to_arrow().num_rows

    def no_read(*_: Any) -> Any:
        raise AssertionError("a footer is sufficient")

    monkeypatch.setattr(ArrowSliceReader, "read", no_read)
    assert table.read_optimized().count() == expected > 0


def test_a_notebook_shows_the_first_rows_without_hudis_own_columns(table: Table) -> None:
    shown = table.snapshot()._repr_html_()
    assert shown.count("<tr>") == min(20, len(table.snapshot())) + 1
    assert "_hoodie_commit_time" not in shown

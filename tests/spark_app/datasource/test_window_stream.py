"""Windows of event time as a stream: each batch is one window, whatever dies and whoever else runs."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from eventide import Table
from eventide.datasource.source import EventideSource
from eventide.datasource.window_stream import WindowStream, with_window_columns
from eventide.options.queries import AS_OF, QUERY_TYPE
from eventide.options.streams import STREAM_IDENTIFIER, STREAM_START
from eventide.options.windows import CONSUMER, EVERY, SINCE, TAKE_OVER, TIME_ZONE
from eventide_core.config import BUCKETS, CLOCK_SKEW_MS
from eventide_core.errors import ConfigError, UnsupportedTableError, WindowTakenError
from support.pasts import golden
from support.values.columns import schema_of

SCHEMA = schema_of(id=pa.string(), part=pa.string(), at=pa.timestamp("us", "UTC"))
EIGHT = datetime(2026, 3, 2, 8, tzinfo=UTC)
HOURLY: dict[str, str] = {EVERY: "1h", CONSUMER: "billing"}

BROAD = pytest.mark.broad
Offset = dict[str, Any]
Batch = tuple[str, bool, list[str]]


def make(path: Path, **words: Any) -> Table:
    given = {"record_key": "id", "partition": "part", "event_time": "at", **words}
    return Table.create(str(path / "t"), schema=SCHEMA, options={BUCKETS: "1", CLOCK_SKEW_MS: "1"}, **given)


def put(table: Table, *rows: tuple[str, datetime | None]) -> None:
    table.upsert(pa.Table.from_pylist([{"id": key, "part": "p", "at": at} for key, at in rows], schema=SCHEMA))


def filled(path: Path) -> Table:
    """Rows at 8, 8:30 and 10 o'clock; the windows of 8, 9 and 10 are closed."""
    table = make(path)
    put(table, ("a", EIGHT), ("b", EIGHT + timedelta(minutes=30)), ("c", EIGHT + timedelta(hours=2)))
    table.compact(before=EIGHT + timedelta(hours=3), cut="exact")
    return table


def stream(table: Table, options: Mapping[str, str] | None = None) -> WindowStream:
    asked = from_arrow_schema(with_window_columns(table.read_optimized().schema))
    return WindowStream(table.uri, {**table.options, **HOURLY, **(options or {})}, asked)


def batch(source: WindowStream, start: Offset, end: Offset) -> list[str]:
    """The IDs of a micro-batch, read as executors do."""
    found = [one for part in source.partitions(start, end) for one in source.read(part)]
    for one in found:
        assert set(one["_window_token"].to_pylist()) == {end["token"]}
        assert set(one["_window_is_correction"].to_pylist()) == {end["is_correction"]}
        for at, begin, until in zip(*(one[n].to_pylist() for n in ("at", "_window_begin", "_window_end")), strict=True):
            assert begin <= at < until
            assert f"{begin:%Y-%m-%dT%H:%M}" == end["begin"][:16]
    return sorted(str(key) for one in found for key in one["id"].to_pylist())


class Query:
    """What Spark does: a log of offsets and one of commits, both of which last."""

    def __init__(self) -> None:
        self.offsets: list[Offset] = []
        self.committed = 0

    def start(self, source: WindowStream, batches: int = 100, dies_before: str = "") -> list[Batch]:
        """Runs up to that many batches, the last of which dies before that step."""
        found: list[Batch] = []
        if self.offsets:
            source.partitions(self.offsets[-1], self.offsets[-1])
        while len(found) < batches:
            is_last = len(found) == batches - 1
            before = self.offsets[self.committed - 1] if self.committed else source.initialOffset()
            if self.committed == len(self.offsets):
                offset = source.latestOffset()
                if offset == before or (is_last and dies_before == "offset"):
                    return found
                self.offsets.append(offset)
                if self.committed:
                    source.commit(before)
            end = self.offsets[-1]
            found.append((end["begin"][11:16], end["is_correction"], batch(source, before, end)))
            if is_last and dies_before == "commit":
                return found
            self.committed += 1
        return found


ALL: list[Batch] = [("08:00", False, ["a", "b"]), ("09:00", False, []), ("10:00", False, ["c"])]


def test_each_batch_is_a_window_and_an_idle_stream_has_done_all(tmp_path: Path) -> None:
    table, query = filled(tmp_path), Query()
    source = stream(table)
    assert query.start(source) == ALL
    progress = table.windows("1h", "billing").progress()
    assert progress.open is None
    put(table, ("late", EIGHT), ("d", EIGHT + timedelta(hours=3)))
    table.compact(before=EIGHT + timedelta(hours=4), cut="exact")
    late: list[Batch] = [("08:00", True, ["a", "b", "late"]), ("11:00", False, ["d"])]
    assert query.start(source) == late
    assert query.start(stream(table)) == []


@pytest.mark.parametrize(
    ("step", "died_in", "name"),
    [
        pytest.param(step, died_in, name, marks=() if died_in == 1 and (name is None or step == "offset") else BROAD)
        for step in ("offset", "commit", "")
        for died_in in (1, 2, 3)
        for name in (None, "hourly")
    ],
)
def test_a_crash_anywhere_gives_the_same_rows_again_and_none_twice(
    step: str, died_in: int, name: str | None, tmp_path: Path
) -> None:
    table, query = filled(tmp_path), Query()
    options: dict[str, str] = {} if name is None else {STREAM_IDENTIFIER: name}
    before = query.start(stream(table, options), died_in, step)
    put(table, ("late", EIGHT), ("c", EIGHT + timedelta(hours=2, minutes=1)))
    table.compact(before=EIGHT + timedelta(hours=3, minutes=30), cut="exact")
    if step == "offset" and died_in == 1 and name is None:
        # Nothing distinguishes this stream from another runner, so it waits for the lease, or takes over.
        assert query.start(stream(table)) == []
        options = {TAKE_OVER: "true"}
    after = query.start(stream(table, options))
    if step == "commit":
        assert after[0] == before[-1]
        after = after[1:]
    told = [(begin, ids) for begin, is_correction, ids in [*before, *after] if not is_correction]
    assert [begin for begin, _ in told] == ["08:00", "09:00", "10:00"]
    assert {begin: ids for begin, _, ids in [*before, *after]}["08:00"] == ["a", "b", "late"]
    assert len(before) + len(after) <= 5


def test_an_offset_that_made_no_batch_is_offered_again(tmp_path: Path) -> None:
    """Of a query of two sources, whose other one failed."""
    table = filled(tmp_path)
    source = stream(table)
    offset = source.latestOffset()
    assert source.latestOffset() == offset
    assert batch(source, source.initialOffset(), offset) == ["a", "b"]


def test_two_streams_of_a_consumer_get_no_window_both(tmp_path: Path) -> None:
    table = filled(tmp_path)
    one, other = stream(table), stream(table)
    found, both = list[Batch](), (Query(), Query())
    for _ in range(4):
        for query, source in zip(both, (one, other), strict=True):
            found += query.start(source, 1, "")
    # The first one held its window in between, and the other one had no batch.
    assert found == ALL
    assert both[1].offsets == []


def test_a_stream_whose_window_was_taken_fails_and_goes_on_with_a_new_checkpoint(tmp_path: Path) -> None:
    table, query = filled(tmp_path), Query()
    slow = stream(table)
    assert query.start(slow, 1) == ALL[:1]
    other = Query()
    assert other.start(stream(table, {TAKE_OVER: "true"})) == ALL
    with pytest.raises(WindowTakenError, match=r"08:00.*billing is no longer this stream's"):
        slow.latestOffset()
    assert query.start(stream(table)) == []  # its batch is in the checkpoint
    query.committed = 0
    with pytest.raises(WindowTakenError, match="new checkpoint"):
        query.start(stream(table))
    assert Query().start(stream(table)) == []


def test_days_of_a_clock_change_and_rows_without_event_time(tmp_path: Path) -> None:
    table = make(tmp_path, ordering="id")
    night = datetime(2026, 3, 28, 23, tzinfo=UTC)
    put(table, ("none", None), *((f"{hour:02}", night + timedelta(hours=hour)) for hour in range(24)))
    table.compact(before=night + timedelta(hours=23), cut="exact")
    source = stream(table, {EVERY: "1d", TIME_ZONE: "Europe/Berlin"})
    start, end = source.initialOffset(), source.latestOffset()
    assert (end["begin"], end["end"]) == ("2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z")
    assert batch(source, start, end) == [f"{hour:02}" for hour in range(23)]
    assert source.latestOffset() == end


def test_a_window_of_an_older_view_has_the_columns_of_today(tmp_path: Path) -> None:
    table = filled(tmp_path)
    stream(table).latestOffset()
    table.alter(add={"fare": "double"})
    source = stream(table, {TAKE_OVER: "true"})
    found = [b for p in source.partitions(source.initialOffset(), source.latestOffset()) for b in source.read(p)]
    assert [(row["part"], row["fare"]) for one in found for row in one.to_pylist()] == [("p", None), ("p", None)]


def test_a_schema_of_few_columns_reads_these(tmp_path: Path) -> None:
    table = filled(tmp_path)
    for names in (["_window_begin"], ["id", "_window_end"], ["id"]):
        schema = with_window_columns(table.read_optimized().schema)
        asked = from_arrow_schema(pa.schema([schema.field(name) for name in names]))
        source = WindowStream(table.uri, {**table.options, **HOURLY, CONSUMER: "-".join(names)}, asked)
        found = [b for p in source.partitions(source.initialOffset(), source.latestOffset()) for b in source.read(p)]
        assert (sum(map(len, found)), found[0].schema.names) == (2, names)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({EVERY: ""}, "needs the options windows"),
        ({CONSUMER: ""}, "needs the options windows"),
        ({CONSUMER: "a/b"}, "consumer 'a/b'"),
        ({EVERY: "7m"}, "windows"),
        ({AS_OF: "20260302"}, "omit as.of.instant"),
        ({STREAM_START: "latest"}, f"{SINCE} states"),
        ({QUERY_TYPE: "snapshot"}, "omit hoodie.datasource.query.type"),
    ],
)
def test_a_stream_refuses_what_it_cannot_have(options: dict[str, str], told: str, tmp_path: Path) -> None:
    table = filled(tmp_path)
    source = EventideSource({"path": table.uri, **HOURLY, **options})
    with pytest.raises(ConfigError, match=told):
        source.streamReader(from_arrow_schema(SCHEMA))


def test_windows_are_a_stream_of_tables_that_have_a_watermark(tmp_path: Path) -> None:
    table = filled(tmp_path)
    source = EventideSource({"path": table.uri, **HOURLY})
    assert source.schema().names[-4:] == ["_window_begin", "_window_end", "_window_is_correction", "_window_token"]
    with pytest.raises(ConfigError, match="readStream"):
        source.reader(source.schema())
    copied = Table.open(golden.unpack("v6_copy_on_write", tmp_path / "cow"))
    with pytest.raises(UnsupportedTableError):
        EventideSource({"path": copied.uri, **HOURLY}).streamReader(from_arrow_schema(SCHEMA))
    with pytest.raises(ConfigError, match="_window_end"):
        with_window_columns(pa.schema([pa.field("_window_end", pa.int64())]))

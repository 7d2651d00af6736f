"""What a log holds, as a planner asks: event times, deletes, instants, and the histories of keys in two sides of a slice."""

import io
import itertools
import json
import pickle
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from struct import pack
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from eventide_adapters.format.encoding.avro.decode import iter_avro_block
from eventide_adapters.format.encoding.avro.event_time_properties import with_event_times
from eventide_adapters.format.slice.log_content.content import ArrowLogContent
from eventide_adapters.format.slice.log_content.key_versions import all_versions, histories, versions_of_keys
from eventide_adapters.format.slice.log_file import records as log_records
from eventide_adapters.format.slice.log_file.cursor import LogCursor
from eventide_adapters.format.slice.log_file.ordering_values import LEAST, ranks
from eventide_adapters.format.slice.log_file.records import DataBlock, DeleteBlock
from eventide_adapters.storage.local import LocalStorage
from eventide_adapters.storage.memory import MemoryStorage
from eventide_core.errors import CorruptBaseFileError, CorruptLogBlockError, EventideError, UnsupportedTableError
from eventide_core.ports import SplitSlice, Storage, TimedKey
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.key_history import KeyHistory
from eventide_core.table.records.record_order import MergeRule, Version
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.facts_of_logs import facts_of
from support.files.logs import (
    AVRO,
    DELETE,
    HFILE,
    INSTANT_TIME,
    IS_PARTIAL,
    SCHEMA,
    avro_block,
    block,
    delete_block,
    parse_blocks,
    read_records,
    rollback_block,
    table_schema,
    with_meta,
    written_schema,
)
from support.pasts import golden

T1, T2, T3, T4 = (f"2026112106041386{n}" for n in range(1, 5))
TABLE_SCHEMA = AvroSchema.of(
    table_schema(
        {"name": "id", "type": "string"},
        {"name": "ts", "type": ["null", "long"], "default": None},
        {"name": "seen", "type": ["null", "string"], "default": None},
        {"name": "_hoodie_is_deleted", "type": ["null", "boolean"], "default": None},
    )
)
SHAPE = RecordShape(TABLE_SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
ALL = BlockFilter(frozenset({T1, T2, T3, T4}), None)


@pytest.fixture
def storage(request: pytest.FixtureRequest) -> Storage:
    return MemoryStorage.from_dump(request.node.nodeid, {})


def _rows(instant: str, *rows: dict[str, Any], schema: str | None = None) -> bytes:
    records = [with_meta(row, row["id"], instant) for row in rows]
    return avro_block(instant, schema or written_schema(TABLE_SCHEMA.text), records)


def _log(storage: Storage, version: int, *blocks: bytes) -> LogFile:
    name, data = LogFileName("f", T1, version, f"0-0-{version}"), b"".join(blocks)
    storage.put(f"part=a/{name}", data)
    return LogFile(name, f"part=a/{name}", len(data))


def split(base: str | None, merged: Sequence[LogFile], left_overs: Sequence[LogFile]) -> SplitSlice:
    return SplitSlice(base, tuple(merged), tuple(left_overs))


def _base(storage: Storage, rows: Sequence[dict[str, Any]], **types: pa.DataType) -> str:
    data = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), pa.schema(list(types.items()))), data)
    storage.put("part=a/f_0-0-0_1.parquet", data.getvalue())
    return "part=a/f_0-0-0_1.parquet"


class TestSummary:
    def test_it_spans_the_records_and_counts_the_unknown(self, storage: Storage) -> None:
        log = _log(
            storage,
            1,
            _rows(T1, {"id": "a", "ts": 1700000005000}, {"id": "b", "ts": 1700000001}, {"id": "c", "ts": None}),
            _rows(T2, {"id": "d", "ts": 1700000009000}),
        )
        summary = facts_of(ArrowLogContent(storage), log, SHAPE)
        assert summary.event_times == EventTimeRange(1700000001000, 1700000009000, 1)
        assert set(summary.instants) == {T1, T2}
        assert (summary.delete_count, summary.rolled_back) == (0, frozenset())

    def test_a_delete_has_its_ordering_value_as_event_time_if_the_field_is_the_same(self, storage: Storage) -> None:
        log = _log(
            storage,
            1,
            delete_block(T1, [("a", ("LongWrapper", 1700000001000)), ("b", ("IntWrapper", 0))]),
            _rows(T2, {"id": "c", "ts": 1700000003000, "_hoodie_is_deleted": True}, {"id": "d", "ts": 1700000002000}),
        )
        summary = facts_of(ArrowLogContent(storage), log, SHAPE)
        assert summary.event_times == EventTimeRange(1700000001000, 1700000003000, 1)
        assert summary.delete_count == 3

    def test_a_delete_has_no_event_time_where_another_field_orders(self, storage: Storage) -> None:
        log = _log(
            storage,
            1,
            delete_block(T1, [("a", ("LongWrapper", 5))]),
            _rows(
                T2,
                {"id": "c", "ts": 1, "seen": "2026-11-21T00:00Z", "_hoodie_is_deleted": True},
                {"id": "d", "ts": 1, "seen": "2026-11-21T00:00Z"},
            ),
        )
        shape = RecordShape(TABLE_SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts",), "seen")
        summary = facts_of(ArrowLogContent(storage), log, shape)
        assert summary.event_times == EventTimeRange(1795219200000, 1795219200000, 2)
        assert summary.delete_count == 2

    def test_rollback_blocks_are_reported_and_the_blocks_they_roll_back_still_count(self, storage: Storage) -> None:
        log = _log(storage, 1, _rows(T1, {"id": "a", "ts": 1700000005000}), rollback_block(T2, T1))
        summary = facts_of(ArrowLogContent(storage), log, SHAPE)
        assert summary.rolled_back == {T1}
        assert summary.event_times == EventTimeRange(1700000005000, 1700000005000)
        assert summary.instants == {T1}

    def test_event_times_in_the_schema_are_believed_unread(self, storage: Storage) -> None:
        schema = with_event_times(AvroSchema.of(written_schema(TABLE_SCHEMA.text)), "ts", EventTimeRange(10, 20, 2))
        unreadable = block(3, {INSTANT_TIME: T1, SCHEMA: schema.text}, b"\xff" * 50)
        log = _log(storage, 1, unreadable, _rows(T2, {"id": "a", "ts": 30}), delete_block(T3, [("b", None)]))
        summary = facts_of(ArrowLogContent(storage), log, SHAPE)
        assert summary.event_times == EventTimeRange(10, 30, 3)
        assert set(summary.instants) == {T1, T2, T3}
        assert summary.delete_count == 1

    def test_an_empty_log_has_no_range(self, storage: Storage) -> None:
        assert facts_of(ArrowLogContent(storage), _log(storage, 1), SHAPE).event_times == EventTimeRange(None, None)

    def test_a_torn_block_is_reported_by_its_instant(self, storage: Storage) -> None:
        log = _log(storage, 1, _rows(T1, {"id": "a", "ts": 1})[:-1] + _rows(T2, {"id": "b", "ts": 2}))
        summary = facts_of(ArrowLogContent(storage), log, SHAPE)
        assert summary.check is HeaderCheck.OF_FILE
        assert summary.instants == {T1, T2}
        assert summary.event_times == EventTimeRange(2, 2)

    def test_a_block_torn_before_its_instant_is_reported_by_its_place(self, storage: Storage) -> None:
        whole, torn = _rows(T2, {"id": "b", "ts": 2}), _rows(T1, {"id": "a", "ts": 1})[:30]
        summary = facts_of(ArrowLogContent(storage), _log(storage, 1, whole + torn + whole), SHAPE)
        assert (summary.check, summary.nameless_from) == (HeaderCheck.OF_FILE, len(whole))
        assert summary.instants == {T2}

    def test_blocks_are_checked_by_their_headers_across_a_slices_logs(self, storage: Storage) -> None:
        content, schema = ArrowLogContent(storage), written_schema(TABLE_SCHEMA.text)
        torn = _log(storage, 1, _rows(T1, {"id": "a", "ts": 1})[:-1])
        rollback = _log(storage, 2, rollback_block(T3, T1))
        strange = block(3, {INSTANT_TIME: T2, SCHEMA: schema, IS_PARTIAL: "true"}, b"no records at all")
        partial = _log(storage, 3, strange)
        content.check_blocks([torn], BlockFilter(frozenset({T2}), None))
        content.check_blocks([torn, rollback, partial], BlockFilter(frozenset({T1}), None))
        with pytest.raises(CorruptLogBlockError, match=f"torn, although its write {T1} has completed"):
            content.check_blocks([torn], BlockFilter(frozenset({T1}), None))
        assert content.check_blocks([torn, rollback, partial], BlockFilter(frozenset({T2}), None)) == {partial.path}
        assert content.check_blocks([partial], BlockFilter(frozenset({T1}), None)) == frozenset()

    def test_small_blocks_of_many_logs_are_summarized_as_each_alone(self, storage: Storage) -> None:
        """Also where some of them have another schema, deletes, no records, or can't be read."""
        plain = table_schema(
            {"name": "id", "type": "string"}, {"name": "ts", "type": ["null", "long"], "default": None}
        )
        own = written_schema(plain)
        rows = _rows(T2, {"id": "x", "ts": 40}, {"id": "y", "ts": None}, schema=own)
        contents = [
            [_rows(T1, {"id": "a", "ts": 30}, {"id": "b", "ts": -5}, {"id": "c", "ts": None}, schema=own)],
            [rows, _rows(T3, {"id": "z", "ts": None}, schema=own)],
            [avro_block(T1, own, []), rows],
            [_rows(T1, {"id": "d", "ts": 8}, {"id": "e", "ts": 9, "_hoodie_is_deleted": True})],
            [_rows(T1, {"id": "f", "ts": 8}), rows],
            [delete_block(T1, [("a", ("LongWrapper", 7))]), rows],
            [block(3, {INSTANT_TIME: T1, SCHEMA: own}, pack(">iii", 3, 1, 2) + b"\xff" * 2)],  # no record
            [block(3, {INSTANT_TIME: T1, SCHEMA: own}, pack(">iii", 3, 2, 4) + b"\x00" * 4)],  # fewer than it states
            [block(3, {INSTANT_TIME: T1, SCHEMA: own}, pack(">ii", 9, 0))],  # an unknown version
            [rows[:-1]],
        ]
        logs = [_log(storage, number, *blocks) for number, blocks in enumerate(contents, 1)]
        for shape in (SHAPE, RecordShape(AvroSchema.of(plain), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")):
            content = ArrowLogContent(storage)
            alone = [content.summarize([log], shape)[0] for log in logs]
            together = content.summarize(logs, shape)
            assert [repr(summary) for summary in together] == [repr(summary) for summary in alone]
            assert [isinstance(summary, EventideError) for summary in together] == [
                number in (6, 7, 8) for number in range(10)
            ]
            ranges = [summary.event_times for summary in together if isinstance(summary, LogFacts)]
            assert ranges[:2] == [EventTimeRange(-5, 30, 1), EventTimeRange(40, 40, 2)]

    def test_small_blocks_are_decoded_together(self, storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
        logs = [_log(storage, number, _rows(T1, {"id": "a", "ts": number})) for number in range(1, 50)]
        decoded: list[int] = []

        def counted(*arguments: Any, **options: Any) -> Any:
            decoded.append(arguments[1])
            return iter_avro_block(*arguments, **options)

        monkeypatch.setattr(log_records, "iter_avro_block", counted)
        summaries = ArrowLogContent(storage).summarize(logs, SHAPE)
        assert [one.event_times.min_ms for one in summaries if isinstance(one, LogFacts)] == [*range(1, 50)]
        assert len(decoded) == 1

    def test_an_unknown_kind_of_block_is_refused(self, storage: Storage) -> None:
        with pytest.raises(UnsupportedTableError):
            facts_of(ArrowLogContent(storage), _log(storage, 1, block(HFILE, {INSTANT_TIME: T1}, b"")), SHAPE)

    def test_a_table_without_event_time_field_is_reported_what_to_set(self, storage: Storage) -> None:
        shape = RecordShape(TABLE_SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts",), None)
        with pytest.raises(UnsupportedTableError, match=r"hoodie\.payload\.event\.time\.field"):
            facts_of(ArrowLogContent(storage), _log(storage, 1), shape)


def test_the_latest_keys_are_named_once_each_from_the_blocks_that_count(storage: Storage) -> None:
    log = _log(
        storage,
        1,
        _rows(T1, {"id": "a", "ts": 1}, {"id": "b", "ts": 90}, {"id": "c", "ts": 70}, {"id": "n", "ts": None}),
        delete_block(T2, [("b", ("LongWrapper", 80)), ("d", ("LongWrapper", 95)), ("e", ("IntWrapper", 0))]),
        _rows(T3, {"id": "f", "ts": 99}),
    )
    content, blocks = ArrowLogContent(storage), BlockFilter(frozenset({T1, T2}), None)
    assert content.records.latest_keys(log, SHAPE, 70, 2, blocks) == (TimedKey("d", 95), TimedKey("b", 90))
    assert content.records.latest_keys(log, SHAPE, 91, 5, blocks) == (TimedKey("d", 95),)
    assert content.records.latest_keys(log, SHAPE, 100, 5, blocks) == ()


def test_blocks_whose_headers_tell_that_they_hold_no_such_key_are_not_read(storage: Storage) -> None:
    schema = with_event_times(AvroSchema.of(written_schema(TABLE_SCHEMA.text)), "ts", EventTimeRange(1, 69))
    log = _log(storage, 1, block(AVRO, {INSTANT_TIME: T1, SCHEMA: schema.text}, b"no records"))
    assert ArrowLogContent(storage).records.latest_keys(log, SHAPE, 70, 2, ALL) == ()


def test_count_before_counts_records_and_deletes_before_t_in_counting_blocks(storage: Storage) -> None:
    log = _log(
        storage,
        1,
        _rows(T1, {"id": "a", "ts": 99}, {"id": "b", "ts": 100}, {"id": "c", "ts": None}),
        delete_block(T2, [("d", ("LongWrapper", 98)), ("e", ("IntWrapper", 0))]),
        _rows(T3, {"id": "f", "ts": 1}),
        _rows(T4, {"id": "g", "ts": 1}),
        rollback_block(T4, T4),
    )
    content = ArrowLogContent(storage)
    assert content.records.count_before(log, SHAPE, 100, BlockFilter(frozenset({T1, T2, T4}), None)) == 2
    assert content.records.count_before(log, SHAPE, 1, ALL) == 0


class TestKeyHistories:
    def _slice(self, storage: Storage) -> tuple[str, list[LogFile], list[LogFile]]:
        base = _base(
            storage,
            [
                {"_hoodie_record_key": "a", "ts": 10},
                {"_hoodie_record_key": "x", "ts": 11},
                {"_hoodie_record_key": "n", "ts": None},
            ],
            _hoodie_record_key=pa.string(),
            ts=pa.int64(),
        )
        first = _log(storage, 1, _rows(T1, {"id": "a", "ts": 20}, {"id": "b", "ts": 21}, {"id": "x", "ts": 22}))
        second = _log(storage, 2, delete_block(T2, [("b", ("LongWrapper", 30)), ("n", None)]))
        third = _log(
            storage,
            10,
            _rows(T3, {"id": "a", "ts": 40}, {"id": "b", "ts": None}, {"id": "n", "ts": 41}, {"id": "y", "ts": 42}),
        )
        return base, [first, second], [third]

    def test_keys_of_both_sides_come_with_all_their_versions(self, storage: Storage) -> None:
        base, merged, left_overs = self._slice(storage)
        histories = ArrowLogContent(storage).records.key_histories(
            split(base, merged, left_overs), SHAPE, ALL, only_deleted=False
        )
        assert histories == (
            KeyHistory("a", Version(10, False, 0), (Version(20, False, 1),), (Version(40, False, 2),)),
            KeyHistory("b", None, (Version(21, False, 0), Version(30, True, 1)), (Version(LEAST, False, 2),)),
            KeyHistory("n", Version(LEAST, False, 0), (Version(None, True, 1),), (Version(41, False, 2),)),
        )

    def test_only_keys_with_a_delete_when_asked(self, storage: Storage) -> None:
        base, merged, left_overs = self._slice(storage)
        content = ArrowLogContent(storage)
        assert [
            h.key for h in content.records.key_histories(split(base, merged, left_overs), SHAPE, ALL, only_deleted=True)
        ] == [
            "b",
            "n",
        ]
        swapped = content.records.key_histories(split(base, left_overs, merged), SHAPE, ALL, only_deleted=True)
        assert [h.key for h in swapped] == ["b", "n"]

    def test_sides_without_a_common_key_have_none(self, storage: Storage) -> None:
        base, merged, _ = self._slice(storage)
        assert (
            ArrowLogContent(storage).records.key_histories(split(base, merged, []), SHAPE, ALL, only_deleted=False)
            == ()
        )

    def test_a_rollback_block_of_one_side_rolls_back_blocks_of_the_other(self, storage: Storage) -> None:
        base, merged, left_overs = self._slice(storage)
        rollback = _log(storage, 11, rollback_block(T4, T1))
        histories = ArrowLogContent(storage).records.key_histories(
            split(base, merged, [*left_overs, rollback]), SHAPE, ALL, only_deleted=False
        )
        assert [history.key for history in histories] == ["b", "n"]

    def test_without_ordering_field_records_are_level_and_deletes_natural(self, storage: Storage) -> None:
        _, merged, left_overs = self._slice(storage)
        shape = RecordShape(TABLE_SCHEMA, MergeRule.COMMIT_TIME_ORDERING, (), None)
        histories = ArrowLogContent(storage).records.key_histories(
            split(None, merged, left_overs), shape, ALL, only_deleted=True
        )
        assert histories[0] == KeyHistory(
            "b", None, (Version(0, False, 0), Version(None, True, 1)), (Version(0, False, 2),)
        )

    def test_several_ordering_fields_are_compared_one_after_another(self, storage: Storage) -> None:
        _, merged, left_overs = self._slice(storage)
        rows = [{"_hoodie_record_key": "a", "ts": 7, "id": "b"}]
        base = _base(storage, rows, _hoodie_record_key=pa.string(), ts=pa.int64(), id=pa.string())
        shape = RecordShape(TABLE_SCHEMA, MergeRule.EVENT_TIME_ORDERING, ("ts", "id"), "ts")
        (history, *_) = ArrowLogContent(storage).records.key_histories(
            split(base, merged[:1], left_overs), shape, ALL, only_deleted=False
        )
        (merged_version,), (left_over,) = history.merged, history.left_overs
        assert history.base is not None
        assert (history.key, history.base.position, merged_version.position, left_over.position) == ("a", 0, 1, 2)
        assert history.base.ordering < merged_version.ordering < left_over.ordering

    def test_a_base_file_older_than_the_ordering_column_has_the_least_value(self, storage: Storage) -> None:
        _, merged, left_overs = self._slice(storage)
        base = _base(storage, [{"_hoodie_record_key": "a"}], _hoodie_record_key=pa.string())
        histories = ArrowLogContent(storage).records.key_histories(
            split(base, merged, left_overs), SHAPE, ALL, only_deleted=False
        )
        assert histories[0].base == Version(LEAST, False, 0)

    @pytest.mark.parametrize(
        "values",
        [
            pa.array([-5, None, 0, 7, -(2**63) + 1]),
            pa.array([None, "", "a"]),
            pa.array([float("-inf"), None, float("nan"), 0.0]),
            pa.array([Decimal("-1.5"), None, Decimal("0.0")]),
            pa.array([{"a": 1, "b": None}, {"a": 1, "b": -2}, {"a": None, "b": 9}, {"a": -1, "b": 0}]),
        ],
    )
    def test_versions_compare_as_they_do_in_a_merge(self, values: "pa.Array[Any]") -> None:
        """A plan that took a missing value for 0 found other winners among negative ones than the merge."""
        keys = pa.array(["k"] * len(values))
        nothing = all_versions([], values.type)
        merged = versions_of_keys(keys, values)
        (history,) = histories(pc.unique(keys), nothing, merged, nothing)
        places = range(len(values))
        by_merge = ranks(values)
        for one, other in itertools.product(places, places):
            is_newer = history.merged[one].ordering >= history.merged[other].ordering
            assert is_newer == (by_merge[one] >= by_merge[other]), (values[one], values[other])

    def test_a_base_file_that_is_no_parquet_is_reported(self, storage: Storage) -> None:
        _, merged, left_overs = self._slice(storage)
        storage.put("part=a/f_0-0-0_1.parquet", b"PAR1")
        with pytest.raises(CorruptBaseFileError, match=r"f_0-0-0_1\.parquet"):
            ArrowLogContent(storage).records.key_histories(
                split("part=a/f_0-0-0_1.parquet", merged, left_overs), SHAPE, ALL, only_deleted=False
            )


def test_it_can_be_sent_to_another_process(storage: Storage) -> None:
    log = _log(storage, 1, _rows(T1, {"id": "a", "ts": 5}))
    sent: ArrowLogContent = pickle.loads(pickle.dumps(ArrowLogContent(storage)))
    assert facts_of(sent, log, SHAPE).event_times == EventTimeRange(5, 5)


_GOLDEN = ["v6_avro_defpay", "v6_parquet_defpay", "v6_avro_types", "v6_ordered_deletes", "v9_event_bucket"]


@pytest.mark.parametrize("name", _GOLDEN)
def test_logs_of_real_hudi_hold_what_fastavro_reads_in_them(name: str, tmp_path: Path) -> None:
    table = golden.unpack(name, tmp_path)
    storage = LocalStorage(table)
    logs = [path for path in table.rglob(".*.log.*") if ".hoodie" not in path.parts and path.suffix != ".crc"]
    assert logs
    for path in logs:
        log_name = LogFileName.parse(path.name)
        assert log_name is not None
        log = LogFile(log_name, path.relative_to(table).as_posix(), path.stat().st_size)
        blocks = parse_blocks(path.read_bytes())
        fields = json.loads(blocks[0][1][SCHEMA])
        shape = RecordShape(
            AvroSchema.of(json.dumps({**fields, "fields": fields["fields"][5:]})),
            MergeRule.EVENT_TIME_ORDERING,
            ("event_ts",),
            "event_ts",
        )
        records = [read_records(*parsed) for parsed in blocks if parsed[0] != DELETE]
        accepted = BlockFilter(frozenset(header[INSTANT_TIME] for _, header, _ in blocks), None)
        parts = list(LogCursor(storage, [(log.path, log.size)], accepted, is_strict=True).parts(shape, None))
        assert [part.records.to_pylist() for part in parts if isinstance(part, DataBlock)] == records
        deleted = [ts for part in parts if isinstance(part, DeleteBlock) for ts in part.orderings.to_pylist()]
        times = [record["event_ts"] for block_records in records for record in block_records] + deleted
        known = [time for time in times if time is not None]
        summary = facts_of(ArrowLogContent(storage), log, shape)
        unknown = len(times) - len(known)
        assert summary.event_times == EventTimeRange(min(known, default=None), max(known, default=None), unknown)
        assert summary.delete_count == len(deleted)
        threshold = 1700003000000
        before = ArrowLogContent(storage).records.count_before(log, shape, threshold, accepted)
        assert before == sum(time < threshold for time in known)

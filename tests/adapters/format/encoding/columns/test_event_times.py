"""A column's event times, held to the plain rule for one value; and event times as properties of a schema."""

import datetime as dt
import json
from decimal import Context, Decimal
from typing import Any

import fastavro
import fastavro.schema
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_adapters.format.encoding.avro.event_time_properties import (
    event_times_of_schema,
    with_event_times,
    without_event_times,
)
from eventide_adapters.format.encoding.avro.schema import arrow_schema
from eventide_adapters.format.encoding.columns.event_times import event_time_range, event_times_ms
from eventide_core.errors import RecordDecodeError, UnsupportedTableError
from eventide_core.table.records.event_time import (
    EventTimeRange,
    decimal_to_epoch_ms,
    number_to_epoch_ms,
    text_to_epoch_ms,
)
from eventide_core.table.schema.avro_schema import AvroSchema
from support.files.logs import table_schema
from support.values.double_event_times import double_to_epoch_ms

pytestmark = pytest.mark.slow

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LONGS = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(0, 18).flatmap(lambda power: st.integers(10**power - 2, 10**power + 2)),
    st.integers(0, 18).flatmap(lambda power: st.integers(-(10**power) - 2, -(10**power) + 2)),
)


@given(st.lists(st.none() | _LONGS))
def test_longs_follow_the_rule_of_digits(values: list[int | None]) -> None:
    expected = [None if value is None else number_to_epoch_ms(value) for value in values]
    assert event_times_ms(pa.array(values, pa.int64())).to_pylist() == expected


@given(st.lists(st.none() | st.floats() | _LONGS.map(float) | _LONGS.map(lambda number: number + 0.1)))
def test_doubles_follow_the_rule_of_digits_with_a_fraction(values: list[float | None]) -> None:
    expected = [None if value is None else double_to_epoch_ms(value) for value in values]
    assert event_times_ms(pa.array(values, pa.float64())).to_pylist() == expected


def test_a_float_is_the_double_of_its_value() -> None:
    assert event_times_ms(pa.array([1.5, None, float("nan"), -0.25], pa.float32())).to_pylist() == [1, None, None, -1]


@st.composite
def _decimals(draw: st.DrawFn) -> tuple[int, list[Decimal | None]]:
    """A scale, and values with as many places. Powers of ten of all lengths, and what lies beside them."""
    scale = draw(st.integers(0, 38))
    numbers = st.integers(-(10**38) + 1, 10**38 - 1) | st.tuples(
        st.integers(0, 37), st.integers(-2, 2), st.sampled_from((-1, 1))
    ).map(lambda parts: parts[2] * 10 ** parts[0] + parts[1])
    decimals = draw(st.lists(st.none() | numbers, max_size=8))
    return scale, [None if number is None else Decimal(number).scaleb(-scale, _EXACT) for number in decimals]


_EXACT = Context(prec=80)


@given(_decimals())
def test_decimals_follow_the_rule_of_digits_with_a_fraction(drawn: tuple[int, list[Decimal | None]]) -> None:
    scale, values = drawn
    column = pa.array([None, *values], pa.decimal128(38, scale))[1:]
    expected = [None if value is None else decimal_to_epoch_ms(value) for value in values]
    assert event_times_ms(column).to_pylist() == expected


@given(st.lists(st.none() | st.integers(-(1 << 31), (1 << 31) - 1)))
def test_ints_follow_the_rule_of_digits(values: list[int | None]) -> None:
    expected = [None if value is None else number_to_epoch_ms(value) for value in values]
    assert event_times_ms(pa.array(values, pa.int32())).to_pylist() == expected


@given(
    st.lists(st.none() | st.text(max_size=5) | _LONGS.map(str) | st.datetimes().map(lambda d: f"{d.isoformat()}+02:00"))
)
def test_texts_follow_the_rule_of_texts(values: list[str | None]) -> None:
    encodable = [v if v is None or v.isascii() else "é" for v in values]
    expected = [None if value is None else text_to_epoch_ms(value) for value in encodable]
    assert event_times_ms(pa.array(encodable, pa.string())).to_pylist() == expected


def test_a_text_of_more_digits_than_a_long_holds_is_no_time() -> None:
    assert event_times_ms(pa.array(["9" * 30, "5"])).to_pylist() == [None, 5]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
@given(values=st.lists(st.none() | st.integers(-(10**15), 10**15)))
def test_timestamps_are_floored_to_whole_milliseconds(unit: Any, zone: Any, values: list[int | None]) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    column = pa.array(values, pa.int64()).view(pa.timestamp(unit, zone))
    expected = [None if value is None else value * 1000 // per_second for value in values]
    assert event_times_ms(column).to_pylist() == expected


@given(st.lists(st.none() | st.dates()))
def test_a_date_is_its_first_millisecond(values: list[dt.date | None]) -> None:
    expected = [None if day is None else (day - _EPOCH.date()) // dt.timedelta(milliseconds=1) for day in values]
    assert event_times_ms(pa.array(values, pa.date32())).to_pylist() == expected


def test_a_column_of_nulls_has_no_times() -> None:
    assert event_times_ms(pa.nulls(3)) == pa.nulls(3, pa.int64())


@pytest.mark.parametrize("kind", [pa.bool_(), pa.binary(), pa.time64("us"), pa.list_(pa.int64())])
def test_other_columns_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTableError, match="event-time column of type"):
        event_times_ms(pa.array([], kind))


_MIN_LONG, _MAX_LONG = -(1 << 63), (1 << 63) - 1


@pytest.mark.parametrize(
    ("column", "nulls", "unreadable"),
    [
        (pa.array(["2026-11-20 03:00:00", "11/20/2026 03:00", "", None, "2026-11-20T03:00Z"]), 1, 3),
        (pa.array(["9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "10000-01-01T00:00Z", "9" * 30]), 0, 2),
        (pa.array([float("nan"), float("inf"), -float("inf"), None, 1e300, 1.5]), 1, 4),
        (pa.array([_MIN_LONG, -1, 0, None, _MAX_LONG], pa.int64()), 1, 0),
        (pa.array([-1, None], pa.int32()), 1, 0),
        (pa.array([-1, None, 253402300799999], pa.timestamp("ms", "UTC")), 1, 0),
        (pa.array([_MIN_LONG, _MAX_LONG], pa.timestamp("us")), 0, 0),
        (pa.array([_MIN_LONG, _MAX_LONG, 1], pa.timestamp("s")), 0, 2),
        (pa.array([Decimal(10) ** 30, None, Decimal(5)], pa.decimal128(38, 0)), 1, 1),
        (pa.nulls(2), 2, 0),
    ],
)
def test_a_time_a_null_and_an_unreadable_value_are_three_kinds(column: Any, nulls: int, unreadable: int) -> None:
    times = event_time_range(column)
    assert (times.unknown_records, times.unreadable_records) == (nulls, unreadable)
    assert (times.min_ms is None) == (nulls + unreadable == len(column))
    ends: Any = event_times_ms(column).drop_null().to_pylist()
    assert (times.min_ms, times.max_ms) == (min(ends, default=None), max(ends, default=None))


class TestEventTimesInASchema:
    SCHEMA = AvroSchema.of(table_schema({"name": "id", "type": "string"}))

    @pytest.mark.parametrize(
        "event_times", [EventTimeRange(-5, 1700000000000), EventTimeRange(7, 7, 3), EventTimeRange(5, 9, 1, 2)]
    )
    def test_they_read_back(self, event_times: EventTimeRange) -> None:
        assert event_times_of_schema(with_event_times(self.SCHEMA, "ts", event_times), "ts") == event_times

    def test_unknown_ones_of_earlier_versions_may_be_unreadable_so_the_block_is_read(self) -> None:
        told = json.loads(with_event_times(self.SCHEMA, "ts", EventTimeRange(1, 2, 3)).text)
        del told["eventide.unreadable_event_times"]
        assert event_times_of_schema(AvroSchema.of(json.dumps(told)), "ts") is None

    def test_the_range_of_another_field_is_ignored(self) -> None:
        assert event_times_of_schema(with_event_times(self.SCHEMA, "ts", EventTimeRange(1, 2)), "landed") is None

    def test_the_schema_means_the_same_to_every_reader(self) -> None:
        schema = with_event_times(self.SCHEMA, "ts", EventTimeRange(1, 2, 3))
        assert arrow_schema(schema) == arrow_schema(self.SCHEMA)
        parsed: Any = fastavro.parse_schema(json.loads(schema.text))
        plain: Any = fastavro.parse_schema(json.loads(self.SCHEMA.text))
        assert fastavro.schema.to_parsing_canonical_form(parsed) == fastavro.schema.to_parsing_canonical_form(plain)

    def test_schemas_that_differ_in_their_ranges_alone_are_one(self) -> None:
        plain = json.dumps(json.loads(self.SCHEMA.text), separators=(",", ":"))
        for event_times in (EventTimeRange(-5, 7), EventTimeRange(None, None, 2), EventTimeRange(1, 2, 3, 4)):
            assert without_event_times(with_event_times(self.SCHEMA, "ts", event_times)).text == plain

    def test_an_end_of_a_schema_that_is_no_range_stays(self) -> None:
        ranged = with_event_times(self.SCHEMA, "ts", EventTimeRange(1, 2)).text
        elsewhere = json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": json.loads(ranged)}]})
        for text in (self.SCHEMA.text, elsewhere, f'{ranged[:-1]},"more":1}}', ranged[:-1], f"{ranged} ", ""):
            assert without_event_times(AvroSchema.of(text)).text == text

    def test_a_schema_of_any_other_writer_has_none(self) -> None:
        assert event_times_of_schema(self.SCHEMA, "ts") is None
        assert event_times_of_schema(AvroSchema.of(""), "ts") is None

    @pytest.mark.parametrize(
        "properties",
        [
            {"eventide.min_event_time_ms": 5, "eventide.unknown_event_times": 0},
            {"eventide.min_event_time_ms": 5, "eventide.max_event_time_ms": "6", "eventide.unknown_event_times": 0},
            {"eventide.min_event_time_ms": 5, "eventide.max_event_time_ms": 6, "eventide.unknown_event_times": None},
            {"eventide.min_event_time_ms": 5, "eventide.max_event_time_ms": 6, "eventide.unknown_event_times": -1},
            {"eventide.min_event_time_ms": 7, "eventide.max_event_time_ms": 6, "eventide.unknown_event_times": 0},
        ],
    )
    def test_half_a_range_is_reported(self, properties: dict[str, Any]) -> None:
        whole = {**json.loads(self.SCHEMA.text), "eventide.event_time_field": "ts", **properties}
        with pytest.raises(RecordDecodeError, match="aren't a range"):
            event_times_of_schema(AvroSchema.of(json.dumps(whole)), "ts")

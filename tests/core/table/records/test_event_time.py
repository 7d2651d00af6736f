"""Event times in milliseconds, thresholds, and the range of a log."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide_core.action.freshness.freshness import NO_CUT
from eventide_core.errors import InvalidThresholdError
from eventide_core.table.records.event_time import (
    EventTimeRange,
    decimal_to_epoch_ms,
    number_to_epoch_ms,
    parse_threshold,
    text_to_epoch_ms,
)
from support.values.double_event_times import double_to_epoch_ms

moments = st.datetimes(
    min_value=datetime(1, 1, 2),  # noqa: DTZ001 - the zone comes with `timezones`
    max_value=datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@pytest.mark.parametrize(
    ("number", "epoch_ms"),
    [
        (1_700_000_934, 1_700_000_934_000),
        (1_700_000_934_123, 1_700_000_934_123),
        (1_700_000_934_123_999, 1_700_000_934_123),
        (1_700_000_934_123_999_999, 1_700_000_934_123),
        (-1_700_000_934, -1_700_000_934_000),
        (-1_700_000_934_123_001, -1_700_000_934_124),
        (0, 0),
        (105, 105),
    ],
)
def test_a_plain_number_is_read_by_its_digits_and_finer_ones_are_floored(number: int, epoch_ms: int) -> None:
    assert number_to_epoch_ms(number) == epoch_ms
    assert text_to_epoch_ms(str(number)) == epoch_ms


@pytest.mark.parametrize(
    ("number", "epoch_ms"),
    [
        ("1700000934.5", 1_700_000_934_500),
        ("1700000934.1", 1_700_000_934_100),
        ("1700000934123.9", 1_700_000_934_123),
        ("1700000934123999.5", 1_700_000_934_123),
        ("-1700000934.5", -1_700_000_934_500),
        ("-0.25", -1),
        ("105.75", 105),
    ],
)
def test_the_digits_before_the_point_say_the_unit_of_a_number_with_a_fraction(number: str, epoch_ms: int) -> None:
    assert decimal_to_epoch_ms(Decimal(number)) == epoch_ms
    assert double_to_epoch_ms(float(number)) == epoch_ms


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e19, -1e300])
def test_what_is_no_time_has_none(number: float) -> None:
    assert double_to_epoch_ms(number) is None


@pytest.mark.parametrize("number", [20_261_120_030_000, 20_261_120_030_000_123, 638_000_000_000_000_000])
def test_a_number_that_spells_out_a_date_is_no_time_centuries_from_now(number: int) -> None:
    assert text_to_epoch_ms(str(number)) is None
    for value in (number, -number):
        assert number_to_epoch_ms(value) is None
        assert decimal_to_epoch_ms(Decimal(value)) is None
        assert double_to_epoch_ms(float(value)) is None


@pytest.mark.parametrize("number", [32_503_593_600_000, 20_261_320_030_000, 20_261_120_240_000, 253_402_300_799_999])
def test_a_number_that_spells_out_no_date_is_in_milliseconds(number: int) -> None:
    assert number_to_epoch_ms(number) == number
    assert decimal_to_epoch_ms(Decimal(number)) == number
    assert double_to_epoch_ms(float(number)) == number


def test_a_decimal_beyond_64_bits_has_none() -> None:
    assert decimal_to_epoch_ms(Decimal(10**19)) is None
    assert decimal_to_epoch_ms(Decimal(10**30) + Decimal("0.5")) is None


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_a_whole_decimal_is_the_number_that_it_is(number: int) -> None:
    assert decimal_to_epoch_ms(Decimal(number)) == number_to_epoch_ms(number)


@given(moments)
def test_a_time_with_a_zone_is_its_moment_floored_to_milliseconds(moment: datetime) -> None:
    elapsed = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = elapsed.days * 86_400_000_000 + elapsed.seconds * 1_000_000 + elapsed.microseconds
    assert parse_threshold(moment.isoformat()) == micros // 1000
    assert text_to_epoch_ms(moment.isoformat()) == micros // 1000


def test_a_threshold_may_be_epoch_milliseconds() -> None:
    assert parse_threshold(" 1700000934000 ") == 1_700_000_934_000
    assert parse_threshold(10**11) == 10**11
    assert parse_threshold("2026-11-21T00:00Z") == 1_795_219_200_000
    early = parse_threshold("1969-12-31T23:59:59Z")  # a time as text cannot be mistaken
    assert early == -1000
    assert parse_threshold(early) is early  # as a plain number, it would be refused


@pytest.mark.parametrize("number", [0, 300, 1_772_496_000, 10**11 - 1, -5, -1_772_496_000_000])
def test_a_threshold_in_seconds_or_below_zero_is_refused_with_the_cure(number: int) -> None:
    for asked in (number, str(number), f" {number} "):
        with pytest.raises(InvalidThresholdError, match=rf"T must be .*, not {number}: .*(epoch|zone)"):
            parse_threshold(asked)


def test_the_cure_for_seconds_is_the_same_moment() -> None:
    with pytest.raises(InvalidThresholdError) as refused:
        parse_threshold("1772496000")
    assert "epoch seconds? write 2026-03-03T00:00:00Z or milliseconds, 1772496000000" in str(refused.value)


@pytest.mark.parametrize("number", [0, 300, 10**8 - 1])
def test_a_threshold_of_a_few_digits_is_not_taken_for_seconds(number: int) -> None:
    with pytest.raises(InvalidThresholdError) as refused:
        parse_threshold(number)
    assert "epoch seconds" not in str(refused.value)
    assert "give ISO-8601 with a zone, such as 1970-01-01T00:00Z, if it is so early" in str(refused.value)


def test_a_freshness_is_asked_for_no_t_in_seconds() -> None:
    with pytest.raises(InvalidThresholdError, match="epoch seconds"):
        NO_CUT.has_reached(1_772_496_000)


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-11-21T00:00", "2026-11-21", "1.5", "1e3", "٣٠٠", "9" * 16, "9" * 5000, "2026-13-01T00:00Z"],
)
def test_a_threshold_without_a_zone_or_sense_is_refused(text: str) -> None:
    with pytest.raises(InvalidThresholdError, match="with a zone"):
        parse_threshold(text)


@given(st.text() | st.from_regex(r"-?\d{1,30}|\d{4}-\d\d-\d\dT\d\d:\d\dZ?"))
def test_no_text_in_an_event_time_column_is_too_odd(text: str) -> None:
    assert isinstance(text_to_epoch_ms(text), int | None)


def test_a_text_that_is_no_time_has_none() -> None:
    assert text_to_epoch_ms("2026-11-21T00:00") is None
    assert text_to_epoch_ms("never") is None
    assert text_to_epoch_ms("9" * 5000) is None


@given(st.integers(), st.integers(0, 1000), st.integers())
def test_a_log_starts_before_t_when_its_least_event_time_does(low: int, width: int, threshold: int) -> None:
    assert EventTimeRange(low, low + width).starts_before(threshold) == (low < threshold)
    assert EventTimeRange(low, low + width, 1).starts_before(threshold)


def test_a_log_without_any_record_starts_nowhere() -> None:
    assert not EventTimeRange(None, None).starts_before(2**62)
    assert EventTimeRange(None, None, 1).starts_before(-(2**62))


_ranges = st.builds(EventTimeRange, st.integers(0, 5), st.integers(5, 9), st.integers(0, 3)) | st.builds(
    EventTimeRange, st.none(), st.none(), st.integers(0, 3)
)


@given(_ranges, _ranges)
def test_a_union_is_the_range_of_both(one: EventTimeRange, other: EventTimeRange) -> None:
    ends = [time for times in (one, other) for time in (times.min_ms, times.max_ms) if time is not None]
    unknown = one.unknown_records + other.unknown_records
    assert one.union(other) == EventTimeRange(min(ends, default=None), max(ends, default=None), unknown)
    assert one.is_empty == (one == EventTimeRange(None, None))

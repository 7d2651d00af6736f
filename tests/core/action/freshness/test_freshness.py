"""Cut and watermark, as true as they are now."""

from datetime import UTC, datetime

import pytest

from eventide_core.action.freshness.freshness import freshness, publishable_cut
from eventide_core.errors import InvalidThresholdError, format_timestamp
from eventide_core.table.records.event_time import EventTimeRange


def test_before_the_first_event_time_compaction_there_is_neither_cut_nor_watermark() -> None:
    marks = freshness(None, [EventTimeRange(5, 9)], 0)
    assert (marks.cut_ms, marks.watermark_ms) == (None, None)


def test_the_watermark_is_the_cut_while_no_log_holds_anything_before_it() -> None:
    assert freshness(100, [EventTimeRange(100, 120), EventTimeRange(None, None)], 0).watermark_ms == 100


def test_a_late_record_lowers_the_watermark_at_once_but_not_the_cut() -> None:
    marks = freshness(100, [EventTimeRange(120, 130), EventTimeRange(40, 125)], 3)
    assert (marks.cut_ms, marks.watermark_ms, marks.late_records) == (100, 40, 3)


def test_records_without_an_event_time_are_counted_and_do_not_lower_it() -> None:
    marks = freshness(100, [EventTimeRange(None, None, 4), EventTimeRange(150, 160, 1)], 0)
    assert (marks.watermark_ms, marks.unknown_event_time_records) == (100, 5)


def test_nothing_is_promised_while_a_log_record_has_an_unreadable_event_time() -> None:
    marks = freshness(100, [EventTimeRange(150, 160), EventTimeRange(170, 180, 0, 2)], 0)
    assert (marks.watermark_ms, marks.unreadable_event_time_records) == (None, 2)
    assert not marks.has_reached(format_timestamp(1))


def test_nulls_count_only_where_the_user_says_so() -> None:
    marks = freshness(100, [EventTimeRange(150, 160, 3)], 0)
    assert marks.has_reached(format_timestamp(100))
    assert not marks.has_reached(format_timestamp(100), nulls_count=True)


def test_an_unreadable_event_time_in_a_slice_left_out_lets_no_cut_be_published() -> None:
    assert publishable_cut(100, [EventTimeRange(160, 170, 0, 1)], None) is None


def test_a_plan_that_leaves_nothing_out_publishes_t() -> None:
    assert publishable_cut(100, (), None) == publishable_cut(100, (), 50) == 100


def test_slices_left_out_hold_the_cut_back_to_their_earliest_record() -> None:
    assert publishable_cut(100, [EventTimeRange(60, 130), EventTimeRange(None, None), EventTimeRange(80, 90)], 50) == 60
    assert publishable_cut(100, [EventTimeRange(110, 130)], None) == 100


def test_a_plan_that_leaves_out_records_before_the_published_cut_publishes_none() -> None:
    assert publishable_cut(100, [EventTimeRange(40, 130)], 50) is None
    assert publishable_cut(100, [EventTimeRange(50, 130)], 50) == 50


def test_an_unknown_event_time_in_a_slice_left_out_lets_no_cut_be_published() -> None:
    assert publishable_cut(100, [EventTimeRange(60, 130, 1)], None) is None


def test_cut_and_watermark_are_datetimes_in_utc_too() -> None:
    marks = freshness(1_772_496_000_001, [EventTimeRange(-1, 5)], 1)
    assert marks.watermark == datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC)
    assert marks.cut_time == datetime(2026, 3, 3, 0, 0, 0, 1000, UTC)
    nothing = freshness(None, [], 0)
    assert (nothing.watermark, nothing.cut_time) == (None, None)


@pytest.mark.parametrize("far_ms", [253_402_300_800_000, -62_135_596_800_001, 1 << 62])
def test_a_watermark_beyond_what_a_datetime_holds_is_named(far_ms: int) -> None:
    marks = freshness(far_ms, [], 0)
    with pytest.raises(
        InvalidThresholdError, match=rf"watermark: {far_ms} ms is not in the years .* read watermark_ms"
    ):
        _ = marks.watermark
    assert marks.watermark_ms == far_ms

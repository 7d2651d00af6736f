"""Which compaction's view answers a watermark."""

from eventide_core.action.freshness.watermark_view import PublishedView, views_that_answer
from eventide_core.table.timeline.instant import Action, Instant, State


def _view(
    requested: int, cut_ms: int, watermark_ms: int | None = None, *, completed: int | None = None
) -> PublishedView:
    done = Instant(f"{requested:017}", Action.COMMIT, State.COMPLETED, f"{completed or requested + 1:017}")
    return PublishedView(done, cut_ms, cut_ms if watermark_ms is None else watermark_ms)


def _answering(published: list[PublishedView], threshold_ms: int) -> list[int]:
    return [int(view.compaction.requested_time) for view in views_that_answer(published, threshold_ms)]


def test_the_earliest_compaction_that_reached_the_watermark_answers() -> None:
    published = [_view(10, 100), _view(20, 200), _view(30, 300)]
    assert _answering(published, 200) == [20]
    assert _answering(published, 101) == [20]
    assert _answering(published, -5) == [10]


def test_of_several_that_published_the_cut_the_earliest_comes_first() -> None:
    assert _answering([_view(30, 200), _view(20, 200), _view(40, 300)], 200) == [20, 30]


def test_one_whose_watermark_fell_short_of_its_cut_does_not_answer_for_the_cut() -> None:
    published = [_view(20, 200, 150), _view(30, 200), _view(40, 300)]
    assert _answering(published, 200) == [30]
    assert _answering(published, 150) == [20, 30]


def test_a_later_cut_stands_in_for_none_that_was_published() -> None:
    assert _answering([_view(20, 200, 150), _view(40, 300, 250)], 200) == [40]


def test_views_are_in_order_of_completion_for_a_base_may_be_back_dated() -> None:
    assert _answering([_view(10, 200, completed=50), _view(20, 200, completed=40)], 200) == [20, 10]


def test_a_watermark_that_nobody_has_published_has_no_answer() -> None:
    assert _answering([_view(10, 100)], 101) == []
    assert _answering([], 0) == []

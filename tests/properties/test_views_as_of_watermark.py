"""The read-optimized table as of a watermark or a tag: what it shows, how long it stays, what is said when it is gone."""

import pytest

from eventide import Table
from eventide.testing.crash_enumeration import Bench
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story, delete, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import (
    CleanedHistoryError,
    ConfigError,
    MissingFileError,
    NoExactCutError,
    RefusedError,
    TagNotFoundError,
    WatermarkNotFoundError,
    format_timestamp,
)
from eventide_core.ports import NoProgress
from eventide_core.service.compaction.scheduling.draft_plan import DraftPlan
from eventide_core.table.timeline.contents.plans import CutMode, LinkMode

EAGER = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
    "hoodie.compact.inline.max.delta.commits": "1",
}


class Kept:
    """A table in memory, and its read-optimized views."""

    def __init__(self, version: int, cut: CutMode = CutMode.EXACT) -> None:
        self.bench = Bench(f"views {version}")
        self.bench.options = {**self.bench.options, **EAGER}
        self.story = Story.begin(Layout(version, Order.EVENT_TIME), self.bench.storage, self.bench.clock)
        self.cut = cut

    @property
    def table(self) -> Table:
        return Table(self.bench.storage.root, self.bench.options, self.bench.process())

    def commit(self, *changes: Commit) -> "Kept":
        for change in changes:
            self.story.commit(change)
        return self

    def compact(self, ms: int, link: LinkChoice = LinkChoice.AUTO) -> str:
        """The instant of a compaction of everything before that event time."""
        self.bench.clock.sleep(10)
        process = self.bench.process()
        request = CompactionRequest(EPOCH_MS + ms, None, link, cut=self.cut)
        plan = process.scheduler.schedule(request).plan
        process.runner.execute(plan.instant, NoProgress())
        self.bench.clock.sleep(10)
        return plan.instant

    def clean(self) -> None:
        self.bench.process().cleaner.clean()

    def seen(self, ms: int) -> set[tuple[str, str]]:
        return _shown(self.table.read_optimized(as_of_watermark=EPOCH_MS + ms).to_arrow(["key", "word"]).to_pylist())

    def tagged(self, name: str) -> set[tuple[str, str]]:
        return _shown(self.table.read_optimized(tag=name).to_arrow(["key", "word"]).to_pylist())


def _shown(rows: list[dict[str, str]]) -> set[tuple[str, str]]:
    return {(row["key"], row["word"]) for row in rows}


FIRST_DAY = {("a", "one"), ("b", "one"), ("c", "base")}
SECOND_DAY = {("a", "two"), ("b", "one"), ("c", "late"), ("d", "two")}


@pytest.fixture(params=[6, 9])
def days(request: pytest.FixtureRequest) -> Kept:
    """Two days of 100 milliseconds, each compacted; what is late for the first one comes between."""
    version: int = request.param
    kept = Kept(version).commit((put("a", 1, "base"), put("b", 1, "base"), put("c", 1, "base")))
    kept.commit((put("a", 10, "one"), put("b", 20, "one")), (put("a", 110, "two"), put("d", 120, "two", partition="b")))
    kept.compact(100)
    kept.commit((put("c", 50, "late"),))
    kept.compact(200)
    return kept


def test_a_view_shows_what_lay_before_the_watermark_and_had_been_committed_then(days: Kept) -> None:
    days.commit((put("a", 210, "three"),))
    # The base file that the first write of a partition makes holds what that write brought, whatever any cut says.
    assert days.seen(100) == FIRST_DAY | {("d", "two")}
    assert days.seen(200) == SECOND_DAY
    assert days.seen(150) == SECOND_DAY


def test_a_watermark_that_was_never_published_names_those_that_can_be_read(days: Kept) -> None:
    with pytest.raises(WatermarkNotFoundError, match=r"13:20\.100Z \(at .*13:20\.200Z \(at "):
        days.seen(201)


def test_a_view_that_was_repaired_shows_the_same_until_it_is_cleaned(days: Kept) -> None:
    days.commit((put("b", 130, "late again"),))
    days.compact(200)
    assert days.seen(200) == SECOND_DAY
    days.clean()
    assert days.seen(200) == SECOND_DAY - {("b", "one")} | {("b", "late again")}


def test_a_view_that_was_cleaned_is_not_taken_for_a_later_one(days: Kept) -> None:
    days.clean()
    with pytest.raises(
        CleanedHistoryError,
        match=rf"as of watermark {format_timestamp(EPOCH_MS + 100)} .* can be read: {format_timestamp(EPOCH_MS + 200)} ",
    ):
        days.seen(100)
    assert [view.cut_ms for view in days.table.watermarks()] == [EPOCH_MS + 200]


def test_a_view_that_was_cleaned_is_missed_also_when_its_compaction_is_archived(days: Kept) -> None:
    for ms in range(300, 900, 100):
        days.commit((put("a", ms + 10, "on time"),))
        days.compact(ms)
        days.clean()
    assert days.bench.process().archiver.archive()
    for ms in (100, 200, 700):
        with pytest.raises(CleanedHistoryError, match=f"as of watermark {format_timestamp(EPOCH_MS + ms)} "):
            days.seen(ms)
    assert ("a", "two") not in days.seen(800)


def test_a_tag_keeps_a_view_through_clean_and_archival(days: Kept) -> None:
    tag = days.table.tag("day/1", as_of_watermark=EPOCH_MS + 100, comments="for the books")
    shown = days.tagged("day/1")
    assert shown == days.seen(100)
    for ms in range(300, 700, 100):
        days.commit((put("a", ms + 10, "on time"), delete("b", ms + 20)))
        days.compact(ms)
        days.clean()
        days.bench.process().archiver.archive()
    assert days.tagged("day/1") == shown
    assert days.seen(100) == shown
    assert [(t.name, t.instant, t.savepoint.remarks) for t in days.table.tags()] == [
        ("day/1", tag.instant, "for the books")
    ]
    assert _shown(days.table.snapshot(tag="day/1").to_arrow(["key", "word"]).to_pylist()) == shown - {("a", "one")} | {
        ("a", "two")
    }
    assert days.table.delete_tag("day/1") == tag.instant
    days.clean()
    with pytest.raises(TagNotFoundError, match="there is none"):
        days.tagged("day/1")
    with pytest.raises(CleanedHistoryError):
        days.seen(100)


def test_a_file_of_a_tag_that_is_gone_is_named_by_every_query(days: Kept) -> None:
    tag = days.table.tag("now")
    path = min(path for path in tag.savepoint.paths if path.endswith(".parquet"))
    days.commit((put("a", 210, "three"), put("d", 210, "three", partition="b")))
    days.compact(300)
    days.bench.storage.delete(path)
    for read in (
        lambda: days.tagged("now"),
        lambda: days.table.snapshot(tag="now"),
        lambda: days.table.as_of(tag.instant),
        lambda: days.seen(200),
    ):
        with pytest.raises(MissingFileError, match=path):
            read()


def test_a_tag_names_one_commit_and_a_commit_has_one_tag(days: Kept) -> None:
    now = days.table.tag("now")
    assert days.table.tag("now", instant=now.instant).instant == now.instant
    first = days.table.watermarks()[0].compaction.requested_time
    with pytest.raises(RefusedError, match=f"the tag now belongs to {now.instant}"):
        days.table.savepoint(first, tag="now")
    with pytest.raises(RefusedError, match="already has a savepoint under the tag now"):
        days.table.savepoint(now.instant, tag="then")
    days.table.savepoint(first)
    with pytest.raises(RefusedError, match="already has a savepoint without a tag"):
        days.table.savepoint(first, tag="first")
    for name in ("", "two\nlines", "-x", "x" * 200):
        with pytest.raises(ConfigError, match="letters"):
            days.table.tag(name)


def test_a_back_dated_compactions_view_has_writes_requested_after_its_instant() -> None:
    """The write that is left over in one slice made the base file of another one."""
    kept = Kept(9, CutMode.FILE).commit((put("a", 1, "base"),), (put("a", 10, "one"),))
    kept.commit((put("a", 110, "two"), put("d", 20, "two", partition="b")))
    compaction = kept.compact(100, LinkChoice.PREFIX)
    state = kept.bench.process().state()
    assert state.publications[compaction].link_mode is LinkMode.PREFIX
    assert compaction < state.timeline.writes[-1].requested_time
    shown = {("a", "one"), ("d", "two")}
    assert _shown(kept.table.read_optimized().to_arrow(["key", "word"]).to_pylist()) == shown
    assert kept.seen(100) == shown
    kept.table.tag("then", as_of_watermark=EPOCH_MS + 100)
    kept.commit((put("a", 210, "three"), put("d", 220, "three", partition="b")))
    kept.compact(300)
    kept.clean()
    assert kept.seen(100) == kept.tagged("then") == shown


def mixed(version: int) -> Kept:
    """A table whose base files hold no row of the second day, and a log file of both days."""
    kept = Kept(version).commit((put("a", 1, "base"), put("b", 1, "base")))
    return kept.commit((put("a", 110, "two"), put("b", 20, "one")))


def asked(kept: Kept, ms: int, cut: CutMode) -> DraftPlan:
    request = CompactionRequest(EPOCH_MS + ms, None, LinkChoice.COPY, cut=cut)
    return kept.bench.process().scheduler.plan(request)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("late", [False, True])
def test_an_exact_cut_is_refused_where_a_cut_by_file_has_merged_later_rows(version: int, *, late: bool) -> None:
    kept = mixed(version)
    kept.cut = CutMode.FILE
    kept.compact(100)
    if late:
        kept.commit((put("b", 50, "late"),))
    assert late or asked(kept, 100, CutMode.FILE).is_reached
    with pytest.raises(
        NoExactCutError, match=r"no exact cut at .*13:20\.100Z: .*parquet holds .*13:20\.110Z"
    ) as refused:
        asked(kept, 100, CutMode.EXACT)
    assert refused.value.exit_code == 3
    assert asked(kept, 111, CutMode.EXACT).idle is None  # everything is before it
    tag = kept.table.tag("day", as_of_watermark=EPOCH_MS + 100)
    assert (kept.table.tags()[0].savepoint.is_exact, tag.savepoint.remarks) == (False, "")


@pytest.mark.parametrize("version", [6, 9])
def test_an_exact_cut_is_reached_where_the_view_is_exact_whatever_made_it(version: int) -> None:
    kept = mixed(version)
    kept.compact(100)
    draft = asked(kept, 100, CutMode.EXACT)
    assert draft.idle is not None
    assert draft.idle.endswith("the view is exact at 2023-11-14T22:13:20.100Z")
    kept.table.tag("day", as_of_watermark=EPOCH_MS + 100, comments="for the books")
    (tag,) = kept.table.tags()
    assert (tag.savepoint.is_exact, tag.savepoint.remarks) == (True, "for the books")
    by_file = Kept(version, CutMode.FILE).commit((put("a", 1, "base"),)).commit((put("a", 20, "one"),))
    by_file.compact(100)
    assert asked(by_file, 100, CutMode.EXACT).is_reached


@pytest.mark.parametrize("version", [6, 9])
def test_a_repeated_exact_cut_says_that_a_base_file_has_rows_beyond_it(version: int) -> None:
    kept = Kept(version).commit((put("a", 1, "base"), put("d", 120, "two", partition="b")))
    kept.commit((put("a", 20, "one"),))
    kept.compact(100)
    draft = asked(kept, 100, CutMode.EXACT)
    assert draft.is_reached
    assert "the view is not exact at" in str(draft.idle)
    kept.table.tag("day", as_of_watermark=EPOCH_MS + 100)
    assert kept.table.tags()[0].savepoint.is_exact is False


@pytest.mark.parametrize("version", [6, 9])
def test_freshness_and_results_say_whether_the_view_is_exact_at_an_exact_cut(version: int) -> None:
    kept = mixed(version)
    kept.compact(100)
    assert kept.table.freshness().is_exact is True
    assert "exact at the cut: yes" in str(kept.table.freshness())
    assert kept.table.freshness(is_exact=False).is_exact is None
    again = kept.table.compact(before=EPOCH_MS + 100, cut="exact")
    assert (again.is_already_reached, again.freshness.is_exact) == (True, True)
    assert kept.table.compact(before=EPOCH_MS + 105, cut="exact").freshness.is_exact is True

    written = Kept(version).commit((put("a", 1, "base"), put("d", 120, "two", partition="b")))
    written.commit((put("a", 20, "one"),)).compact(100)
    assert written.table.freshness().is_exact is False
    by_file = Kept(version, CutMode.FILE).commit((put("a", 1, "base"),)).commit((put("a", 20, "one"),))
    by_file.compact(100)
    assert by_file.table.freshness().is_exact is None

"""Windows of event time against an oracle that knows what was committed when.

1. No window is delivered before it is complete: of every key whose latest version lies in it, the delivered view has that
   version, or none if that is a delete. Hudi forgets a delete that was merged into a base file, so of a key that was
   written with an older event time after its delete the view alone is asked.
2. A window is delivered in one state however often it comes before it is done, and comes again only if it has changed.
3. Once nothing is due, the deliveries with their corrections applied are the view's rows before the next window, whether a
   consumer replaces windows by their rows or applies their changes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide import Table
from eventide.table.window import Window
from eventide.testing.crash_enumeration import Bench, crash_states, faults, writes_of
from eventide.testing.histories import EPOCH_MS, Commit, Layout, Story, delete, put
from eventide.testing.oracle import Order
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import LinkChoice
from eventide_core.errors import CleanedHistoryError, EventideError, NothingToDoError, RefusedError, WindowTakenError
from eventide_core.ports import NoProgress
from eventide_core.service.common.state.window_consumers import WINDOWS_DIRECTORY
from eventide_core.table.timeline.contents.plans import CutMode

Row: TypeAlias = tuple[str, int, str]
Rows: TypeAlias = frozenset[Row]
EVERY_MS = 1000
EAGER = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS",
    "hoodie.cleaner.fileversions.retained": "1",
}


def rows_of(table: Any) -> Rows:
    found = [(row["key"], row["ms"] - EPOCH_MS, row["word"]) for row in table.to_pylist()]
    assert len(found) == len(set(found)), f"a row is there twice: {found}"
    return frozenset(found)


@dataclass
class Sink:
    """What a consumer has: of each window its rows, and all rows by the changes."""

    windows: dict[int, Rows] = field(default_factory=dict)
    by_changes: set[Row] = field(default_factory=set)
    deliveries: int = 0

    def take(self, window: Window, changes: Any) -> None:
        rows = rows_of(window.rows().to_arrow())
        assert window.is_correction or window.begin_ms not in self.windows
        assert not window.is_correction or rows != self.windows.get(window.begin_ms, frozenset()), "nothing has changed"
        self.windows[window.begin_ms] = rows
        gone = rows_of(changes.outdated) | rows_of(changes.deleted)
        assert gone <= self.by_changes
        self.by_changes -= gone
        new = rows_of(changes.inserted) | rows_of(changes.updated)
        assert not new & self.by_changes
        self.by_changes |= new
        self.deliveries += 1

    @property
    def rows(self) -> Rows:
        return frozenset().union(*self.windows.values())


class World:
    """A table in memory, its consumer, and what was committed when."""

    def __init__(self, version: int) -> None:
        self.bench = Bench(f"windows {version}")
        self.bench.options = {**self.bench.options, **EAGER}
        self.story = Story.begin(Layout(version, Order.EVENT_TIME, buckets=2), self.bench.storage, self.bench.clock)
        self.latest: dict[str, tuple[int, str | None]] = {}
        self.older_than_delete: set[str] = set()
        self.known: dict[str, dict[str, tuple[int, str | None]]] = {}
        self.views: dict[str, Rows] = {}
        self.sink = Sink()
        self.cut_ms = 0

    @property
    def table(self) -> Table:
        return Table(self.bench.storage.root, self.bench.options, self.bench.process())

    def commit(self, changes: Commit) -> None:
        self.story.commit(changes)
        for change in changes:
            assert change.ms is not None
            latest_ms, word = self.latest.get(change.key, (-1, None))
            if change.ms >= latest_ms:
                self.latest[change.key] = (change.ms, change.word)
                self.older_than_delete.discard(change.key)
            elif word is None:
                self.older_than_delete.add(change.key)

    def compact(self, ms: int, cut: CutMode) -> None:
        self.cut_ms = max(self.cut_ms, ms)
        self.bench.clock.sleep(10)
        process = self.bench.process()
        request = CompactionRequest(EPOCH_MS + self.cut_ms, None, LinkChoice.AUTO, cut=cut)
        try:
            draft = process.scheduler.schedule(request, is_for_later=False)
        except (NothingToDoError, RefusedError):
            return
        if draft.idle is not None:
            return
        instant = draft.plan.instant
        process.runner.execute(instant, NoProgress(), put=draft.put)
        self.bench.clock.sleep(10)
        self.known[instant] = {key: value for key, value in self.latest.items() if key not in self.older_than_delete}
        self.views[instant] = self._latest_base_rows()

    def _latest_base_rows(self) -> Rows:
        """The rows of the base files with the greatest instants, by their names alone."""
        bases: dict[tuple[str, str], tuple[str, str]] = {}
        for path in self.bench.storage.dump():
            directory, _, name = path.rpartition("/")
            if name.endswith(".parquet") and not path.startswith(".hoodie"):
                file_id, _, instant = name.removesuffix(".parquet").split("_")
                bases[directory, file_id] = max(bases.get((directory, file_id), ("", "")), (instant, path))
        found: set[Row] = set()
        for _, path in bases.values():
            with self.bench.storage.open_input(path) as file:
                found |= rows_of(pq.read_table(file, columns=["key", "ms", "word"]))
        return frozenset(found)

    def windows(self, **words: Any) -> Iterator[Window]:
        return iter(self.table.windows("1s", "billing", **words))

    def check_complete(self, window: Window, rows: Rows) -> None:
        begin, end = window.begin_ms - EPOCH_MS, window.end_ms - EPOCH_MS
        assert rows == {row for row in self.views[window.instant] if begin <= row[1] < end}
        for key, (ms, word) in self.known[window.instant].items():
            if begin <= ms < end and not window.is_correction:
                assert {row for row in rows if row[0] == key} == ({(key, ms, word)} if word is not None else set())

    def drain(self, most: int = 1000) -> None:
        for number, window in enumerate(self.windows(take_over=True)):
            changes = window.changes()
            self.check_complete(window, rows_of(window.rows().to_arrow()))
            self.sink.take(window, changes)
            window.done()
            if number + 1 == most:
                return
        self.check_union()

    def check_union(self) -> None:
        progress = self.table.windows("1s", "billing").progress()
        if progress.view is not None and progress.next_ms is not None:
            next_ms = progress.next_ms - EPOCH_MS
            expected = {row for row in self.views[progress.view.instant] if row[1] < next_ms}
            assert self.sink.rows == expected
            assert self.sink.by_changes == expected

    def crash_with_a_window(self) -> None:
        """A runner dies with a window; another one gets the same rows, whatever happens in between."""
        window = next(self.windows(take_over=True), None)
        if window is None:
            return
        rows = rows_of(window.rows().to_arrow())
        self.commit((put("a", 100, "in between"),))
        self.compact(self.cut_ms + 500, CutMode.EXACT)
        self.clean()
        again = next(self.windows(take_over=True))
        assert (again.begin_ms, again.instant, again.is_correction) == (
            window.begin_ms,
            window.instant,
            window.is_correction,
        )
        assert rows_of(again.rows().to_arrow()) == rows
        assert again.token > window.token
        with pytest.raises(WindowTakenError):
            window.done()

    def clean(self) -> None:
        self.bench.process().cleaner.clean()
        self.bench.process().archiver.archive()


changes = st.builds(
    lambda key, ms, word: put(key, ms, str(word)) if word else delete(key, ms),
    st.sampled_from("abcdefgh"),
    st.integers(1, 5999),
    st.integers(0, 6),
)
steps = st.one_of(
    st.tuples(st.just("commit"), st.lists(changes, min_size=1, max_size=4, unique_by=lambda change: change.key)),
    st.tuples(st.just("compact"), st.tuples(st.integers(0, 6000), st.sampled_from(CutMode))),
    st.tuples(st.just("drain"), st.integers(1, 4)),
    st.tuples(st.sampled_from(["drain all", "clean", "crash"]), st.none()),
)


lives = st.lists(steps, min_size=4, max_size=14)


@pytest.mark.parametrize("version", [6, 9])
@settings(max_examples=6, deadline=None)
@given(life=lives)
def test_every_row_is_delivered_in_one_state_per_window_and_correction(version: int, life: list[Any]) -> None:
    live(version, life)


@pytest.mark.broad
@pytest.mark.parametrize("version", [pytest.param(6, marks=pytest.mark.proof), 9])
@settings(max_examples=150, deadline=None)
@given(life=lives)
def test_every_row_is_delivered_in_one_state_in_many_lives(version: int, life: list[Any]) -> None:
    live(version, life)


def live(version: int, life: list[Any]) -> None:
    world = World(version)
    world.commit(tuple(put(key, 1500, "base") for key in "abc"))
    for step, what in [*life, ("compact", (6000, CutMode.EXACT)), ("drain all", None)]:
        match step:
            case "commit":
                world.commit(tuple(what))
            case "compact":
                world.compact(*what)
            case "drain":
                world.drain(what)
            case "drain all":
                world.drain()
            case "clean":
                world.clean()
            case _:
                world.crash_with_a_window()
    assert world.sink.deliveries


@pytest.mark.parametrize("version", [6, 9])
def test_an_older_row_after_a_merged_delete_is_delivered_as_the_view_has_it(version: int) -> None:
    merged = [("commit", [delete("d", 813)]), ("compact", (1998, CutMode.FILE))]
    live(version, [*merged, ("commit", [put("d", 1, "older")])])


@pytest.fixture(params=[6, 9])
def world(request: pytest.FixtureRequest) -> World:
    """Two windows are closed, one of them was done, and late data has changed it."""
    found = World(request.param)
    found.commit((put("a", 10, "one"), put("b", 1200, "one"), put("c", 2100, "one")))
    found.commit((put("a", 20, "two"),))
    found.compact(2000, CutMode.EXACT)
    found.drain(1)
    found.commit((put("a", 30, "late"), put("d", 40, "late")))
    found.compact(3000, CutMode.EXACT)
    return found


def deliver(process: Any) -> dict[int, Rows]:
    """Takes every window that is due, whatever a dead runner holds."""
    found: dict[int, Rows] = {}
    for window in Table("", {}, process).windows("1s", "billing", take_over=True):
        found[window.begin_ms - EPOCH_MS] = rows_of(window.rows().to_arrow())
        window.done()
    return found


def deliver_all(process: Any) -> None:
    deliver(process)


EXPECTED = {
    0: {("a", 30, "late"), ("d", 40, "late")},
    1000: {("b", 1200, "one")},
    2000: {("c", 2100, "one")},
}


def test_a_kill_before_any_write_loses_no_window(world: World) -> None:
    start = world.bench.moment()
    states = 0
    for _, moment in crash_states(world.bench, start, deliver_all):
        world.bench.load(moment)
        before = world.table.windows("1s", "billing").progress()
        left = deliver(world.bench.process())
        assert left == {at: rows for at, rows in EXPECTED.items() if at in left}
        # What is not delivered now was done before the kill: no window is missing in the order.
        done_ms = (before.next_ms or 0) - EPOCH_MS
        assert {at for at in EXPECTED if at >= done_ms} <= left.keys()
        assert (0 in left) == (
            bool(before.due) or (before.view is not None and before.view.instant == min(world.views))
        )
        after = world.table.windows("1s", "billing").progress()
        assert (after.due, after.open, after.next_ms) == ((), None, EPOCH_MS + 3000)
        states += 1
    assert states > 12


def test_a_write_that_fails_or_is_sent_twice_leaves_the_windows_in_order(world: World) -> None:
    start = world.bench.moment()
    for fault, operation, moment, failure in faults(world.bench, start, deliver_all):
        world.bench.load(moment)
        assert failure is None or isinstance(failure, EventideError), (fault, operation)
        left = deliver(world.bench.process())
        assert left == {at: rows for at, rows in EXPECTED.items() if at in left}
        assert world.table.windows("1s", "billing").progress().next_ms == EPOCH_MS + 3000


def test_two_runners_never_get_one_window_both(world: World) -> None:
    first = next(world.windows())
    with pytest.raises(WindowTakenError, match="another runner holds the window"):
        next(world.windows())
    world.bench.clock.sleep(15 * 60 * 1000)
    second = next(world.windows())
    assert second.begin_ms == first.begin_ms
    assert second.token > first.token
    with pytest.raises(WindowTakenError, match="no longer this runner's"):
        first.done()
    second.renew_lease()
    second.done()
    with pytest.raises(WindowTakenError):
        second.done()


def test_a_runner_gets_its_own_windows_back_and_takes_none_that_another_took(world: World) -> None:
    windows = world.table.windows("1s", "billing")
    first, again = windows.take("ours"), windows.take("ours")
    assert first is not None
    assert again is not None
    assert again.begin_ms == first.begin_ms
    assert again.token > first.token
    with pytest.raises(WindowTakenError, match="no longer this runner's"):
        first.done()
    with pytest.raises(WindowTakenError, match="another runner holds the window"):
        windows.take("theirs")
    world.bench.clock.sleep(15 * 60 * 1000)
    assert windows.take("theirs") is not None
    with pytest.raises(WindowTakenError, match="another runner holds the window"):
        windows.take("ours")


def test_a_runner_that_slept_while_others_went_on_gets_nothing(world: World) -> None:
    """Before each of its writes, another runner takes all windows; the sleeper's put comes too late."""
    start = world.bench.moment()

    def one(process: Any) -> None:
        next(iter(Table("", {}, process).windows("1s", "billing")), None)

    for number, _ in enumerate(writes_of(world.bench, start, one)):
        world.bench.load(start)
        storage: Any = _Interrupted(world, number)
        window = next(iter(Table("", {}, world.bench.process(storage)).windows("1s", "billing")), None)
        assert window is None or window.begin_ms not in storage.done
        names = [
            path for path in world.bench.storage.dump() if path.startswith(WINDOWS_DIRECTORY) and path.endswith("json")
        ]
        assert len(names) <= 2


def test_a_window_is_done_although_another_runner_acts_before_the_put_is_checked(world: World) -> None:
    """After each put of one runner, another takes and ends what is due: together they end each window once."""
    start = world.bench.moment()
    ended_by_both = 0
    for number, _ in enumerate(writes_of(world.bench, start, deliver_all)):
        world.bench.load(start)
        storage: Any = _Interrupted(world, number, is_after=True)
        ended: list[int] = []
        try:
            for window in Table("", {}, world.bench.process(storage)).windows("1s", "billing"):
                window.done()
                ended.append(window.begin_ms)
        except WindowTakenError:
            pass  # of a window that it holds, and that the other runner has taken over
        assert sorted([*ended, *storage.done]) == [EPOCH_MS + at for at in sorted(EXPECTED)], number
        ended_by_both += bool(ended and storage.done)
    assert ended_by_both > 2


def test_a_lease_that_is_renewed_while_its_window_ends_takes_nothing(world: World) -> None:
    window = next(world.windows())
    storage: Any = _Interrupted(world, 0, window.renew_lease)
    (held,) = [Table("", {}, world.bench.process(storage)).windows("1s", "billing").open_window(window.token)]
    assert held is not None
    held.done()
    with pytest.raises(WindowTakenError, match="no longer this runner's"):
        window.renew_lease()


def test_a_runner_whose_window_was_taken_over_and_ended_has_not_ended_it(world: World) -> None:
    window = next(world.windows())

    def take_over() -> None:
        next(world.windows(take_over=True))
        next(world.windows(take_over=True)).done()

    storage: Any = _Interrupted(world, 0, take_over)
    slept = Table("", {}, world.bench.process(storage)).windows("1s", "billing").open_window(window.token)
    assert slept is not None
    with pytest.raises(WindowTakenError, match="no longer this runner's"):
        slept.done()


class _Interrupted:
    """A storage under which another runner acts before the nth put of a state, or after it.

    By default, that runner takes and ends every window. `done` are the begins of the windows that it has ended.
    """

    def __init__(
        self, world: World, number: int, act: Callable[[], None] | None = None, *, is_after: bool = False
    ) -> None:
        self._world, self._left, self._is_after = world, number, is_after
        self._act = act or self._end_all
        self._inner = world.bench.storage
        self.done: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        is_now, self._left = self._left == 0, self._left - 1
        if is_now and not self._is_after:
            self._act()
        is_put = self._inner.put_if_absent(path, data)
        if is_now and self._is_after:
            self._act()
        return is_put

    def _end_all(self) -> None:
        self.done = {EPOCH_MS + at for at in deliver(self._world.bench.process())}


def test_a_clean_keeps_what_a_consumer_has_to_read_for_a_while(world: World) -> None:
    window = next(world.windows(keep="1d"))
    rows = rows_of(window.rows().to_arrow())
    for number in range(4):
        world.commit((put("a", 4000 + number, "later"), put("b", 4100 + number, "later"), put("c", 4200, "x")))
        world.compact(5000 + number, CutMode.EXACT)
        world.clean()
    assert rows_of(window.rows().to_arrow()) == rows
    assert rows_of(window.changes().updated) == {("a", 30, "late")}
    world.bench.clock.sleep(25 * 3600 * 1000)
    world.clean()
    with pytest.raises(CleanedHistoryError, match="renew"):
        window.rows()
    with pytest.raises(CleanedHistoryError, match="renew"):
        next(world.windows())
    again = next(world.windows(renew=True))
    assert again.is_correction
    with pytest.raises(CleanedHistoryError, match="replace the window by its rows"):
        again.changes()
    world.sink = Sink()
    again.done()


def test_late_data_is_only_recorded_where_the_consumer_asks_for_a_ledger(world: World) -> None:
    found = [window.begin_ms - EPOCH_MS for window in _all_done(world.windows(late="ledger"))]
    assert found == [1000, 2000]
    (entry,) = world.table.windows("1s", "billing").progress().ledger
    assert (entry.begin_ms - EPOCH_MS, entry.instant) == (0, max(world.views))


def test_late_data_before_the_retention_is_ignored(world: World) -> None:
    assert [w.begin_ms - EPOCH_MS for w in _all_done(world.windows(corrections_for="0"))] == [1000, 2000]


def _all_done(windows: Iterator[Window]) -> Iterator[Window]:
    for window in windows:
        window.done()
        yield window

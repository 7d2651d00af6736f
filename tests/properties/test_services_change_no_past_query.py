"""Random lives of a table: no service changes the answer of a query of the past (I3, I4).

Before and after each service the table is asked for every commit by time travel, and for every span between two instants,
of compactions too, by an incremental query. From a span, a late version that lost may vanish, as after Hudi's own
compaction: no row that is current, or was at the span's end.
"""

import random
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

import pytest

from eventide.testing.histories import Commit, Layout, delete, put
from eventide.testing.inspection.observation import Observer
from eventide.testing.living_table.account import completed_instants
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Change, Order, Rows
from eventide_core.config import LinkChoice
from eventide_core.errors import CleanedHistoryError
from eventide_core.table.timeline.contents.plans import CutMode
from support.run.campaign import tries
from support.run.reach import reached

pytestmark = pytest.mark.slow

Span = tuple[str, str | None]
TURNS = 14
LATENESS = (0, 0, 1, 2, -1, -2, -5, -9)
OBSERVER = Observer()


@dataclass(frozen=True, slots=True)
class Answers:
    snapshot: Rows
    as_of: Mapping[str, Rows]
    spans: Mapping[Span, Rows]

    @classmethod
    def of(cls, table: LivingTable) -> "Answers":
        """All that the table answers. Skips what cleaning has removed."""
        application = table.bench.process()
        queries, read = application.queries.of_one_moment(), cache(application.storage.read)
        assert queries.moment is not None
        instants = sorted(completed_instants(table.files))
        known = (queries.moment.timeline.completion_time(instant) for instant in instants)
        times = ["0", *sorted(time for time in known if time is not None)]
        as_of: dict[str, Rows] = {}
        spans: dict[Span, Rows] = {}
        with OBSERVER._decoded.used():
            for instant in instants:
                with suppress(CleanedHistoryError):
                    as_of[instant] = OBSERVER.rows(application, read, queries.as_of(instant))
            for span in [*combinations(times, 2), *((begin, None) for begin in times)]:
                with suppress(CleanedHistoryError):
                    spans[span] = OBSERVER.rows(application, read, queries.incremental(*span))
            return cls(OBSERVER.rows(application, read, queries.snapshot()), as_of, spans)

    def check(self, later: "Answers") -> None:
        """Raises AssertionError if a service lies between these answers and the later ones, and has changed them."""
        assert later.snapshot == self.snapshot
        for instant in self.as_of.keys() & later.as_of.keys():
            assert later.as_of[instant] == self.as_of[instant], f"as of {instant}"
        for span in self.spans.keys() & later.spans.keys():
            differing = self.spans[span] ^ later.spans[span]
            at_its_end = [rows for instant, rows in sorted(self.as_of.items()) if span[1] is None or instant <= span[1]]
            current = self.snapshot.union(*at_its_end[-1:])
            assert not differing & current, f"incremental over {span}: {sorted(differing & current)}"
            assert span[1] is None or later.spans[span] <= self.spans[span], f"incremental over {span} gained rows"


class Unwatched(LivingTable):
    """A living table without its own inspections, which cost more than the answers here."""

    def inspect(self, *, whole: bool = False) -> None: ...


@dataclass(slots=True)
class Life:
    table: LivingTable
    chance: random.Random
    now_ms: int = 10
    services: int = 0
    story: list[str] = field(default_factory=list[str])

    def turn(self) -> None:
        self.now_ms += 2
        deeds = {
            "write": 10,
            "begin": 3,
            "end": 3,
            "plan": 3,
            "execute": 2,
            "compact": 4,
            "clean": 2,
            "archive": 1,
            "undo": 1,
        }
        (deed,) = self.chance.choices(list(deeds), list(deeds.values()))
        self.story.append(f"{deed} at {self.now_ms}")
        if deed == "write":
            self.table.write(self.changes())
        elif deed == "begin":
            if len(self.table.open_writes) < 2:
                self.table.begin_write(self.changes())
        elif deed == "end":
            self.table.end_write(self.chance.randint(0, 1))
        else:
            before = Answers.of(self.table)
            self.serve(deed)
            self.services += 1
            before.check(Answers.of(self.table))

    def serve(self, deed: str) -> None:
        if deed in ("plan", "compact") and self.table.account.plan is None:
            self.table.schedule(self.now_ms - self.chance.choice((-3, 0, 1, 2, 3, 4, 6)))
        if deed in ("execute", "compact"):
            self.table.execute()
        elif deed == "clean":
            self.table.clean(self.chance.randint(1, 3))
        elif deed == "archive":
            self.table.archive()
        elif deed == "undo":
            self.table.roll_back_plan()

    def changes(self) -> Commit:
        found: dict[str, Change] = {}
        for _ in range(self.chance.randint(1, 3)):
            key, ms, kind = (
                f"k{self.chance.randint(0, 2)}",
                self.now_ms + self.chance.choice(LATENESS),
                self.chance.random(),
            )
            found[key] = put(key, ms, f"{self.now_ms}") if kind > 0.3 else delete(key, ms if kind > 0.1 else None)
        return tuple(found.values())


@pytest.mark.parametrize("cut", CutMode)
@pytest.mark.parametrize(
    "layout",
    [
        Layout(6, Order.EVENT_TIME),
        Layout(6, Order.HUDI_0X_OVERWRITE),
        Layout(8, Order.COMMIT_TIME),
        Layout(9, Order.EVENT_TIME),
    ],
    ids=lambda layout: f"version {layout.version}, {layout.order.name}",
)
def test_services_change_no_answer_of_a_past_query(layout: Layout, cut: CutMode) -> None:
    services = 0
    for number in range(tries(test=6, proof=100)):
        chance = random.Random(f"{layout} {cut} {number}")
        link = LinkChoice.COPY if cut is CutMode.EXACT else chance.choice((LinkChoice.COPY, LinkChoice.SYMLINK))
        life = Life(Unwatched(layout, link, "services", cut), chance)
        life.table.write((put("k0", 0, "base"), put("k1", 0, "base")))
        try:
            for _ in range(TURNS):
                life.turn()
        except AssertionError as broken:
            raise AssertionError(f"life {number}, {link}: {'; '.join(life.story)}: {broken}") from broken
        services += life.services
    reached("services, with all queries of the past before and after", services)
    assert services > 10


def test_an_increment_after_a_compaction_shows_what_an_open_write_added_below_it() -> None:
    """On version 6, the compaction leaves it over: of the span's log files, this one alone is in the old slice."""
    table = Unwatched(Layout(6, Order.EVENT_TIME), LinkChoice.COPY, "services")
    table.write((put("k0", 0, "base"), put("k1", 0, "base")))
    table.write((put("k0", 5, "merged"),))
    table.begin_write((put("k0", 9, "open"),))
    table.schedule(7)
    plan = table.account.plan
    assert plan is not None
    table.end_write()
    table.write((put("k1", 12, "above"),))
    before = Answers.of(table)
    table.execute()
    after = Answers.of(table)
    assert table.account.plan is None
    before.check(after)
    assert sorted(row[3] for row in after.spans[plan.instant, None]) == ["above", "open"]

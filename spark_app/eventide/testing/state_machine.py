"""A Hypothesis state machine over a living table.

Writes, services, and deaths come in any order, with all invariants after each.

    run_state_machine_as_test(table_machine(configuration, reach))

Uniform choice rarely gets far: a partial compaction needs several commits, a plan, and nothing in between. Therefore,
each example begins with commits, and some steps are sequences that have failed before. There are only a few rules,
because Hypothesis disables some rules in each example. The machine counts what its examples reach.
"""

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum, auto

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from eventide.testing.histories import Commit, Layout, delete, layouts, put
from eventide.testing.inspection.observation import Observer
from eventide.testing.living_table.interruptions import Pause
from eventide.testing.living_table.statements import Statements
from eventide.testing.living_table.table import LivingTable
from eventide.testing.oracle import Change, Order
from eventide_core.config import LinkChoice
from eventide_core.table.timeline.contents.plans import CutMode

KEYS = ("k0", "k1", "k2")
_OPEN_AT_MOST = 2
_STEP_MS = 2  # by how much the event time advances from write to write
# The lateness of event times: most are in order, some are late, some are equal to others.
LATENESS = st.sampled_from([0, 0, 0, 1, 2, 2, -1, -2, -5])
# How far T of a compaction is behind the last write.
THRESHOLDS = st.sampled_from([-3, 0, 1, 2, 3, 4, 6])
# The write before which the process dies; None if it survives. The longest protocol here makes about twenty writes.
DEATHS = st.one_of(st.none(), st.none(), st.integers(0, 16))
PAUSES = st.integers(0, 20)


class Compacting(Enum):
    PLAN_ALONE = auto()
    AT_ONCE = auto()
    BESIDE_A_WRITE = auto()
    BESIDE_OPEN_WRITES = auto()
    BELOW_A_DELETE = auto()
    TWICE_AND_CLEAN = auto()


class Ending(Enum):
    EXECUTE = auto()
    ROLL_BACK = auto()
    BY_A_STOCK_ENGINE = auto()


class OpenWrite(Enum):
    BEGIN = auto()
    END = auto()
    OUTLIVE_ITS_HEARTBEAT = auto()


class Service(Enum):
    CLEAN = auto()
    UNDO_LAST = auto()
    SAVE = auto()
    RESTORE = auto()
    DELETE_SAVEPOINT = auto()
    ARCHIVE = auto()


class Verb(Enum):
    """What stands still."""

    INGEST = auto()
    PLAN = auto()
    EXECUTE = auto()
    SERVE = auto()
    CLEAN = auto()
    ROLL_BACK = auto()
    ROLL_BACK_PLAN = auto()
    ARCHIVE = auto()


class Other(Enum):
    """What another process does meanwhile."""

    UNDO = auto()
    WRITE = auto()
    COMPACT = auto()
    CLEAN = auto()
    ARCHIVE = auto()
    GO_BEYOND = auto()


@dataclass(frozen=True, slots=True)
class Configuration:
    """A kind of table and of compaction. It has `partitions` times the layout's buckets file groups."""

    layout: Layout
    link: LinkChoice
    cut: CutMode
    partitions: tuple[str, ...]

    def __str__(self) -> str:
        groups = self.layout.buckets * len(self.partitions)
        times = "-texts" if self.layout.has_text_times else ""
        return f"v{self.layout.version}-{self.layout.order.name}{times}-{self.link}-{self.cut}-{groups} groups"


def configurations() -> tuple[Configuration, ...]:
    """Each merge order and link mode of versions 6 and 9, and the exact cut; with one and with four file groups.

    Version 8 has the layout of version 9, so only a few configurations use it. The same applies to version 6 without an
    ordering field, the only kind whose records may lack an event time.
    """
    choices: list[Configuration] = []
    for has_many in (False, True):
        # The tables with many file groups have event times in block headers; for the others they have to be read from
        # records.
        for layout in layouts(has_block_event_times=has_many, buckets=2 if has_many else 1):
            kinds = [(link, CutMode.FILE) for link in (LinkChoice.COPY, LinkChoice.SYMLINK, LinkChoice.HARDLINK)]
            kinds += [(LinkChoice.PREFIX, CutMode.FILE)] if layout.version >= 8 else []
            kinds += [(LinkChoice.COPY, CutMode.EXACT)]
            choices += [Configuration(layout, link, cut, ("a", "b") if has_many else ("a",)) for link, cut in kinds]
    by_event, by_commit = Layout(8, Order.EVENT_TIME, has_block_event_times=True), Layout(8, Order.COMMIT_TIME)
    choices += [
        Configuration(by_event, LinkChoice.COPY, CutMode.FILE, ("a",)),
        Configuration(by_event, LinkChoice.PREFIX, CutMode.FILE, ("a", "b")),
        Configuration(by_commit, LinkChoice.COPY, CutMode.EXACT, ("a",)),
        Configuration(by_commit, LinkChoice.PREFIX, CutMode.FILE, ("a",)),
    ]
    choices += [
        Configuration(Layout(6, Order.COMMIT_TIME), LinkChoice.COPY, CutMode.FILE, ("a",)),
        Configuration(Layout(6, Order.COMMIT_TIME, buckets=2), LinkChoice.SYMLINK, CutMode.FILE, ("a", "b")),
        Configuration(Layout(6, Order.COMMIT_TIME), LinkChoice.COPY, CutMode.EXACT, ("a",)),
    ]
    for version in (6, 9):
        texts = Layout(version, Order.COMMIT_TIME, has_text_times=True)
        choices += [
            Configuration(texts, LinkChoice.COPY, CutMode.FILE, ("a",)),
            Configuration(replace(texts, buckets=2), LinkChoice.COPY, CutMode.EXACT, ("a", "b")),
        ]
    return tuple(choices)


@st.composite
def commits(draw: st.DrawFn, partitions: tuple[str, ...], layout: Layout) -> Commit:
    """Changes of a few keys: upserts, including late ones and ties, and deletes with and without an event time.

    Event times are relative to the time of the write. In a table in commit order, some upserts have none, or one that
    can't be read if they are texts.
    """
    changes: dict[tuple[str, str], Change] = {}
    for _ in range(draw(st.integers(1, 3))):
        key, partition = draw(st.sampled_from(KEYS)), draw(st.sampled_from(partitions))
        kind = draw(st.integers(0, 9))
        if kind == 0:
            change = delete(key, partition=partition)
        elif kind <= 2:
            change = delete(key, draw(LATENESS), partition=partition)
        elif kind == 3 and layout.order is Order.COMMIT_TIME:
            change = put(key, None, f"word {draw(st.integers(0, 99))}", partition=partition)
        elif kind == 4 and layout.has_text_times:
            change = replace(put(key, None, "word", partition=partition), is_unreadable=True)
        else:
            change = put(key, draw(LATENESS), f"word {draw(st.integers(0, 99))}", partition=partition)
        changes[partition, key] = change
    return tuple(changes.values())


class TableMachine(RuleBasedStateMachine):
    """The steps of a living table of any kind. `table_machine` adds the rules whose commits depend on the kind."""

    def __init__(self, configuration: Configuration, reach: Counter[str], observer: Observer) -> None:
        super().__init__()
        self.table = LivingTable(
            configuration.layout, configuration.link, "state-machine", configuration.cut, reach, observer
        )
        self.now_ms = 10
        self.reach = reach
        reach["examples"] += 1

    @property
    def has_plan(self) -> bool:
        return self.table.account.plan is not None

    def commit(self, changes: Commit, death: int | None = None) -> None:
        self.table.write(self.timed(changes), death)

    def timed(self, changes: Commit) -> Commit:
        """The changes, with event times relative to the next step of event time."""
        self.now_ms += _STEP_MS
        return tuple(c if c.ms is None else replace(c, ms=self.now_ms + c.ms) for c in changes)

    def change_open_writes(self, how: OpenWrite, commit: Commit, number: int, death: int | None) -> None:
        match how:
            case OpenWrite.BEGIN if len(self.table.open_writes) < _OPEN_AT_MOST:
                self.table.begin_write(self.timed(commit), death)
            case OpenWrite.OUTLIVE_ITS_HEARTBEAT:
                self.table.expire_heartbeats()
            case _:
                self.table.end_write(number, death)

    def plan_or_compact(self, how: Compacting, commit: Commit, behind_ms: int, death: int | None) -> None:
        match how:
            case Compacting.PLAN_ALONE:
                self.table.schedule(self.now_ms - behind_ms, death)
            case Compacting.AT_ONCE:
                self.commit(commit)
                self.table.schedule(self.now_ms - behind_ms)
                self.table.execute(death)
            case Compacting.BESIDE_A_WRITE:
                self.table.schedule(self.now_ms - behind_ms)
                self.commit(commit)
                self.table.execute(death)
            case Compacting.BESIDE_OPEN_WRITES:
                self.table.begin_write(self.timed(commit))
                self.table.schedule(self.now_ms - behind_ms)
                self.table.begin_write(self.timed(commit[:1]))
                self.table.execute(death)
                self.table.end_write()
                self.table.end_write(crash_at=death)
            case Compacting.BELOW_A_DELETE:
                # The delete is merged because of the upsert beside it, and the upsert that the delete beats is left
                # over.
                above = replace(commit[0], is_unreadable=False)
                beside = "k1" if above.key == "k0" else "k0"
                self.commit((replace(above, key=beside, ms=-1, word="beside"), replace(above, ms=9, word=None)))
                self.commit((replace(above, ms=1, word="beaten"),))
                self.table.schedule(self.now_ms)
                self.table.execute(death)
            case Compacting.TWICE_AND_CLEAN:
                for _ in range(2):
                    self.commit(commit)
                    self.table.schedule(self.now_ms - behind_ms)
                    self.table.execute()
                self.table.clean(1, death)

    def pause(self, verb: Verb, before: int, others: list[Other], commit: Commit, behind_ms: int) -> None:
        """A process is paused before a write of its verb, others work on the table, and it continues."""
        table, cut_ms = self.table, self.now_ms - behind_ms
        pause = Pause(before, lambda: self.go_on(others, commit, behind_ms))
        if verb in (Verb.EXECUTE, Verb.ROLL_BACK_PLAN) and not self.has_plan:
            table.schedule(cut_ms)
        match verb:
            case Verb.INGEST:
                table.write(self.timed(commit), pause)
            case Verb.PLAN:
                table.schedule(cut_ms, pause)
            case Verb.EXECUTE:
                table.execute(pause)
            case Verb.SERVE:
                table.serve(cut_ms, pause)
            case Verb.CLEAN:
                table.clean(1, pause)
            case Verb.ROLL_BACK:
                table.undo_last(pause)
            case Verb.ROLL_BACK_PLAN:
                table.roll_back_plan(pause)
            case Verb.ARCHIVE:
                table.archive(pause)

    def go_on(self, others: list[Other], commit: Commit, behind_ms: int) -> None:
        for other in others:
            match other:
                case Other.UNDO:
                    self.table.undo_what_is_left()
                case Other.WRITE:
                    self.commit(
                        tuple(c if c.word is None else replace(c, word=f"others {self.now_ms}") for c in commit)
                    )
                case Other.COMPACT:
                    self.table.schedule(self.now_ms - behind_ms)
                    self.table.execute()
                case Other.CLEAN:
                    self.table.clean(1)
                case Other.ARCHIVE:
                    self.table.archive()
                case Other.GO_BEYOND:
                    for _ in range(2):
                        self.go_on([Other.UNDO, Other.WRITE, Other.COMPACT, Other.CLEAN, Other.ARCHIVE], commit, 0)

    @precondition(lambda self: self.has_plan)
    @rule(how=st.sampled_from(Ending), death=DEATHS)
    def end_the_compaction(self, how: Ending, death: int | None) -> None:
        self.reach["steps"] += 1
        match how:
            case Ending.EXECUTE:
                self.table.execute(death)
            case Ending.ROLL_BACK:
                self.table.roll_back_plan(death)
            case Ending.BY_A_STOCK_ENGINE:
                self.table.execute_as_stock()

    @rule(what=st.sampled_from(Service), retained=st.integers(1, 3), death=DEATHS)
    def serve(self, what: Service, retained: int, death: int | None) -> None:
        self.reach["steps"] += 1
        match what:
            case Service.CLEAN:
                self.table.clean(retained, death)
            case Service.UNDO_LAST:
                self.table.undo_last(death)
            case Service.SAVE:
                self.table.save(death)
            case Service.RESTORE:
                self.table.restore(death)
            case Service.DELETE_SAVEPOINT:
                self.table.delete_savepoint(death)
            case Service.ARCHIVE:
                self.table.archive(death)

    def teardown(self) -> None:
        while self.table.open_writes:
            self.table.end_write()
        self.table.inspect(whole=True)


def table_machine(configuration: Configuration, reach: Counter[str]) -> type[RuleBasedStateMachine]:
    """The machine for one kind of table. `reach` counts what its examples reach."""
    changes = commits(configuration.partitions, configuration.layout)
    observer = Observer()  # shared by all examples: it caches the content of files

    class MachineOfKind(TableMachine):
        def __init__(self) -> None:
            super().__init__(configuration, reach, observer)

        @initialize(first=st.lists(changes, min_size=1, max_size=3))
        def begin(self, first: list[Commit]) -> None:
            self.table.statements = Statements() if len(first) % 2 else None
            bases = [put(key, 0, "base", partition=p) for p in configuration.partitions for key in KEYS[:2]]
            for commit in (tuple(bases), *first):
                self.commit(commit)

        @rule(commit=changes, death=DEATHS)
        def write(self, commit: Commit, death: int | None) -> None:
            reach["steps"] += 1
            self.commit(commit, death)

        @rule(
            how=st.sampled_from([OpenWrite.BEGIN, *OpenWrite]), commit=changes, number=st.integers(0, 1), death=DEATHS
        )
        def open_write(self, how: OpenWrite, commit: Commit, number: int, death: int | None) -> None:
            """Writes that stay pending during other writes, services, and compactions; at most two at a time."""
            reach["steps"] += 1
            self.change_open_writes(how, commit, number, death)

        @precondition(lambda self: not self.has_plan)
        @rule(
            how=st.sampled_from([Compacting.PLAN_ALONE, *Compacting]),
            commit=changes,
            behind_ms=THRESHOLDS,
            death=DEATHS,
        )
        def compact(self, how: Compacting, commit: Commit, behind_ms: int, death: int | None) -> None:
            reach["steps"] += 1
            self.plan_or_compact(how, commit, behind_ms, death)

        @rule(
            verb=st.sampled_from(Verb),
            before=PAUSES,
            others=st.lists(st.sampled_from(Other), min_size=1, max_size=3),
            commit=changes,
            behind_ms=THRESHOLDS,
        )
        def stand_still(self, verb: Verb, before: int, others: list[Other], commit: Commit, behind_ms: int) -> None:
            reach["steps"] += 1
            self.pause(verb, before, others, commit, behind_ms)

    MachineOfKind.__name__ = f"TableMachine of {configuration}"
    return MachineOfKind

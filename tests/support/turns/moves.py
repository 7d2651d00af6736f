"""The moves of a turn: eventide's run directly, Hudi's are requests to its judge. After each, the oracle is updated."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from eventide import Table
from eventide.bootstrap import assemble
from eventide.engine_local import LocalEngine
from eventide.results.plan import Plan
from eventide.rows.writer import incoming_records
from eventide.testing.oracle import Change
from eventide_adapters.storage.faulty import Fault, FaultPlan, FaultyStorage, SimulatedCrash
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import BusyError
from eventide_core.ports import NoProgress
from eventide_core.table.files.log_block import read_blocks
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import LinkMode
from support.judge.deeds import Deed, Statements, Write, call_of, call_on, pairs
from support.turns.kinds import EVENTIDE
from support.turns.life import SCHEMA, Life, Scheduled, rows_of

# Procedures of Hudi 0.15 and 1.x look here for what a write passes as options.
_PLAIN_SETTINGS = ("hoodie.metadata.enable", "hoodie.write.table.version", "hoodie.write.auto.upgrade")
MOST_WRITES = 14  # of the execution of a plan for two file groups


class Move(Protocol):
    """`actor` is eventide or a version of Hudi."""

    @property
    def actor(self) -> str: ...

    def by_eventide(self, life: Life, /) -> None: ...

    def by_hudi(self, life: Life, /) -> tuple[Deed, ...]: ...

    def happened(self, life: Life, /) -> None:
        """Updates the oracle. Raises AssertionError if the timeline does not show the move."""
        ...


@dataclass(frozen=True, slots=True)
class WriteChanges:
    """Upserts, and deletes that have an ordering value or, if `is_natural`, delete any version."""

    actor: str
    changes: tuple[Change, ...]
    is_natural: bool = False

    def by_eventide(self, life: Life) -> None:
        table = life.table if life.path.exists() else _made(life)
        rows = rows_of(self.changes)
        if self.is_natural:
            table.delete(rows.select(["id", "part"]))
        else:
            table.upsert(rows)

    def by_hudi(self, life: Life) -> tuple[Deed, ...]:
        return (Write(life.path, rows_of(self.changes), life.kind.options, "delete" if self.is_natural else "upsert"),)

    def happened(self, life: Life) -> None:
        new = [time for time in life.instants("deltacommit", "commit") if time not in life.known]
        assert len(new) == 1, f"a write left the commits {new}"
        before = life.oracle.copy()
        natural = tuple(replace(change, ms=None) for change in self.changes) if self.is_natural else self.changes
        life.oracle.commit(new[0], natural)
        life.known.add(new[0])
        life.undoable = (new[0], before) if life.scheduled is None else None
        if life.scheduled is not None:
            life.scheduled = replace(life.scheduled, is_written_above=True)
        life.has_dead_write = False


@dataclass(frozen=True, slots=True)
class DieWriting:
    """A writer of eventide dies after it has written its files. The next writer rolls them back."""

    changes: tuple[Change, ...]
    actor: str = EVENTIDE

    def by_eventide(self, life: Life) -> None:
        dying = assemble(str(life.path), life.options)
        records = incoming_records(dying, WriteOperation.UPSERT, rows_of(self.changes))
        pending = dying.append.begin(WriteOperation.UPSERT, records, NoProgress())
        dying.heartbeats.stop(pending.instant)

    def by_hudi(self, _: Life) -> tuple[Deed, ...]:
        raise AssertionError("Hudi is not killed here")

    def happened(self, life: Life) -> None:
        life.undoable = None
        life.has_dead_write = True


@dataclass(frozen=True, slots=True)
class Schedule:
    """A plan of eventide up to a T, or of Hudi for everything. `executes`: also runs it."""

    actor: str
    before_ms: int
    link_mode: str
    executes: bool

    def by_eventide(self, life: Life) -> None:
        table = life.table
        draft = table.plan_compaction(self.before_ms, link_mode=self.link_mode)
        plan = table.schedule(draft, is_for_later=not self.executes)
        if plan.idle is not None or not plan.instant:
            return
        life.scheduled = _scheduled(life, plan)
        if self.executes:
            table.execute(plan.instant)

    def by_hudi(self, life: Life) -> tuple[Deed, ...]:
        options = pairs({"hoodie.compact.inline.max.delta.commits": "1", **life.kind.options})
        schedule = call_of("run_compaction", op="schedule", path=life.path, options=options)
        return (_procedures(life, schedule), *(_run(life) if self.executes else ()))

    def happened(self, life: Life) -> None:
        if life.scheduled is None:
            pending = life.instants("compaction", is_completed=False)
            done = [time for time in life.instants("commit") if time not in life.known]
            if not (pending or done):
                return
            counts = {partition: count for partition, count in life.oracle.log_counts().items() if count}
            life.scheduled = Scheduled((pending or done)[0], self.actor, None, counts, counts, counts)
        life.undoable = None
        if self.executes:
            _executed(life, self.actor)


@dataclass(frozen=True, slots=True)
class Execute:
    actor: str

    def by_eventide(self, life: Life) -> None:
        assert life.scheduled is not None
        life.table.execute(life.scheduled.instant)

    def by_hudi(self, life: Life) -> tuple[Deed, ...]:
        return _run(life)

    def happened(self, life: Life) -> None:
        _executed(life, self.actor)


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Eventide dies before a write of an execution."""

    write: int
    actor: str = EVENTIDE

    def by_eventide(self, life: Life) -> None:
        assert life.scheduled is not None
        storage = FaultyStorage(LocalStorage(str(life.path)), FaultPlan(writes={self.write: Fault.CRASH_BEFORE}))
        application = assemble(str(life.path), life.options, storage=storage, engine=LocalEngine(1))
        try:
            application.runner.execute(life.scheduled.instant, NoProgress())
        except SimulatedCrash:
            # Its owner would be dead, but is this process.
            (life.path / ".hoodie" / "lock").unlink(missing_ok=True)

    def by_hudi(self, _: Life) -> tuple[Deed, ...]:
        raise AssertionError("Hudi is not killed here")

    def happened(self, life: Life) -> None:
        assert life.scheduled is not None
        if life.scheduled.instant in life.instants("commit"):
            _executed(life, self.actor)


@dataclass(frozen=True, slots=True)
class RollPlanBack:
    """Refused if an execution died after it had fixed its completion time: then the plan can only be executed."""

    actor: str = EVENTIDE

    def by_eventide(self, life: Life) -> None:
        assert life.scheduled is not None
        try:
            life.table.rollback(life.scheduled.instant)
        except BusyError as refused:
            if "is about to complete" not in str(refused):
                raise

    def by_hudi(self, _: Life) -> tuple[Deed, ...]:
        raise AssertionError("Hudi has no procedure for it")

    def happened(self, life: Life) -> None:
        if not life.instants("compaction", is_completed=False):
            life.scheduled = None


@dataclass(frozen=True, slots=True)
class RollWriteBack:
    """Rolls back the last write, which was reported as complete."""

    actor: str

    def by_eventide(self, life: Life) -> None:
        assert life.undoable is not None
        life.table.rollback(life.undoable[0])

    def by_hudi(self, life: Life) -> tuple[Deed, ...]:
        assert life.undoable is not None
        return (call_on(life.path, "rollback_to_instant", _settings(life), instant_time=life.undoable[0]),)

    def happened(self, life: Life) -> None:
        assert life.undoable is not None
        instant, life.oracle = life.undoable
        assert instant not in life.instants("deltacommit", "commit")
        life.undoable = None


@dataclass(frozen=True, slots=True)
class Clean:
    actor: str
    retained: int

    def by_eventide(self, life: Life) -> None:
        life.table.clean(self.retained)

    def by_hudi(self, life: Life) -> tuple[Deed, ...]:
        return (call_on(life.path, "run_clean", _settings(life), retain_commits=self.retained),)

    def happened(self, life: Life) -> None:
        if self.actor == EVENTIDE:
            life.has_dead_write = False


@dataclass(frozen=True, slots=True)
class Archive:
    actor: str = EVENTIDE

    def by_eventide(self, life: Life) -> None:
        life.table.archive()

    def by_hudi(self, _: Life) -> tuple[Deed, ...]:
        raise AssertionError("Hudi archives when it writes")

    def happened(self, _: Life) -> None:
        """Changes no row."""


def _made(life: Life) -> Table:
    options = {**life.options, **life.kind.options}
    return Table.create(
        str(life.path),
        schema=SCHEMA,
        record_key="id",
        partition="part",
        event_time="event_ts",
        version=life.kind.version,
        options={**options, "hoodie.write.record.merge.mode": life.kind.merge_mode},
    )


def _scheduled(life: Life, plan: Plan) -> Scheduled:
    """The log files of the oracle that a plan of eventide merges: those whose commits it merges."""
    planned: dict[str, int] = {}
    merged: dict[str, int] = {}
    merged_by_hudi: dict[str, int] = {}
    for op in plan.operations:
        logs = life.oracle.log_instants(op.partition)
        taken = set[str]().union(*(_instants(life.path / log.path) for log in op.compacted))
        count = next((n for n, log in enumerate(logs) if not log & taken), len(logs))
        assert not any(log & taken for log in logs[count:]), f"the plan leaves out a log in {op.partition}: {plan}"
        fewest = life.oracle.fewest_merged(op.partition, plan.cut_ms or 0)
        assert count in (fewest, len(logs)), f"{count} logs of {op.partition} are merged, {fewest} lie before T"
        planned[op.partition], merged[op.partition] = len(logs), count
        merged_by_hudi[op.partition] = count if plan.draft.plan.link_mode is LinkMode.PREFIX else len(logs)
    for partition, count in life.oracle.log_counts().items():
        assert partition in merged or life.oracle.fewest_merged(partition, plan.cut_ms or 0) == 0, partition
        planned.setdefault(partition, count)
    return Scheduled(plan.instant, EVENTIDE, plan.cut_ms, planned, merged, merged_by_hudi)


def _instants(path: Path) -> frozenset[str]:
    """The commits that have blocks in a log file."""
    data = path.read_bytes()
    blocks = read_blocks(lambda at, size: data[at : at + size], len(data), str(path), is_strict=True)
    return frozenset(block.instant_time or "" for block in blocks)


def _executed(life: Life, actor: str) -> None:
    plan = life.scheduled
    assert plan is not None
    assert plan.instant in life.instants("commit"), f"the compaction at {plan.instant} has not completed"
    if actor == EVENTIDE:
        life.oracle.compact(plan.cut_ms, plan.merged, known=plan.planned)
        life.cut_ms = max(life.cut_ms, plan.cut_ms or 0)
    else:
        merged = plan.merged_by_hudi
        life.oracle.compact(None, merged, by=life.kind.orders[actor], known=merged)
    life.known.add(plan.instant)
    life.scheduled = None


def _run(life: Life) -> tuple[Deed, ...]:
    run = call_of("run_compaction", op="execute", path=life.path, options=pairs(life.kind.options))
    return (_procedures(life, run),)


def _procedures(life: Life, *calls: str) -> Statements:
    return Statements(calls, _settings(life))


def _settings(life: Life) -> dict[str, str]:
    return {key: life.kind.options[key] for key in _PLAIN_SETTINGS if key in life.kind.options}

"""Verbs of a process that stands still, each on a table with a history, and what is wrong with the table when it woke up."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, partial

from eventide import Table
from eventide.bootstrap import Application
from eventide.table.table_service import TableService
from eventide.testing.crash_enumeration import Bench, Moment, Protocol
from eventide.testing.histories import EPOCH_MS, SCHEMA, Commit, Layout, Story, delete, put, records
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide_adapters.storage.faulty import Operation
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import METADATA_TABLE, LinkChoice
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress
from eventide_core.service.common.facts.needed_files import savepoints_of
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.contents.plans import CutMode
from eventide_core.table.timeline.instant import Action
from support.faults import damages
from support.faults.damages import Damaged, table_to_damage
from support.pasts import served
from support.pasts.served import EARLY, Service, begin_past
from support.pauses.services import Shown, shown
from support.pauses.standstill import (
    OWN,
    Kind,
    Others,
    Rows,
    Woken,
    archive,
    by_key,
    clean,
    difference,
    ingest,
    merged,
    verified,
    wakings,
)

TAG = "kept"
NULL_FOR_MISSING = "hoodie.write.set.null.for.missing.columns"
_RANDOM = re.compile(r"lock\.[0-9a-f]+$")
Check = Callable[["Scene", Bench, Moment], str | None]


@dataclass(frozen=True, slots=True)
class Scene:
    """A table at `start`, what a process does there that stands still, and the rows before and after it.

    `again` is the verb as others call it who finish what it left. `own` is what it writes, if it merges that with the rows
    that others write. `is_rolled_forward`: whoever comes next may complete it, whether or not it reported success.
    `kept` says what is missing of its effect, if anything, after it has reported success. `mend` is what others have to do
    after it failed.
    """

    bench: Bench
    start: Moment
    run: Protocol
    before: Shown
    after: Shown
    again: Protocol
    own: Commit = ()
    is_rolled_forward: bool = False
    kept: Check = lambda *_: None
    mend: Protocol | None = None
    at: Callable[[Operation], bool] = field(default=lambda _: True)

    def wakings(self, kind: Kind) -> Iterator[Woken]:
        others = partial(Others, kind=kind, again=self.again, rewritten=self.own)
        return wakings(self.bench, self.start, self.run, at=self.at, others=others)

    def problems(self, kind: Kind) -> tuple[int, list[str]]:
        """The number of places at which the process stood still, and what is wrong after which of them."""
        found = [(woken, self.wrong(woken)) for woken in self.wakings(kind)]
        return len(found), [in_words(woken, problem) for woken, problem in found if problem is not None]

    def wrong(self, woken: Woken) -> str | None:
        """What is wrong with the table when the process woke up, and after others have gone on; None if nothing is."""
        if woken.blocked is not None:
            return f"others were stopped: {named(woken.blocked)}"
        for is_later in (False, True):
            problem = self._problem(woken, is_later=is_later)
            if problem is not None:
                return f"{'later' if is_later else 'awake'}: {problem}"
        if woken.failure is not None and woken.completed:
            return "others completed its plan, which it does not find"
        return None

    def _problem(self, woken: Woken, *, is_later: bool) -> str | None:
        others = Others(self.bench, 1_000, kind=Kind.EXECUTE, completes_restores=woken.leaves_restores)
        self.bench.load(woken.moment)
        try:
            if self.mend is not None and woken.failure is not None:
                self.mend(self.bench.process())
            if is_later:
                others.go_on(2)
            problem = self._wrong_now(woken, others)
            if problem is None and woken.failure is None:
                problem = self.kept(self, self.bench, self.bench.moment())
        except EventideError as error:
            return named(error)
        return problem

    def _wrong_now(self, woken: Woken, others: Others) -> str | None:
        application = self.bench.process()
        found = by_key(shown(application))
        possible = list(self._possible(woken, tuple(others.written)))
        if found not in possible:
            return f"rows: {difference(found, possible[0])}"
        problems = verified(application)
        if problems:
            return f"verify: {problems}"
        pending = [i for i in application.state().timeline.pending if i.action is not Action.SAVEPOINT]
        return f"pending: {[str(i.file_name) for i in pending]}" if others.written and pending else None

    def _possible(self, woken: Woken, later: tuple[Commit, ...]) -> Iterator[Rows]:
        written = (*woken.written, *later)
        if woken.failure is None:
            yield merged(self.after, written) if not self.own else merged(self.before, (self.own, *written))
            if not woken.has_begun:
                yield merged(self.after, later)
            return
        yield merged(self.before, written)
        if self.is_rolled_forward:
            yield merged(self.after, written)


def in_words(woken: Woken, problem: str) -> str:
    ended = "said done" if woken.failure is None else named(woken.failure)
    kind, path = woken.operation
    return f"{woken.number} {kind} {_RANDOM.sub('lock.*', path)}: {ended}; {problem}"


def named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:400]


def table_of(application: Application) -> Table:
    """The table as its users have it."""
    return Table(application.storage.root, application.options.values, application)


def scene(verb: str, layout: Layout) -> Scene:
    return _scene(verb, layout)


@cache
def _scene(verb: str, layout: Layout) -> Scene:
    return SCENES[verb](layout)


def _of(service: Callable[[Story, Bench], Service], layout: Layout, *, is_rolled_forward: bool = False) -> Scene:
    past = begin_past(service, layout)
    before, after = (_rows(oracle.snapshot()) for oracle in (past.story.oracle, past.service.after))
    return Scene(
        Bench("paused", EARLY),
        past.start,
        past.service.run,
        before,
        after,
        past.service.run,
        is_rolled_forward=is_rolled_forward,
    )


def _rows(snapshot: frozenset[tuple[object, ...]]) -> Shown:
    return frozenset(row[:-1] for row in snapshot)


def _plain(run: Protocol, layout: Layout) -> Scene:
    """A verb that changes no row."""
    return replace(_of(served.clean, layout), run=run, again=run)


BEYOND_THE_CUT: tuple[Commit, ...] = (
    (put("k1", 24, "merged"), put("k2", 25, "merged", partition="b")),
    (put("k0", 26, "merged"), put("k3", 40, "left over")),
    (put("k1", 41, "left over"), put("k2", 42, "left over", partition="b")),
)


def _compact(cut: CutMode, layout: Layout) -> Scene:
    """It merges log files, and leaves others over."""

    def run(application: Application) -> None:
        application.pending.end(NoProgress())
        request = CompactionRequest(EPOCH_MS + 30, None, LinkChoice.COPY, cut=cut)
        draft = application.scheduler.schedule(request)
        if draft.idle is None:
            application.runner.execute(draft.plan.instant, NoProgress())

    plain = _plain(run, layout)
    plain.bench.load(plain.start)
    for changes in BEYOND_THE_CUT:
        plain.bench.clock.sleep(10)
        ingest(changes)(plain.bench.process())
    return replace(plain, start=plain.bench.moment(), before=(rows := shown(plain.bench.process())), after=rows)


def _run_plan_of_hudi(layout: Layout) -> Scene:
    plain = _plain(clean, layout)
    plain.bench.load(plain.start)
    instant = schedule_as_stock(plain.bench.process())

    def run(application: Application) -> None:
        application.runner.execute(instant, NoProgress())

    return replace(plain, start=plain.bench.moment(), run=run, again=run)


def _ingest(layout: Layout) -> Scene:
    return replace(_plain(ingest(OWN), layout), own=OWN)


def _overwrite(layout: Layout) -> Scene:
    run = ingest(OWN[:2], WriteOperation.INSERT_OVERWRITE)
    plain = _plain(run, layout)
    kept = {row for row in plain.before if row[0] != "part=a"}
    new = {("part=a", "k0", EPOCH_MS + 70, "own"), ("part=a", "k9", EPOCH_MS + 71, "own")}
    return replace(plain, after=frozenset({*new, *kept}), is_rolled_forward=True)


UPDATED: Commit = (put("k0", 20, "updated"), put("k2", 21, "updated", partition="b"))
MERGED: Commit = (put("k0", 73, "merged"), put("k9", 74, "merged"), delete("k3", 72))


def _update(layout: Layout) -> Scene:
    def run(application: Application) -> None:
        table_of(application).update({"word": "'updated'"}, f"ms >= {EPOCH_MS + 20} and ms <= {EPOCH_MS + 21}")

    return replace(_plain(run, layout), own=UPDATED)


def _merge(layout: Layout) -> Scene:
    source, _ = records((*MERGED[:2], put("k3", 72, "drop")))
    assert source is not None

    def run(application: Application) -> None:
        table_of(application).merge(
            source,
            when_matched_update=True,
            when_matched_delete="source.word = 'drop'",
            when_not_matched_insert="source.word <> 'drop'",
        )

    return replace(_plain(run, layout), own=MERGED)


def _alter(layout: Layout) -> Scene:
    def run(application: Application) -> None:
        table_of(application).alter(add={"fare": "double"})

    def kept(_: Scene, bench: Bench, moment: Moment) -> str | None:
        bench.load(moment)
        names = bench.process().state().schema.field_names
        return None if names[: len(SCHEMA) + 1] == (*SCHEMA.names, "fare") else f"the columns are {names}"

    bench = Bench("altered", EARLY | {NULL_FOR_MISSING: "true"})  # others know nothing of the column
    return replace(_plain(run, layout), bench=bench, kept=kept)


def _rollback_of_failed(layout: Layout) -> Scene:
    return _of(served.undo_failed, layout)


def _rollback_of_completed(layout: Layout) -> Scene:
    return _of(served.undo_completed, layout, is_rolled_forward=True)


def _rollback_of_compaction(layout: Layout) -> Scene:
    return _of(served.undo_compaction, layout, is_rolled_forward=True)


def _restore(layout: Layout) -> Scene:
    return _of(served.restore, layout, is_rolled_forward=True)


def _save(layout: Layout, tag: str | None = None) -> Scene:
    plain = _plain(clean, layout)
    plain.bench.load(plain.start)
    saved = plain.bench.process().state().timeline.writes[-1].requested_time

    def run(application: Application) -> None:
        if tag is None:
            application.savepoints.save(saved)
        else:
            application.savepoints.save_tag(tag, instant=None, threshold_ms=None, comments="")

    return replace(plain, run=run, again=run, kept=partial(_why_not_kept, saved=saved, tag=tag))


def _why_not_kept(scene: Scene, bench: Bench, moment: Moment, *, saved: str, tag: str | None) -> str | None:
    """Of the commit that was saved; a tag that waited for its turn may be of a later one."""
    bench.load(moment)
    application = bench.process()
    state = application.state()
    known = savepoints_of(application.files, state)
    if tag is not None:
        (saved,) = [instant for instant, kept in known.items() if kept.tag == tag] or ["nothing"]
    if saved not in known:
        return f"there is no savepoint at {saved}; there is {sorted(known)}"
    names = {f"{part}/{name}" for part, of_part in known[saved].files.items() for name in of_part}
    gone = sorted(names - bench.storage.dump().keys())
    if gone:
        return f"files of the savepoint are gone: {gone}"
    as_of = _read_as_of(application, saved)
    if as_of != scene.before and tag is None:
        return f"as of the savepoint: {difference(by_key(as_of), by_key(scene.before))}"
    application.restorer.restore(saved)
    restored = shown(bench.process())
    return None if restored == as_of else f"restored: {difference(by_key(restored), by_key(as_of))}"


def _read_as_of(application: Application, instant: str) -> Shown:
    columns = ("_hoodie_partition_path", "key", "ms", "word")
    found = table_of(application).as_of(instant).to_arrow().to_pylist()
    return frozenset(tuple(row[name] for name in columns) for row in found)


def _rebuild(layout: Layout) -> Scene:
    def run(application: Application) -> None:
        table_of(application).rebuild_metadata_table()

    return replace(_plain(run, layout), kept=partial(_why_no_metadata_table, is_expected=True))


def _drop(layout: Layout) -> Scene:
    """A write with the option that drops the metadata table."""
    plain = _ingest(replace(layout, has_metadata_table=True))
    bench = Bench("drops", EARLY | {METADATA_TABLE: "drop"})
    return replace(plain, bench=bench, kept=partial(_why_no_metadata_table, is_expected=False))


def _why_no_metadata_table(_: Scene, bench: Bench, moment: Moment, *, is_expected: bool) -> str | None:
    bench.load(moment)
    partitions = bench.process().files.config().metadata_partitions
    return None if bool(partitions) is is_expected else f"the metadata table has {partitions}"


def _repair(damage: Callable[[Damaged], None], layout: Layout) -> Scene:
    def run(application: Application) -> None:
        application.repairer.apply((), is_deep=True, progress=NoProgress())

    bench, moment, table = table_to_damage(
        layout.version, LinkChoice.COPY, has_metadata_table=layout.has_metadata_table
    )
    bench.load(moment)
    rows = shown(bench.process())
    damage(table)
    start = Moment(table.files, moment.time_ms)
    return Scene(Bench("repaired", EARLY), start, run, rows, rows, run, mend=run)


def _repair_metadata_table(layout: Layout) -> Scene:
    def damage(table: Damaged) -> None:
        path = max(path for path in table.files if path.startswith(".hoodie/metadata/files/") and ".log." in path)
        table.put(path, table.data(path)[:-20])

    return _repair(damage, replace(layout, has_metadata_table=True))


def _serve(layout: Layout) -> Scene:
    """A round that undoes a write, merges a log file, cleans and archives."""

    def run(application: Application) -> None:
        request = CompactionRequest(EPOCH_MS + 22, None, LinkChoice.COPY)
        for trouble in TableService(application, request).round(NoProgress()).troubles:
            raise trouble.error

    return replace(_of(served.undo_failed, layout), run=run, again=run)


SCENES: dict[str, Callable[[Layout], Scene]] = {
    "compact": partial(_compact, CutMode.FILE),
    "compact exactly": partial(_compact, CutMode.EXACT),
    "run a plan of Hudi": _run_plan_of_hudi,
    "serve": _serve,
    "ingest": _ingest,
    "overwrite": _overwrite,
    "update": _update,
    "merge": _merge,
    "alter": _alter,
    "clean": partial(_plain, clean),
    "archive": partial(_plain, archive),
    "roll back a failed write": _rollback_of_failed,
    "roll back a completed write": _rollback_of_completed,
    "roll back a compaction": _rollback_of_compaction,
    "save": _save,
    "tag": partial(_save, tag=TAG),
    "restore": _restore,
    "rebuild the metadata table": _rebuild,
    "drop the metadata table": _drop,
    "repair an orphan": partial(_repair, damages.orphaned_base_file),
    "repair a lost base file": partial(_repair, damages.missing_base),
    "repair a commit": partial(_repair, damages.unreadable_commit),
    "repair a mark": partial(_repair, damages.partition_without_its_mark),
    "repair the metadata table": _repair_metadata_table,
}
PLANNING = ("compact", "compact exactly", "run a plan of Hudi", "serve")
"""The verbs that leave a plan."""


def kinds_of(verb: str) -> tuple[Kind, ...]:
    """Where there is no plan, others who run one do the same as those who undo. A damaged table they can only repair."""
    if verb in PLANNING:
        return tuple(Kind)
    return (Kind.FINISH,) if verb.startswith("repair") else (Kind.UNDO, Kind.FINISH)

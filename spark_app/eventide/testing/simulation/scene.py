"""What all actors of a world share beside the store, and the checks of the table as it is."""

from dataclasses import dataclass, field

from eventide.bootstrap import Application, assemble
from eventide.engine_local import LocalEngine
from eventide.table.table import Table
from eventide.testing.inspection.observation import LOCK_PREFIX, Observer
from eventide.testing.oracle import Rows
from eventide.testing.simulation.ledger import BrokenPromiseError, Ledger, Saved
from eventide.testing.simulation.lot import Lot
from eventide.testing.simulation.process import Process, Store
from eventide.testing.simulation.sink import Sink
from eventide_core.access.requests import Requests
from eventide_core.action.verification.result import Verification
from eventide_core.errors import BusyError, CleanedHistoryError, EventideError
from eventide_core.ports import NoProgress


@dataclass(slots=True, eq=False)
class _Onlooker:
    """ports.Clock of queries between two events: the right time, and no waiting."""

    store: Store

    def now_ms(self) -> int:
        return self.store.scheduler.now_ms

    def sleep(self, milliseconds: int) -> None:
        raise AssertionError(f"a query waits {milliseconds} ms")

    def local_offset_ms(self, _epoch_ms: int, /) -> int:
        return 0


@dataclass(slots=True, eq=False)
class Scene:
    """`saved` are the savepoints that were acknowledged, `restoring` the one to which a restore may be under way.

    `past` are the rows of time travel queries, as they were when the world was last at rest.
    """

    lot: Lot
    store: Store
    ledger: Ledger = field(default_factory=Ledger)
    sink: Sink = field(default_factory=Sink)
    saved: dict[str, Saved] = field(default_factory=dict[str, Saved])
    tags: dict[str, str] = field(default_factory=dict[str, str])
    restoring: Saved | None = None
    past: dict[str, Rows] = field(default_factory=dict[str, Rows])
    observer: Observer = field(default_factory=Observer)
    turns_left: int = 0

    @property
    def is_storm(self) -> bool:
        return self.turns_left > 0

    def count_turn(self, *, has_done: bool) -> None:
        """The storm ends after so many turns that succeeded, or that failed four times as often."""
        self.turns_left -= 4 if has_done else 1
        if not self.is_storm:
            self.store.is_calm = True

    def onlooker(self) -> Application:
        store, engine = self.store, LocalEngine(1)
        application = assemble(
            store.storage.root,
            store.options,
            engine=engine,
            storage=store.storage,
            clock=_Onlooker(store),
            new_uuid=store.new_uuid,
        )
        application.files.requests = Requests(engine)
        return application

    def look(self, since: int | None = None) -> None:
        """Checks the rows and the watermark now. `since`: some writes may be under way that began after it."""
        application = self.onlooker()
        try:
            queries, read = application.queries, self.store.storage.read
            rows = self.observer.rows(application, read, queries.snapshot())
            optimized = self.observer.rows(application, read, queries.read_optimized())
            watermark_ms = application.freshness.now(application.state()).watermark_ms
        except BusyError:
            if since is None:
                raise
            return
        self.ledger.check(rows, since)
        if watermark_ms is not None:
            self.ledger.check_watermark(rows, optimized, watermark_ms)

    def check_withdrawn(self, process: Process) -> None:
        """Of a process that lost the lock and lives, no file is left that doesn't count, but if its requests failed."""
        self.store.arrived |= process.made | process.made_late
        files = self.onlooker().files
        if process.has_failed_request or self.store.storage.stat(LOCK_PREFIX) is not None:
            return  # whoever has the lock may be undoing the action
        config, timeline = files.config_and_timeline()
        late = process.made_late.intersection(map(files.on_timeline(config).path, timeline.strays))
        if late:
            raise BrokenPromiseError("late file", f"{process.actor.name} has lost the lock, and left {sorted(late)}")

    def check_at_rest(self) -> None:
        try:
            self.look()
            self._check_metadata_table()
            self._check_past()
            self._verify()
        except EventideError as error:
            raise BrokenPromiseError(f"at rest {type(error).__name__}", str(error)) from error

    def forget_after(self, saved: Saved) -> None:
        """A restore to that savepoint may have undone what came later."""
        self.past = {instant: rows for instant, rows in self.past.items() if instant <= saved.instant}
        self.saved = {instant: other for instant, other in self.saved.items() if instant <= saved.instant}
        self.sink = self.sink.next()

    def unpin(self, instant: str) -> None:
        """A savepoint is deleted, and so is its tag."""
        self.saved.pop(instant, None)
        self.tags = {name: tagged for name, tagged in self.tags.items() if tagged != instant}

    def _check_metadata_table(self) -> None:
        """It is still in use, unless a writer that was paused may have left it behind, or a rebuild was killed."""
        may_be_gone = self.store.is_disturbed or "rebuilder" in self.lot.actors
        if may_be_gone or not self.lot.layout.has_metadata_table:
            return
        if not self.onlooker().files.config().metadata_partitions:
            raise BrokenPromiseError("metadata table", "it was dropped, although every action has followed it")

    def _check_past(self) -> None:
        application, read = self.onlooker(), self.store.storage.read
        kept = {*self.tags.values(), *self.saved}
        for instant, rows in self.past.items():
            try:
                seen = self.observer.rows(application, read, application.queries.as_of(instant))
            except CleanedHistoryError:
                if instant in kept:
                    raise
                continue
            if seen != rows:
                gone, new = sorted(rows - seen), sorted(seen - rows)
                raise BrokenPromiseError("past query", f"as of {instant}: missing {gone}, too many {new}")
        writes = application.state().timeline.writes
        for instant in {writes[-1].requested_time, *kept} if writes else kept:
            if instant not in self.past:
                self.past[instant] = self.observer.rows(application, read, application.queries.as_of(instant))

    def _verify(self) -> None:
        found = self._verification()
        orphans = {f.path for check in found.failed if check.name == "orphan-files" for f in check.findings}
        late = orphans & self.store.arrived
        if late and self.lot.layout.version == 6:
            # The name of a log file of version 6 doesn't say whose it is: verify names a late one, and a person removes it.
            for path in late:
                self.store.storage.delete(path)
            found = self._verification()
        if not found.ok:
            names = ", ".join(check.name for check in found.failed)
            text = "; ".join(str(finding) for check in found.failed for finding in check.findings)
            raise BrokenPromiseError(f"verify {names}", text)

    def _verification(self) -> Verification:
        return self.onlooker().verifier.verify(is_deep=True, progress=NoProgress())

    def table(self, application: Application) -> Table:
        return Table(application.storage.root, self.store.options, application)

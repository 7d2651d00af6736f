"""The service of a fleet: one table after the other, or several at a time, as the scheduler chooses them.

1. The scheduler chooses a table for each free worker (`core/eventide_core/action/fleet/scheduler.py`).
2. A worker opens the table, measures it, and runs one round of the table service on it, on threads of this process. If its
   log files are large and Spark is used, the round runs on Spark. All tables share one session.
3. The scheduler gets the costs of the round, and the lag after it. If the compaction failed, or the table can't be opened,
   the table backs off. No error of a table ends the service.
4. Once the service shuts down, no table is chosen, and the running rounds end after their current step.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from eventide.bootstrap import SystemClock
from eventide.fleet.memory import Remembered, read_memory, write_memory
from eventide.fleet.settings import FleetSettings, FleetTable
from eventide.formatting import sanitize
from eventide.table.table import Table
from eventide.table.table_service import Round
from eventide_core.access.threads import Future, Threads
from eventide_core.action.compaction.backlog import Backlog, backlog
from eventide_core.action.fleet.scheduler import FleetScheduler, Forecast, Measured
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import ConfigError, EventideError
from eventide_core.ports import Clock, Engine, NoProgress

_POLL_SECONDS: Final = 0.5
"""The poll interval for shutdown of an idle service."""
_DECISIVE: Final = ("resume", "compact", "freshness")
"""The steps without which a table doesn't reach its target."""
_FAILED: Final = 5


@dataclass(frozen=True, slots=True)
class FleetRound:
    """One round of one table, which began at `at_ms` and took `took_ms`.

    `done` is None if the table couldn't be opened. `error` states why the round failed, in one line for all steps; None if
    it didn't. `exit_code` is the code of the first step that failed, as the command line has it. `lag_ms` is the lag
    after it; None without a watermark. `retry_at_ms` is set if the table backs off.
    """

    table: FleetTable
    at_ms: int
    took_ms: int
    done: Round | None
    lag_ms: int | None
    error: str | None
    exit_code: int
    retry_at_ms: int | None = None

    @property
    def is_met(self) -> bool | None:
        """Whether the lag is within the target; None without a lag."""
        return None if self.lag_ms is None else self.lag_ms <= self.table.target.lag_ms

    def to_json(self) -> dict[str, Any]:
        """The round as plain values."""
        about = {"state": "failed", "troubles": []} if self.done is None else self.done.to_json()
        return {
            "table": self.table.name,
            "uri": self.table.uri,
            "at_ms": self.at_ms,
            "took_ms": self.took_ms,
            "lag_ms": self.lag_ms,
            "target_lag_ms": self.table.target.lag_ms,
            "met": self.is_met,
            "error": self.error,
            "retry_at_ms": self.retry_at_ms,
            **about,
        }


@dataclass(slots=True)
class FleetService:
    """Serves the tables of a fleet. `large_engine` returns the engine for large tables; None runs all of them on threads."""

    settings: FleetSettings
    large_engine: Callable[[], Engine | None] = lambda: None
    clock: Clock = field(default_factory=SystemClock)
    scheduler: FleetScheduler = field(init=False)
    _tables: Mapping[str, FleetTable] = field(init=False)
    _remembered: dict[str, Remembered] = field(init=False)

    def __post_init__(self) -> None:
        self.scheduler = FleetScheduler(self.settings.workers)
        self._tables = {table.name: table for table in self.settings.tables}
        remembered = read_memory(self.settings.state)
        self._remembered = {name: remembered.get(name, Remembered()) for name in self._tables}
        for name, table in self._tables.items():
            self.scheduler.add(table.target, self.clock.now_ms(), self._remembered[name].learned)

    def forecast(self) -> Forecast:
        """Which tables can't meet their targets, as far as their costs are known."""
        return self.scheduler.forecast()

    def run(
        self, ending: threading.Event, *, rounds: int | None = None, beat: Callable[[], None] = lambda: None
    ) -> Iterator[FleetRound]:
        """Each round as it completes, until `ending` is set, or after that many rounds of all tables together.

        Calls `beat` at least once each time that it has looked whether a round has ended.
        """
        started, running, reports = 0, dict[int, Future[_Ended]](), SimpleQueue[int]()
        # Not the threads' own block: that waits for the rounds even if this one is interrupted for the second time.
        threads = Threads(self.settings.workers)

        def is_choosing() -> bool:
            return not ending.is_set() and len(running) < self.settings.workers and started != rounds

        try:
            while running or not (ending.is_set() or started == rounds):
                beat()
                while is_choosing():
                    name = self.scheduler.start(self.clock.now_ms())
                    if name is None:
                        break
                    started += 1
                    table, report = self._tables[name], partial(reports.put, started)
                    try:
                        running[started] = threads.submit(self._reported, table, ending.is_set, report)
                    except RuntimeError:  # no thread can start, as where memory is short
                        yield self._taken(self._round(table, ending.is_set))
                if not running:
                    ending.wait(self._patience())
                    continue
                for number in _ended(running, reports, self._patience() if is_choosing() else _POLL_SECONDS):
                    yield self._taken(running.pop(number).result())
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    def _patience(self) -> float:
        """Seconds until a table can be chosen, at most the interval at which the service checks for its shutdown."""
        wakes = self.scheduler.wakes_at(self.clock.now_ms())
        left = _POLL_SECONDS if wakes is None else (wakes - self.clock.now_ms()) / 1000
        return min(_POLL_SECONDS, max(0.001, left))

    def _taken(self, ended: "_Ended") -> FleetRound:
        """Hands a round's result to the scheduler, and remembers it."""
        fleet_round, name = ended.round, ended.round.table.name
        if ended.before is not None:
            self.scheduler.measured(name, ended.before)
        if ended.after is not None:
            self.scheduler.succeeded(name, fleet_round.took_ms, ended.after)
        else:
            ended_ms = fleet_round.at_ms + fleet_round.took_ms
            retry_at_ms = self.scheduler.failed(name, fleet_round.took_ms, ended_ms)
            fleet_round = replace(fleet_round, retry_at_ms=retry_at_ms)
        old = self._remembered[name]
        error, at_ms = (
            (old.last_error, old.last_error_ms) if fleet_round.error is None else (fleet_round.error, fleet_round.at_ms)
        )
        self._remembered[name] = Remembered(self.scheduler.learned(name), error, at_ms)
        if self.settings.state is not None:
            with suppress(ConfigError):  # it only saves measuring again
                write_memory(self.settings.state, self._remembered)
        return fleet_round

    def _reported(self, table: FleetTable, is_leaving: Callable[[], bool], report: Callable[[], None]) -> "_Ended":
        ended = self._round(table, is_leaving)
        with suppress(MemoryError):
            report()
        return ended

    def _round(self, table: FleetTable, is_leaving: Callable[[], bool]) -> "_Ended":
        """Runs on a thread. Catches every error: one table's must not end the others' rounds."""
        begun_ms = self.clock.now_ms()
        try:
            return self._served(table, begun_ms, is_leaving)
        except Exception as error:  # also one of a library: the other tables go on
            exit_code = error.exit_code if isinstance(error, EventideError) else _FAILED
            took_ms = self.clock.now_ms() - begun_ms
            return _Ended(FleetRound(table, begun_ms, took_ms, None, None, sanitize(error), exit_code))

    def _served(self, table: FleetTable, begun_ms: int, is_leaving: Callable[[], bool]) -> "_Ended":
        opened = Table.open(table.uri, table.options)
        lag_ms, logs = lag_of(opened.freshness(), begun_ms), _logs(opened)
        before = Measured(begun_ms, lag_ms, logs.log_files, logs.bytes)
        if logs.bytes >= self.settings.spark_from_bytes and (engine := self.large_engine()) is not None:
            opened = Table.open(table.uri, table.options, engine=engine)
        done = opened.service().round(NoProgress(), is_leaving=is_leaving)
        now_ms, logs = self.clock.now_ms(), _logs(opened)
        lag_ms = None if done.freshness is None else lag_of(done.freshness, now_ms)
        error = "; ".join(done.failures) or None
        fleet_round = FleetRound(table, begun_ms, now_ms - begun_ms, done, lag_ms, error, done.exit_code)
        if done.freshness is None or any(one.step in _DECISIVE for one in done.troubles):
            return _Ended(fleet_round, before)
        return _Ended(fleet_round, before, Measured(now_ms, lag_ms, logs.log_files, logs.bytes))


@dataclass(frozen=True, slots=True)
class _Ended:
    """A round, with the table before and after it. `after` is None if it failed or was interrupted."""

    round: FleetRound
    before: Measured | None = None
    after: Measured | None = None


def _ended(running: Mapping[int, Future[_Ended]], reports: SimpleQueue[int], patience: float) -> list[int]:
    """The rounds that have ended. Waits for one that long."""
    with suppress(Empty):
        number = reports.get(timeout=patience)
        return [number] if number in running else []
    if patience == _POLL_SECONDS:
        for work in running.values():  # a thread that died before its round, for lack of memory, has left it
            work.run()
    return [number for number, work in running.items() if work.done()]  # also one that had no memory for its report


def lag_of(fresh: Freshness, now_ms: int) -> int | None:
    """The clock minus the watermark; None without a watermark, and 0 for a copy-on-write table."""
    if fresh.is_complete:
        return 0
    return None if fresh.watermark_ms is None else max(0, now_ms - fresh.watermark_ms)


def _logs(table: Table) -> Backlog:
    return backlog(table.state().view.latest_slices(), {})

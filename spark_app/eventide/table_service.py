"""The table service: round after round, each ending what was begun and doing what is due.

A round, whose every step looks at the table anew:

1. rollback   writes whose writers died are rolled back, rollbacks that were begun are ended
2. resume     a pending compaction that eventide planned is run; one that fits the table no more is rolled back; one
              that another engine planned and has not begun is run
3. compact    where the trigger says that it is due, a compaction is planned and run
4. clean      a clean that was begun is ended, whoever began it; what no slice needs is removed
5. archive    old instants leave the active timeline
6. freshness  how fresh the read-optimized table is now; metrics, where they are on
7. sync       the catalog is told, where that is on

A step that is busy, refused or fails is told, and tried again in the next round; the others go on without it. Nothing is
remembered from one round to the next: what a process leaves that dies in one, the next finds on the table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eventide.bootstrap import Application
from eventide.metrics import publish_metrics
from eventide_core.action.compaction_request import CompactionRequest
from eventide_core.action.freshness import NO_CUT, Freshness
from eventide_core.action.sync_options import is_sync_enabled
from eventide_core.errors import ConfigError, EventideError, NotAHudiTableError
from eventide_core.ports import NoProgress, Progress
from eventide_core.service.maintenance.sync import SyncResult

_STATES = {3: "refused", 4: "busy"}  # by exit code; anything else has failed


@dataclass(frozen=True, slots=True)
class Trouble:
    """A step of a round that came to nothing, and why."""

    step: str
    error: EventideError

    @property
    def state(self) -> str:
        """busy, refused or failed."""
        return _STATES.get(self.error.exit_code, "failed")

    def __str__(self) -> str:
        return f"{self.step} {self.state}: {self.error}"


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one round. Instants as requested times; paths relative to the table's root.

    `resumed` are compactions that had been begun before, `compacted` is this round's own, `rolled_back` has writes and
    plans. `idle` says why no compaction was due. `freshness` is None where it could not be told, or the round was left;
    `synced` also where no catalog is to be told.
    """

    rolled_back: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    compacted: str | None = None
    idle: str | None = None
    deleted: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    freshness: Freshness | None = None
    synced: SyncResult | None = None
    troubles: tuple[Trouble, ...] = ()

    @property
    def state(self) -> str:
        """The first trouble's, else `compacted` or `idle`."""
        if self.troubles:
            return self.troubles[0].state
        return "compacted" if self.compacted or self.resumed else "idle"

    @property
    def exit_code(self) -> int:
        """0, or the first trouble's."""
        return self.troubles[0].error.exit_code if self.troubles else 0

    def to_json(self) -> dict[str, Any]:
        """The round as plain values."""
        fresh = self.freshness
        return {
            "state": self.state,
            "instant": self.compacted,
            "idle": self.idle,
            "resumed": list(self.resumed),
            "rolled_back": list(self.rolled_back),
            "deleted": len(self.deleted),
            "archived": list(self.archived),
            "watermark_ms": None if fresh is None else fresh.watermark_ms,
            "cut_ms": None if fresh is None else fresh.cut_ms,
            "late_records": None if fresh is None else fresh.late_records,
            "unknown_event_time_records": None if fresh is None else fresh.unknown_event_time_records,
            "synced": None if self.synced is None else [t.name for t in self.synced.tables if t.is_changed],
            "troubles": [
                {"step": t.step, "state": t.state, "type": type(t.error).__name__, "message": str(t.error)}
                for t in self.troubles
            ],
        }


_Step = Callable[[Round, Progress], Round]


@dataclass(frozen=True, slots=True)
class TableService:
    """`request` is what each round asks of a compaction; T by latency moves on with the clock."""

    application: Application
    request: CompactionRequest

    def round(self, progress: Progress, *, is_leaving: Callable[[], bool] = lambda: False) -> Round:
        """One round; left before the next step as soon as `is_leaving`.

        Raises ConfigError and NotAHudiTableError, which no later round would mend.
        """
        steps = {
            "rollback": self._roll_back,
            "resume": self._resume,
            "compact": self._compact,
            "clean": self._clean,
            "archive": self._archive,
            "freshness": self._freshness,
            "sync": self._sync,
        }
        return _run(steps, progress, is_leaving)

    def compact(self, progress: Progress) -> Round:
        """The second and third step alone; the catalog is told of what they did."""
        steps = {"resume": self._resume, "compact": self._compact, "sync": self._sync_what_was_compacted}
        return _run(steps, progress)

    def resume(self, progress: Progress) -> Round:
        """The second step alone; the catalog is told of what it did."""
        return _run({"resume": self._resume, "sync": self._sync_what_was_compacted}, progress)

    def schedule(self) -> Round:
        """Plans a compaction where one is due, for whoever resumes it."""
        return _run({"schedule": self._schedule}, NoProgress())

    def _roll_back(self, done: Round, _: Progress) -> Round:
        return replace(done, rolled_back=self.application.rollback.undo_failed_writes())

    def _resume(self, done: Round, progress: Progress) -> Round:
        ended = self.application.pending.end_compactions(progress)
        return replace(done, resumed=ended.resumed, rolled_back=(*done.rolled_back, *ended.rolled_back))

    def _compact(self, done: Round, progress: Progress) -> Round:
        draft = self.application.scheduler.schedule(self.request)
        if draft.idle is not None:
            return replace(done, idle=draft.idle)
        # A plan that does not fit any more so soon is the next round's.
        result = self.application.runner.execute(draft.plan.instant, progress)
        return replace(done, compacted=result.instant)

    def _schedule(self, done: Round, _: Progress) -> Round:
        return replace(done, idle=self.application.scheduler.schedule(self.request, is_for_later=True).idle)

    def _clean(self, done: Round, _: Progress) -> Round:
        return replace(done, deleted=self.application.cleaner.clean().deleted)

    def _archive(self, done: Round, _: Progress) -> Round:
        return replace(done, archived=self.application.archiver.archive())

    def _freshness(self, done: Round, _: Progress) -> Round:
        state = self.application.state()
        publish_metrics(self.application)
        return replace(done, freshness=NO_CUT if state.cut_ms is None else self.application.freshness.now(state))

    def _sync(self, done: Round, _: Progress) -> Round:
        if not is_sync_enabled(self.application.options):
            return done
        return replace(done, synced=self.application.sync.sync())

    def _sync_what_was_compacted(self, done: Round, progress: Progress) -> Round:
        return self._sync(done, progress) if done.compacted or done.resumed else done


def _run(steps: Mapping[str, _Step], progress: Progress, is_leaving: Callable[[], bool] = lambda: False) -> Round:
    done = Round()
    for name, step in steps.items():
        if is_leaving():
            break
        try:
            done = step(done, progress)
        except (ConfigError, NotAHudiTableError):
            raise
        except EventideError as error:
            done = replace(done, troubles=(*done.troubles, Trouble(name, error)))
    return done

"""The table service: rounds, each of which completes what is pending and does what is due.

A round has these steps. Each step reads the table's state again:

1. rollback   rolls back writes of dead writers, and completes interrupted rollbacks
2. resume     runs a pending compaction that eventide planned, or that another engine planned and has not started;
              rolls back a compaction of eventide that no longer fits the table
3. compact    plans and runs a compaction if the trigger says that it is due
4. tag        tags the view if the watermark has passed a day or an hour, and deletes old tags, if the options ask for it
5. mark       marks windows as done, and withdraws markers that late data has overtaken, if the options ask for it
6. clean      completes an interrupted clean of any engine, and removes what no slice needs
7. archive    moves old instants off the active timeline
8. freshness  measures the freshness of the read-optimized table, and sends metrics if they are on
9. sync       updates the catalog if sync is on

A step that is busy, is refused or fails is reported and retried in the next round. The other steps continue. The service
keeps no state between rounds: if a process dies, the next round finds on the table what it left.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from eventide.bootstrap import Application
from eventide.integrations.lineage import report_resumed, run_compaction
from eventide.integrations.metrics import publish_metrics
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.action.sync.options import is_sync_enabled
from eventide_core.config import MARKER_EVERY
from eventide_core.errors import ConfigError, EventideError, NotAHudiTableError
from eventide_core.ports import MarkerEvent, NoProgress, Progress
from eventide_core.service.maintenance.sync import SyncResult
from eventide_core.service.rollback.watermark_tags import NO_TAGS, TagChange

_RANDOM = re.compile(r"[0-9a-f]{16,}")
_STATES = {3: "refused", 4: "busy"}  # by exit code; anything else has failed


@dataclass(frozen=True, slots=True)
class Trouble:
    """A step of a round that did not succeed.

    `step` is its name in the module's list. `error` is why: its exit code decides whether the step was busy, refused or
    failed.
    """

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
    """The result of one round. Instants are requested times. Paths are relative to the table's root.

    `resumed` are compactions that an earlier run started, and `compacted` is the one of this round. `rolled_back` has writes
    and plans. `idle` states why no compaction was due. `tagged` has the tags that were made and deleted, `marked` the
    windows that were done or reopened. `deleted` are the paths that cleaning removed, `archived` the instants that left the
    active timeline, oldest first. `freshness` is None if it could not be measured, or if the round was interrupted; `synced`
    is also None if no catalog is configured. `troubles` are the steps that did not succeed, in their order; a later step
    runs all the same.
    """

    rolled_back: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    compacted: str | None = None
    idle: str | None = None
    tagged: TagChange = NO_TAGS
    marked: tuple[MarkerEvent, ...] = ()
    deleted: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    freshness: Freshness | None = None
    synced: SyncResult | None = None
    troubles: tuple[Trouble, ...] = ()

    @property
    def state(self) -> str:
        """The state of the first step that did not succeed, otherwise `compacted` or `idle`."""
        if self.troubles:
            return self.troubles[0].state
        return "compacted" if self.compacted or self.resumed else "idle"

    @property
    def exit_code(self) -> int:
        """The exit code of the first step that did not succeed, otherwise 0."""
        return self.troubles[0].error.exit_code if self.troubles else 0

    @property
    def failures(self) -> tuple[str, ...]:
        """The steps that did not succeed and why, each reason once: the names of temporary files make no other one."""
        same: dict[tuple[str, str], list[Trouble]] = {}
        for trouble in self.troubles:
            same.setdefault((trouble.state, _RANDOM.sub("", str(trouble.error))), []).append(trouble)
        return tuple(
            f"{', '.join(one.step for one in alike)} {state}: {alike[0].error}" for (state, _), alike in same.items()
        )

    def to_json(self) -> dict[str, Any]:
        """The round as plain values."""
        fresh = self.freshness
        return {
            "state": self.state,
            "instant": self.compacted,
            "idle": self.idle,
            "resumed": list(self.resumed),
            "rolled_back": list(self.rolled_back),
            "tagged": self.tagged.made,
            "deleted_tags": list(self.tagged.deleted),
            "marked": events_json(self.marked),
            "deleted": len(self.deleted),
            "archived": list(self.archived),
            "watermark_ms": None if fresh is None else fresh.watermark_ms,
            "cut_ms": None if fresh is None else fresh.cut_ms,
            "late_records": None if fresh is None else fresh.late_records,
            "unknown_event_time_records": None if fresh is None else fresh.unknown_event_time_records,
            "unreadable_event_time_records": None if fresh is None else fresh.unreadable_event_time_records,
            "synced": None if self.synced is None else [t.name for t in self.synced.tables if t.is_changed],
            "troubles": [
                {"step": t.step, "state": t.state, "type": type(t.error).__name__, "message": str(t.error)}
                for t in self.troubles
            ],
        }


def events_json(marked: Iterable[MarkerEvent]) -> list[dict[str, Any]]:
    """The windows that were done or reopened as plain values."""
    return [{"event": one.kind, "begin_ms": one.begin_ms, "end_ms": one.end_ms} for one in marked]


_Step = Callable[[Round, Progress], Round]


@dataclass(frozen=True, slots=True)
class TableService:
    """Runs rounds on one table. `request` sets the compaction of each round; with a data latency, T follows the clock."""

    application: Application
    request: CompactionRequest

    def round(self, progress: Progress, *, is_leaving: Callable[[], bool] = lambda: False) -> Round:
        """Runs one round. Once `is_leaving` returns true, ends before the next step.

        Raises ConfigError and NotAHudiTableError, because later rounds would fail alike.
        """
        application = self.application
        steps: dict[str, _Step] = {
            "rollback": lambda done, _: replace(done, rolled_back=application.rollback.undo_failed_writes()),
            "resume": self._resume,
            "compact": self._compact,
            "tag": lambda done, _: replace(done, tagged=application.watermark_tags.tag()),
            "mark": partial(self._mark, is_leaving),
            "clean": lambda done, _: replace(done, deleted=application.cleaner.clean().deleted),
            "archive": lambda done, _: replace(done, archived=application.archiver.archive()),
            "freshness": self._freshness,
            "sync": self._sync,
        }
        return self._run(steps, progress, is_leaving)

    def compact(self, progress: Progress) -> Round:
        """Runs the second and third step only, and syncs the catalog if they compacted."""
        steps = {"resume": self._resume, "compact": self._compact, "sync": self._sync_what_was_compacted}
        return self._run(steps, progress)

    def resume(self, progress: Progress) -> Round:
        """Runs the second step only, and syncs the catalog if it compacted."""
        return self._run({"resume": self._resume, "sync": self._sync_what_was_compacted}, progress)

    def schedule(self) -> Round:
        """Schedules a compaction if one is due. Another thread or process resumes it."""
        return self._run({"schedule": self._schedule}, NoProgress())

    def _resume(self, done: Round, progress: Progress) -> Round:
        ended = report_resumed(self.application, self.application.pending.end_compactions(progress))
        return replace(done, resumed=ended.resumed, rolled_back=(*done.rolled_back, *ended.rolled_back))

    def _compact(self, done: Round, progress: Progress) -> Round:
        draft = self.application.scheduler.schedule(self.request)
        if draft.idle is not None:
            return replace(done, idle=draft.idle)
        # If the plan no longer fits the table by now, the next round handles it.
        result = run_compaction(self.application, draft.plan.instant, progress, put=draft.put)
        return replace(done, compacted=result.instant)

    def _schedule(self, done: Round, _: Progress) -> Round:
        return replace(done, idle=self.application.scheduler.schedule(self.request, is_for_later=True).idle)

    def _mark(self, is_leaving: Callable[[], bool], done: Round, progress: Progress) -> Round:
        options = self.application.options
        if MARKER_EVERY not in options.values:
            return done
        from eventide.table.done_markers import mark_done

        def goes_on() -> bool:
            progress.advance()  # a receiver may be slow, and the service lives
            return not is_leaving()

        return replace(done, marked=mark_done(self.application, options, goes_on))

    def _freshness(self, done: Round, _: Progress) -> Round:
        state = self.application.state()
        publish_metrics(self.application)
        return replace(
            done, freshness=self.application.arrival.freshness(state, self.application.freshness.published(state))
        )

    def _sync(self, done: Round, _: Progress) -> Round:
        if not is_sync_enabled(self.application.options):
            return done
        return replace(done, synced=self.application.sync.sync())

    def _sync_what_was_compacted(self, done: Round, progress: Progress) -> Round:
        return self._sync(done, progress) if done.compacted or done.resumed else done

    def _run(
        self, steps: Mapping[str, _Step], progress: Progress, is_leaving: Callable[[], bool] = lambda: False
    ) -> Round:
        done, tracer = Round(), self.application.tracer
        with self.application.traced("round"):
            for name, step in steps.items():
                if is_leaving():
                    break
                try:
                    with tracer.span(f"step: {name}"):
                        done = step(done, progress)
                except (ConfigError, NotAHudiTableError):
                    raise
                except EventideError as error:
                    done = replace(done, troubles=(*done.troubles, Trouble(name, error)))
        return done

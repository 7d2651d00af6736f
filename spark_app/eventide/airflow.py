"""Operators that compact and that work through closed windows, and a sensor that waits for the watermark, for Airflow 3.

Airflow installs with constraints of its own, so this extra has an environment of its own: `eventide[airflow]`. A task that
may succeed later fails with eventide's error, and Airflow retries it. A task that needs a person fails for good.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final

# pyright: reportMissingImports=false
from airflow.sdk import BaseOperator, BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from eventide.rows.given import CutName
from eventide.table.table import Table
from eventide.table.window import Window, runner_of
from eventide_core.errors import EventideError, NothingToDoError
from eventide_core.table.records.event_time import Moment

_PASSING: Final = (4, 5)
"""Exit codes of failures that another try may overcome: a busy table, and a storage or an engine that failed."""


class EventideCompactOperator(BaseOperator):
    """Compacts everything before T on threads of the worker. Returns the instant and the freshness, for XCom.

    `before` is T, or `data_latency_seconds` sets T to the time of the run minus that. `options` are the keys of Hudi, of
    eventide and of the storage.
    """

    template_fields = ("table", "before")

    def __init__(
        self,
        *,
        table: str,
        before: str | None = None,
        data_latency_seconds: int | None = None,
        cut: CutName | None = None,
        options: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.table = table
        self.before = before
        self.data_latency_seconds = data_latency_seconds
        self.cut: CutName | None = cut
        self.options = dict(options or {})

    def execute(self, context: Any) -> dict[str, Any]:
        """Raises AirflowFailException if only a person can help."""
        del context
        with _failing_for_good():
            opened = Table.open(self.table, self.options)
            try:
                done = opened.compact(before=self.before, data_latency_seconds=self.data_latency_seconds, cut=self.cut)
            except NothingToDoError as nothing:
                self.log.info("%s", nothing)
                return {"instant": None, **_about(opened)}
            return {"instant": done.instant, "already_reached": done.is_already_reached, **_about(opened)}


class EventideWindowsOperator(BaseOperator):
    """Calls `process` with each closed window that is due, in order, and then marks it as done.

    Each outlet of the task gets one event, whose `extra` has the windows that this attempt has done, and `done_until_ms`:
    every window before it has been done by this or an earlier attempt. If no window is due, the task is skipped, so that
    no event shows otherwise.

    A retry gets the window of the attempt that failed at once, with the same rows. Another run waits for its lease. The
    arguments are as in `Table.windows`.
    """

    template_fields = ("table", "consumer", "since")

    def __init__(
        self,
        *,
        table: str,
        every: str,
        consumer: str,
        process: Callable[[Window], Any],
        time_zone: str = "UTC",
        since: str | None = None,
        late: str = "redeliver",
        corrections_for: str | None = None,
        lease: str = "15m",
        keep: str = "7d",
        options: Mapping[str, Any] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.table = table
        self.every = every
        self.consumer = consumer
        self.process = process
        self.time_zone = time_zone
        self.since = since
        self.late = late
        self.corrections_for = corrections_for
        self.lease = lease
        self.keep = keep
        self.options = dict(options or {})

    def execute(self, context: Any) -> dict[str, Any]:
        """Raises AirflowSkipException if no window is due, AirflowFailException if only a person can help."""
        with _failing_for_good():
            windows = Table.open(self.table, self.options).windows(
                self.every,
                self.consumer,
                time_zone=self.time_zone,
                since=self.since or None,
                late=self.late,
                corrections_for=self.corrections_for,
                lease=self.lease,
                keep=self.keep,
            )
            task = context["ti"]
            runner = runner_of(f"airflow {task.dag_id} {task.task_id} {task.map_index} {task.run_id}")
            done: list[dict[str, Any]] = []
            while (window := windows.take(runner)) is not None:
                self.log.info("%s", window)
                self.process(window)
                window.done()
                done.append(_window_facts(window))
            if not done:
                raise AirflowSkipException(f"no window of the consumer {self.consumer} is due")
            extra = {"windows": done, "done_until_ms": windows.progress().next_ms}
        for outlet in self.outlets:
            context["outlet_events"][outlet].extra = extra
        return extra


class FreshnessSensor(BaseSensorOperator):
    """Waits until everything before T is in the read-optimized table. With `deferrable`, it needs no worker meanwhile.

    It waits while a record in a log file has an event time that cannot be read, and with `no_nulls` while one has none.

    A deferred sensor stores `options` in Airflow's database: pass no secrets, but let the storage find its credentials in
    the environment of the triggerer.
    """

    template_fields = ("table", "require")

    def __init__(
        self,
        *,
        table: str,
        require: str,
        options: Mapping[str, Any] | None = None,
        deferrable: bool = True,
        no_nulls: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.table = table
        self.require = require
        self.no_nulls = no_nulls
        self.options = dict(options or {})
        self.deferrable = deferrable

    def poke(self, context: Any) -> bool:
        del context
        with _failing_for_good():
            return _has_reached(self.table, self.require, self.options, self.no_nulls)

    def execute(self, context: Any) -> Any:
        """Looks once, and leaves further looks to the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        if not self.poke(context):
            self.defer(
                trigger=WatermarkTrigger(
                    self.table, self.require, self.options, float(self.poke_interval), self.no_nulls
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return None

    def execute_complete(self, context: Any, event: dict[str, Any]) -> None:
        """Continues after the trigger. Raises AirflowFailException if the trigger found that only a person can help."""
        del context
        if event["error"] is not None:
            raise AirflowFailException(event["error"])


class WatermarkTrigger(BaseTrigger):
    """Looks at the table every `poke_interval` seconds until T is reached, or until only a person can help."""

    def __init__(
        self, table: str, require: str, options: Mapping[str, Any], poke_interval: float, no_nulls: bool = False
    ) -> None:
        super().__init__()
        self.table = table
        self.require = require
        self.options = dict(options)
        self.poke_interval = poke_interval
        self.no_nulls = no_nulls

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("table", "require", "options", "poke_interval", "no_nulls")
        values = {name: getattr(self, name) for name in names}
        return (f"{__name__}.{type(self).__name__}", values)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                if await asyncio.to_thread(_has_reached, self.table, self.require, self.options, self.no_nulls):
                    yield TriggerEvent({"error": None})
                    return
            except EventideError as error:
                if error.exit_code not in _PASSING:
                    yield TriggerEvent({"error": str(error)})
                    return
                self.log.warning("%s", error)
            await asyncio.sleep(self.poke_interval)


@contextmanager
def _failing_for_good() -> Iterator[None]:
    """Ends retries where they don't help."""
    try:
        yield
    except EventideError as error:
        if error.exit_code in _PASSING:
            raise
        raise AirflowFailException(str(error)) from error


def _has_reached(table: str, require: Moment, options: Mapping[str, Any], no_nulls: bool) -> bool:
    return Table.open(table, options).freshness().has_reached(require, nulls_count=no_nulls)


def _window_facts(window: Window) -> dict[str, Any]:
    return {
        "begin": window.begin.isoformat(),
        "end": window.end.isoformat(),
        "is_correction": window.is_correction,
        "token": window.token,
        "instant": window.instant,
    }


def _about(table: Table) -> dict[str, Any]:
    fresh = table.freshness()
    return {
        "watermark_ms": fresh.watermark_ms,
        "cut_ms": fresh.cut_ms,
        "late_records": fresh.late_records,
        "unreadable_event_time_records": fresh.unreadable_event_time_records,
    }

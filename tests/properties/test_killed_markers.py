"""`serve` in real processes, killed at random while it marks windows, by files and by calls of a URL.

Batches come on time and late. After each kill, the next rounds bring table, files and receiver to agreement: each window has
its events in order, none twice, and each window that a late batch changed was reopened and done again.
"""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from eventide import Table
from eventide_core.config import MARKER_EVERY, MARKER_LEASE, MARKER_SINCE, MARKER_TO
from eventide_core.errors import WindowTakenError
from eventide_core.ports import NoProgress
from eventide_core.service.common.state.window_consumers import consumers_of
from support.faults.killed import run_until_killed
from support.run.campaign import tries
from support.run.reach import reached
from support.servers.receiver import Receiver, receiving
from support.tables.small import HOUR_MS, OPTIONS, SERVE, SOON, make, rows

pytestmark = [pytest.mark.slow, pytest.mark.campaign, pytest.mark.broad]

KILLS = tries(test=2, proof=25)  # with each of the two targets
CHANGES = 320
"""Of a round, about: a kill after the last of them doesn't count."""


class Marked:
    """A table whose windows are marked at two places."""

    def __init__(self, path: Path, receiver: Receiver) -> None:
        self.path, self.receiver = path / "table", receiver
        self.table = make(self.path, 9)
        self.chance, self.keys = random.Random(52), 0
        marks = {str(MARKER_EVERY): "1h", str(MARKER_LEASE): "1s"}
        batch = rows(("k0", -9, "first"))
        self.since_ms = int(batch["ms"][0].as_py())
        self.directory = path / "done"
        marks[str(MARKER_SINCE)] = str(self.since_ms)
        self.targets = [{**marks, str(MARKER_TO): to} for to in (str(self.directory), receiver.url)]
        self.table.upsert(batch)

    def write(self) -> set[int]:
        """A batch of new rows. Returns the begins of the windows that they change."""
        drawn = [self.chance.randrange(-9, 3) for _ in range(3)]
        names = [f"k{self.keys + number}" for number in range(1, 4)]
        self.keys += 3
        batch = rows(*zip(names, drawn, names, strict=True))
        self.table.upsert(batch)
        return {int(str(ms)) // HOUR_MS * HOUR_MS for ms in batch["ms"].to_pylist()}

    def words(self, target: dict[str, str]) -> tuple[object, ...]:
        more = [word for key, value in target.items() for word in ("--option", f"{key}={value}")]
        return ("serve", self.path, "--rounds", 1, *SERVE[:-2], *OPTIONS, *more)

    def rounds(self) -> int:
        """Rounds until both targets are marked. Returns the cut of the last one."""
        cut_ms = 0
        for target in self.targets:
            options = {**SOON, **target, "hoodie.compaction.event.time.data.latency.seconds": "1800"}
            table = Table.open(self.path, options)
            while True:  # until the lease of the dead has ended
                done = table.service().round(NoProgress())
                if not any(isinstance(trouble.error, WindowTakenError) for trouble in done.troubles):
                    break
            assert done.troubles == ()
            assert done.freshness is not None
            cut_ms = done.freshness.cut_ms or 0
        return cut_ms

    def check(self, cut_ms: int, done_before: set[int], changed: set[int], before: dict[int, list[str]]) -> None:
        first_ms = self.since_ms - self.since_ms % HOUR_MS
        files = {
            int(datetime.strptime(path.parent.name, "%Y-%m-%dT%H%M%z").astimezone(UTC).timestamp() * 1000)
            for path in self.directory.rglob("_SUCCESS")
        }
        told = self.told()
        for begin_ms, events in told.items():
            assert events == [("done", "reopened")[number % 2] for number in range(len(events))], (begin_ms, events)
        assert {begin_ms for begin_ms, events in told.items() if events[-1] == "done"} == files
        assert files >= set(range(first_ms, cut_ms - HOUR_MS + 1, HOUR_MS)) - {first_ms - HOUR_MS}
        for begin_ms in done_before & changed:
            assert len(told[begin_ms]) >= len(before[begin_ms]) + 2, "a late row moved no marker"

    def is_amid_an_event(self) -> bool:
        storage = self.table._application.storage
        states = [files.progress() for files in consumers_of(storage)]
        return any(state is not None and state.open is not None for state in states)

    def told(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for event, begin_ms in self.receiver.events:
            found.setdefault(begin_ms, []).append(event)
        return found


def test_killed_services_tell_each_windows_events_once_and_in_order(tmp_path: Path) -> None:
    with receiving() as receiver:
        marked = Marked(tmp_path, receiver)
        killed, amid = [0, 0], 0
        while min(killed) < KILLS:
            before = marked.told()
            done_before = {begin_ms for begin_ms, events in before.items() if events[-1] == "done"}
            changed = marked.write()
            for number, target in enumerate(marked.targets):
                if run_until_killed(marked.chance.randint(1, CHANGES), *marked.words(target)) is None:
                    killed[number] += 1
                    amid += marked.is_amid_an_event()
            marked.check(marked.rounds(), done_before, changed, before)
        reached("kills of serve with markers", sum(killed))
        reached("of these, amid an event", amid)
        events = [event for event, _ in receiver.events]
        assert events.count("reopened") > 1

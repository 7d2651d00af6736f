"""A release and today's eventide on one table: each step is done by either of them, and each shows the same rows.

Both are processes that do each verb in a fork of their own, which dies or stops before a change of the file system where
the step says so. What the rows must be is kept in a list of writes.
"""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from support.pasts.releases import ROOT
from support.processes import one_version
from support.run.campaign import IS_REPEATED, tries
from support.run.child_processes import environment
from support.run.reach import reached
from support.tables.hourly import at

EXAMPLES = tries(test=40, proof=100)
STEPS = 15
KINDS_OF_STEPS = {
    "write": 4, "compact": 3, "schedule": 2, "execute": 2, "resume": 1, "clean": 2, "archive": 1, "rebuild": 1, "undo": 2,
    "tag": 1, "delete_tag": 1, "restore": 1, "window": 2, "stand_still": 3,
}  # fmt: skip
"""How often each is drawn."""
MIDDLE = ("write", "compact", "resume", "clean", "archive")
"""What stands still in the middle, and what the other version does meanwhile."""
SEEDS = st.integers(0, 1 << 32)
BUSY = {"BusyError", "CompletedMeanwhileError", "LockError", "MetadataTableBusyError", "WriteConflictError"}
REFUSED = {"NoExactCutError", "NothingToDoError", "RefusedError", "UnsupportedTableError"}
WHO = ("release", "today")
Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Version:
    """A process with one version of eventide, which answers one command after the other."""

    process: "subprocess.Popen[str]"

    @classmethod
    def started(cls, within: Mapping[str, str], root: Path) -> "Version":
        """`root` is where it must find eventide."""
        words = [sys.executable, one_version.__file__]
        version = cls(
            subprocess.Popen(words, cwd="/", env=within, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        assert Path(version.answer()).is_relative_to(root)
        return version

    def ask(self, **command: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@dataclass(frozen=True, slots=True)
class Written:
    instant: str
    rows: Rows


def folded(writes: tuple[Written, ...]) -> dict[str, list[Any]]:
    """The last version of each key by event time, a delete or not; of equal ones the later."""
    found: dict[str, list[Any]] = {}
    for write in writes:
        found.update((row[0], row) for row in write.rows if row[1] >= found.get(row[0], row)[1])
    return found


def shown(writes: tuple[Written, ...]) -> Rows:
    return sorted(row for row in folded(writes).values() if row[2] is not None)


def is_refusal_of_newer(who: str, answer: dict[str, Any]) -> bool:
    return who == "release" and str(answer.get("line")).endswith("use a newer eventide")


class TwoVersions(RuleBasedStateMachine):
    versions: Mapping[str, Version]
    reach: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = TemporaryDirectory()
        self.version, self.steps, self.now = 9, 0, 0
        self.writes: tuple[Written, ...] = ()
        self.begun: Rows | None = None  # of a write that died or stands still: committed or not
        self.undoing: set[str] = set()  # writes that an undo which died may take back or not
        self.known: set[str] = set()
        self.deleted: dict[str, int] = {}
        self.latest: dict[str, int] = {}
        self.tags: dict[str, tuple[Written, ...]] = {}
        self.unsure: set[str] = set()  # tags that a process which died made or deleted, or not
        self.restored = ""  # the tag
        self.window: Any = None  # which both have taken
        self.is_unsure = False  # whether a window is held
        self.seen: dict[str, Any] = {}

    @initialize(seed=SEEDS)
    def create(self, seed: int) -> None:
        chance = Random(seed)
        who = chance.choice(WHO)
        self.version = chance.choice((6, 8, 9))
        assert "ok" in self.ask(who, "create", version=self.version)
        for _ in range(chance.randint(1, 3)):
            self.write(who, chance, None)
        if chance.random() < 0.6:
            self.rebuild(who, chance, None)

    @rule(seed=SEEDS)
    def step(self, seed: int) -> None:
        """Hypothesis repeats what it has drawn, which for steps as slow as these would try few kinds of them."""
        self.steps += 1
        chance = Random(f"{seed} {self.steps}")
        who, what = chance.choice(WHO), chance.choices([*KINDS_OF_STEPS], [*KINDS_OF_STEPS.values()])[0]
        # Most survive, and the longest make about a hundred changes of the file system.
        dies = chance.randrange(chance.choice((20, 100))) if chance.random() < 0.4 else None
        match what:
            case "write" | "compact" | "schedule" | "rebuild":
                getattr(self, what)(who, chance, dies)
            case "stand_still":
                self.stand_still(who, chance)
            case "execute" if self.plan is not None:
                self.do(who, what, dies, instant=self.plan)
            case "undo" if len(self.writes) > 1:
                self.undo_last(who, dies)
            case "delete_tag" | "restore" if self.seen["tags"]:
                getattr(self, what)(who, dies)
            case "tag" | "delete_tag" | "restore":
                self.tag(who, dies)
            case "window":
                (self.take_window if self.window is None else self.end_window)(who, dies)
            case _:
                self.do(who, what if what in MIDDLE else "resume", dies)

    def write(self, who: str, chance: Random, dies: int | None) -> None:
        batch = [(chance.choice("abcd"), chance.randint(-5, 2)) for _ in range(chance.randint(1, 3))]
        self.begun = self.rows(batch, chance.random() < 0.3 and self.now > 0)
        answer = self.do(who, "write", dies, rows=self.begun)
        assert "ok" not in answer or self.writes[-1] == Written(answer["ok"], self.begun)
        self.begun = None

    def compact(self, who: str, chance: Random, dies: int | None) -> None:
        how = self.how(chance)
        options = {"eventide.metadata.table": "drop"} if chance.random() < 0.1 else {}
        if "ok" in self.do(who, "compact", dies, options, **how):
            assert self.seen["watermark"] >= how["before"]

    def schedule(self, who: str, chance: Random, dies: int | None) -> None:
        self.do(who, "schedule", dies, **self.how(chance))

    def how(self, chance: Random) -> dict[str, Any]:
        how: dict[str, Any] = {"before": self.time(self.now + chance.randint(-6, 3))}
        if chance.random() < 0.3:
            how["cut"] = "exact"
        if chance.random() < 0.5:
            how["link_mode"] = chance.choice(("copy", "hardlink", "prefix"))
        return how

    def rebuild(self, who: str, chance: Random, dies: int | None) -> None:
        self.do(who, "rebuild", dies, indexes=chance.choice((None, [], ["column_stats"], ["record_index"])))

    def undo_last(self, who: str, dies: int | None) -> None:
        """Rolls back the last write or compaction, or the plan that is pending."""
        kinds = ("deltacommit", "commit", "compaction")
        last = next((entry for entry in self.seen["history"] if entry[1] in kinds), None)
        if last is not None:
            self.undo(who, "rollback", {last[0]}, dies, instant=last[0], force=last[2] != "completed")

    def tag(self, who: str, dies: int | None) -> None:
        name = f"tag-{self.steps:02d}"
        self.tags[name] = self.writes
        self.unsure.add(name)
        if "ok" in self.do(who, "tag", dies, name=name):
            self.unsure.remove(name)

    def delete_tag(self, who: str, dies: int | None) -> None:
        name = min(self.seen["tags"])
        self.unsure.add(name)
        if "ok" in self.do(who, "delete_tag", dies, name=name):
            self.unsure.remove(name)
            del self.tags[name]

    def restore(self, who: str, dies: int | None) -> None:
        if not self.is_restoring:
            self.restored = max(self.seen["tags"])
        name = self.restored
        kept = {write.instant for write in self.tags[name]}
        undone = {write.instant for write in self.writes} - kept
        self.undo(who, "restore", undone, dies, instant=self.seen["tags"][name][0])

    def take_window(self, who: str, dies: int | None) -> None:
        seen, other = self.seen["optimized"], WHO[WHO[0] == who]
        answer = self.do(who, "take", dies)
        if answer.get("ok"):
            _, begin, end, rows = answer["ok"]
            assert self.is_unsure or rows == [row for row in seen if begin <= row[1] < end]
            self.window = self.do(other, "take")["ok"]
            assert self.window[1:] == answer["ok"][1:]
        self.is_unsure = "ok" not in answer

    def end_window(self, who: str, dies: int | None) -> None:
        answer = self.do(who, "done", dies, token=self.window[0])
        self.window, self.is_unsure = None, "ok" not in answer

    def stand_still(self, who: str, chance: Random) -> None:
        """One version stops in the middle of a verb, the other one does another, and the first one goes on."""
        first, second = chance.choices(MIDDLE, k=2)
        before = chance.randrange(60)
        arguments: dict[str, Any] = self.how(chance) if first == "compact" else {}
        if first == "write":
            arguments["rows"] = self.begun = self.rows([("x", 0), ("y", 0)], False)
        other = WHO[WHO[0] == who]
        answer = self.ask(who, first, {"signal": signal.SIGSTOP, "before": before}, **arguments)
        if "stopped" in answer:
            try:
                self.look()
                if second == "write":
                    rows = self.rows([("a", 0), ("b", -2)], False)
                    done = self.ask(other, second, rows=rows)
                    if "ok" in done:
                        self.known.add(done["ok"])
                        self.writes += (Written(done["ok"], rows),)
                    self.look()
                else:
                    also: dict[str, Any] = {"before": self.time(self.now)} if second == "compact" else {}
                    self.do(other, second, **also)
            finally:
                self.versions[who].ask(wake=answer["stopped"])
                answer = self.versions[who].answer()
            self.check_answer(who, f"{first} after a stop", answer)
        self.look()
        self.begun = None

    def teardown(self) -> None:
        """When all is quiet, everything can be compacted, and both find nothing wrong."""
        try:
            if self.seen:
                ender = WHO[self.now % 2]
                if self.is_restoring:
                    self.restore(ender, None)  # only the same restore ends it
                assert "ok" in self.do(ender, "compact", before=self.time(self.now + 9))
                assert self.seen["watermark"] == self.time(self.now + 9)
                for verb in ("clean", "archive"):
                    assert "ok" in self.do(ender, verb)
                for who in self.versions:
                    assert self.ask(who, "verify") == {"ok": []}
        finally:
            self.directory.cleanup()

    @property
    def is_restoring(self) -> bool:
        return any(entry[1] == "restore" and entry[2] != "completed" for entry in self.seen["history"])

    @property
    def plan(self) -> str | None:
        pending = (entry for entry in self.seen["history"] if entry[1] == "compaction" and entry[2] != "completed")
        return next((entry[0] for entry in pending), None)

    def time(self, thirds: int) -> int:
        return at(thirds / 3)

    def rows(self, batch: list[tuple[str, int]], deletes: bool) -> Rows:
        """Rows of a new word, which is the same for all. Their times are relative to a clock that each write advances.

        A row is no earlier than a delete of its key was: where the delete has been compacted, nothing is left to beat the
        row. On version 6, a delete is no earlier than all rows of its key.
        """
        self.now += 1
        found: dict[str, list[Any]] = {}
        for key, late in batch:
            time = self.time(self.now + late)
            if deletes:
                time = max(time, self.latest.get(key, time)) if self.version == 6 else time
                self.deleted[key] = max(time, self.deleted.get(key, time))
            else:
                time = max(time, self.deleted.get(key, time))
            self.latest[key] = max(time, self.latest.get(key, time))
            found[key] = [key, time, None if deletes else f"word {self.now}"]
        return [*found.values()]

    def do(
        self, who: str, verb: str, dies: int | None = None, options: Mapping[str, str] | None = None, **arguments: Any
    ) -> Any:
        strikes = {} if dies is None else {"signal": signal.SIGKILL, "before": dies}
        answer = self.ask(who, verb, {**strikes, "options": options or {}}, **arguments)
        self.look()
        return answer

    def undo(self, who: str, verb: str, undone: set[str], dies: int | None, **arguments: Any) -> None:
        self.undoing = undone
        if "ok" in self.do(who, verb, dies, **arguments):
            assert not undone & {write.instant for write in self.writes}

    def ask(self, who: str, verb: str, more: Mapping[str, Any] | None = None, **arguments: Any) -> Any:
        version = self.versions[who]
        version.ask(path=self.directory.name + "/table", verb=verb, arguments=arguments, **(more or {}))
        answer = version.answer()
        note(f"{who}, {verb} {arguments} {more or {}}: {answer}")
        self.check_answer(who, verb, answer)
        return answer

    def check_answer(self, who: str, verb: str, answer: dict[str, Any]) -> None:
        if "error" in answer:
            assert is_refusal_of_newer(who, answer) or answer["error"] in BUSY | REFUSED, (who, verb, answer)
            assert "\n" not in answer["line"]
        self.reach[f"{who}, {verb}: {answer.get('error', next(iter(answer)))}"] += 1
        self.reach["steps"] += 1

    def look(self) -> None:
        """What both show of the table, and what it should be."""
        for version in self.versions.values():
            version.ask(path=self.directory.name + "/table", verb="look")
        answers = {who: version.answer() for who, version in self.versions.items()}
        for who, answer in answers.items():
            assert "ok" in answer or is_refusal_of_newer(who, answer), (who, answer)
        self.seen = answers["today"]["ok"]
        assert answers["release"].get("ok", self.seen) == self.seen
        self.settle()
        assert self.seen["rows"] == shown(self.writes)
        early = [row for row in folded(self.writes).values() if row[1] < (self.seen["watermark"] or 0)]
        optimized = {row[0]: row for row in self.seen["optimized"]}
        assert len(optimized) == len(self.seen["optimized"])
        assert [optimized.get(row[0]) for row in early] == [None if row[2] is None else row for row in early]
        assert self.seen["tags"].keys() ^ self.tags.keys() <= self.unsure
        for name, (_, rows) in self.seen["tags"].items():
            assert rows == shown(self.tags[name])

    def settle(self) -> None:
        """Takes from the timeline whether the writes and undos that died happened."""
        completed = [entry[0] for entry in self.seen["history"] if entry[1:] == ["deltacommit", "completed"]]
        for instant in completed:
            if instant not in self.known:
                assert self.begun is not None
                self.writes += (Written(instant, self.begun),)
                self.known.add(instant)
        self.writes = tuple(
            write for write in self.writes if write.instant in completed or write.instant not in self.undoing
        )
        if not any(entry[1] in ("rollback", "restore") and entry[2] != "completed" for entry in self.seen["history"]):
            self.undoing = set()


@pytest.fixture(scope="module")
def versions(packages: Path) -> Iterator[Mapping[str, Version]]:
    today = environment()
    both = {
        "today": Version.started(today, ROOT),
        "release": Version.started({**today, "PYTHONPATH": str(packages)}, packages),
    }
    yield both
    for version in both.values():
        with version.process:
            assert version.process.stdin is not None
            version.process.stdin.close()


@pytest.mark.broad
@pytest.mark.campaign
def test_two_versions_keep_every_promise_of_one_table(versions: Mapping[str, Version]) -> None:
    reach: Counter[str] = Counter()

    class Machine(TwoVersions):
        pass

    Machine.versions, Machine.reach = versions, reach
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=EXAMPLES,
                stateful_step_count=STEPS,
                derandomize=IS_REPEATED,
                database=None,
                phases=[Phase.generate] if IS_REPEATED else [Phase.generate, Phase.shrink],
                report_multiple_bugs=False,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
    finally:
        for what, count in sorted(reach.items()):
            reached(f"two versions: {what}", count)

"""A real process of any verb that is stopped by a signal before it makes a file, until others have gone on, harms nobody.

The others undo what it left, run its plan, or call the same verb again; then they write, compact, clean and archive. The
pauses before all writes are in test_paused_owners_of_all_verbs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide.testing.living_table.stock_engine import schedule_as_stock
from eventide_core.config import LOCK_EXPIRE_MINUTES
from eventide_core.table.timeline.timeline import Timeline
from support.faults.stopped import let_expire, merge, stopped, wake
from support.pauses.standstill import Kind
from support.run.command_line import run, run_json
from support.tables.small import LATER_MS, OPTIONS, SERVE, SOON, make, rows, seen

pytestmark = pytest.mark.slow

WORDS = (*OPTIONS, "--option", f"{LOCK_EXPIRE_MINUTES}=1")
NULL_FOR_MISSING = "hoodie.write.set.null.for.missing.columns=true"
SETTINGS = tuple(f"{key}={value}" for key, value in {**SOON, LOCK_EXPIRE_MINUTES: "1"}.items())
Rows = dict[str, tuple[int, str]]
TAG = "kept"


@dataclass(frozen=True, slots=True)
class Place:
    """A table in `directory`, with rows of two writes; `saved` is the second one's instant."""

    directory: Path
    version: int

    @property
    def path(self) -> Path:
        return self.directory / "table"

    @property
    def table(self) -> Table:
        return Table.open(self.path, SOON)

    @property
    def rows(self) -> Rows:
        return seen(self.table.snapshot().to_arrow().select(["id", "ms", "word"]))

    @property
    def timeline(self) -> Timeline:
        """Without a look at the data files, of which some may be lost."""
        files = self.table._application.files
        return files.timeline(files.config())

    @property
    def writes(self) -> list[str]:
        return [write.requested_time for write in self.table.state().timeline.writes]

    def source(self, batch: pa.Table, name: str) -> Path:
        path = self.directory / f"{name}.parquet"
        pq.write_table(batch, path)
        return path

    def ingest(self, batch: pa.Table, name: str) -> Rows:
        run_json("ingest", self.path, self.source(batch, name), *WORDS, "--option", NULL_FOR_MISSING)
        return seen(batch)

    def serve(self) -> None:
        served = run_json("serve", self.path, "--rounds", 1, *SERVE[:-2], *WORDS)
        assert served["troubles"] == []


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb of the command line. `prepare` makes its table ready, and returns its words.

    `after` are the rows after it, of those before it. `kept` says what is missing of its effect, if anything.
    """

    prepare: Callable[[Place], tuple[object, ...]]
    after: Callable[[Rows], Rows] = lambda before: before
    kept: Callable[[Place, Rows], str | None] = lambda *_: None
    is_rolled_forward: bool = False


def _compaction(place: Place) -> tuple[object, ...]:
    return ("compact", place.path, "--before", LATER_MS)


def _plan_of_hudi(place: Place) -> tuple[object, ...]:
    return ("compact", place.path, "--execute", schedule_as_stock(place.table._application))


def _savepoint(place: Place) -> tuple[object, ...]:
    return ("savepoint", place.path, place.writes[-1])


def _restore(place: Place) -> tuple[object, ...]:
    saved = place.writes[-1]
    run_json("savepoint", place.path, saved, *WORDS)
    place.ingest(rows(("k0", 0, "undone"), ("k8", 0, "undone")), "undone")
    return ("restore", place.path, saved)


def _rollback(place: Place) -> tuple[object, ...]:
    place.ingest(rows(("k0", 0, "undone"), ("k8", 0, "undone")), "undone")
    return ("rollback", place.path, place.writes[-1])


def _before_the_undone(before: Rows) -> Rows:
    kept = {key: row for key, row in before.items() if key != "k8"}
    return {key: (row if row[1] != "undone" else (0, "second")) for key, row in kept.items()}


def _alter(place: Place) -> tuple[object, ...]:
    return ("alter", place.path, "add", "fare double")


def _update(place: Place) -> tuple[object, ...]:
    return ("update", place.path, "--set", "word='updated'", "--where", "id = 'k3'")


def _merge(place: Place) -> tuple[object, ...]:
    return ("merge", place.path, place.source(rows(("k3", 1, "merged"), ("k9", 1, "merged")), "merged"), *SETTINGS)


def _rebuild(place: Place) -> tuple[object, ...]:
    return ("metadata", place.path, "--rebuild")


def _repair(place: Place) -> tuple[object, ...]:
    """A base file of a compaction is lost, and its log files are still there."""
    compacted = run_json("compact", place.path, "--before", LATER_MS, *WORDS)["instant"]
    next(place.path.glob(f"part=a/*_{compacted}.parquet")).unlink()
    return ("repair", place.path, "--apply")


def _windows(place: Place) -> tuple[object, ...]:
    run_json("compact", place.path, "--before", LATER_MS, *WORDS)
    to = place.directory / "window.parquet"
    return ("windows", place.path, "--every", "1h", "--consumer", "billing", "--next", "--to", to, "--done")


def _is_saved(place: Place, before: Rows) -> str | None:
    """A tag is of the table as it was when the tag was made."""
    instant = run_json("tag", place.path, *WORDS)["tags"][0]["instant"] if _has_tag(place) else _saved(place)
    found = seen(place.table.as_of(instant).to_arrow().select(["id", "ms", "word"]))
    return None if found == before else f"as of {instant}: {found} instead of {before}"


def _has_tag(place: Place) -> bool:
    return bool(place.table.tags())


def _saved(place: Place) -> str:
    (instant,) = {
        found.requested_time for found in place.table.state().timeline.completed if str(found.action) == "savepoint"
    }
    return instant


def _has_column(place: Place, _: Rows) -> str | None:
    return None if "fare" in place.table.schema.names else f"the columns are {place.table.schema.names}"


def _has_metadata_table(place: Place, _: Rows) -> str | None:
    return None if place.table.metadata_table() else "there is no metadata table"


def _put(word: str, *keys: str) -> Callable[[Rows], Rows]:
    return lambda before: {**before, **{key: (before.get(key, (0, ""))[0], word) for key in keys}}


VERBS = {
    "compact": Verb(_compaction),
    "run a plan of Hudi": Verb(_plan_of_hudi),
    "save": Verb(_savepoint, kept=_is_saved),
    "tag": Verb(lambda place: ("tag", place.path, TAG), kept=_is_saved),
    "restore": Verb(_restore, _before_the_undone, is_rolled_forward=True),
    "roll back": Verb(_rollback, _before_the_undone, is_rolled_forward=True),
    "alter": Verb(_alter, kept=_has_column),
    "update": Verb(_update, _put("updated", "k3")),
    "merge": Verb(_merge, _put("merged", "k3", "k9")),
    "rebuild": Verb(_rebuild, kept=_has_metadata_table),
    "repair": Verb(_repair),
    "windows": Verb(_windows),
}
STOPS: dict[str, dict[str, tuple[Kind, ...]]] = {
    "compact": {
        ".compaction.requested": (Kind.EXECUTE, Kind.FINISH),
        ".compaction.inflight": tuple(Kind),
        ".commit": (Kind.EXECUTE, Kind.FINISH),
    },
    "run a plan of Hudi": {
        ".parquet": tuple(Kind),
        ".compaction.inflight": (Kind.EXECUTE,),
        ".commit": (Kind.EXECUTE,),
    },
    "save": {".savepoint.inflight": (Kind.UNDO,), ".savepoint": (Kind.UNDO, Kind.FINISH)},
    "tag": {".savepoint": (Kind.UNDO, Kind.FINISH)},
    "restore": {
        ".restore.requested": (Kind.UNDO, Kind.FINISH),
        ".restore.inflight": (Kind.FINISH,),
        ".restore": (Kind.FINISH,),
    },
    "roll back": {
        ".rollback.requested": (Kind.UNDO, Kind.FINISH),
        ".rollback.inflight": (Kind.FINISH,),
        ".rollback": (Kind.FINISH,),
    },
    "alter": {".deltacommit.requested": (Kind.UNDO,), ".deltacommit": (Kind.UNDO, Kind.FINISH)},
    "update": {".deltacommit.inflight": (Kind.UNDO,), ".deltacommit": (Kind.UNDO, Kind.FINISH)},
    "merge": {".deltacommit": (Kind.UNDO, Kind.FINISH)},
    "rebuild": {".hfile": (Kind.UNDO, Kind.FINISH), "hoodie.properties": (Kind.UNDO, Kind.FINISH)},
    "repair": dict.fromkeys(("repair.json", "applied", ".parquet", ".commit"), (Kind.FINISH,)),
    "windows": {"02.json": (Kind.UNDO, Kind.FINISH), "04.json": (Kind.UNDO, Kind.FINISH)},
}
ALWAYS = {
    (9, "compact", ".compaction.inflight", Kind.EXECUTE),
    (6, "run a plan of Hudi", ".parquet", Kind.EXECUTE),
    (9, "save", ".savepoint", Kind.UNDO),
}


def cases() -> Iterator[object]:
    for verb, suffixes in STOPS.items():
        for suffix, kinds in suffixes.items():
            for kind in kinds:
                for version in (6, 9):
                    rarely = pytest.mark.broad if version == 9 and verb != "repair" else pytest.mark.proof
                    marks = () if (version, verb, suffix, kind) in ALWAYS else (rarely,)
                    yield pytest.param(version, verb, suffix, kind, id=f"{version}-{verb}-{suffix}-{kind}", marks=marks)


@pytest.mark.parametrize(("version", "verb", "suffix", "kind"), list(cases()))
def test_a_process_that_was_stopped_harms_nobody(
    version: int, verb: str, suffix: str, kind: Kind, tmp_path: Path
) -> None:
    made, place = VERBS[verb], begun(tmp_path, version)
    before = place.rows
    words = made.prepare(place)
    before = before if verb == "repair" else place.rows
    with stopped(suffix, *words, *(() if words[0] == "merge" else WORDS)) as process:
        written, plans = others_go_on(place, kind, words)
        exit_code, said = wake(process)
    succeeded = exit_code == 0
    after = made.after(before)
    possible = [after if succeeded else before]
    if kind is Kind.FINISH or (made.is_rolled_forward and not succeeded):
        possible.append(after)
    for step in range(2):
        found = place.rows
        assert any(_same(found, {**rows_of, **written}) for rows_of in possible), (step, found, possible, written, said)
        if step or verb != "repair":
            problems = "; ".join(map(str, place.table.verify(deep=True).failed))
            assert problems == "", (step, exit_code, said)
        if succeeded:
            assert (made.kept(place, before), said) == (None, said), step
        written |= place.ingest(rows(("k0", 4 + step, "later"), ("k1", 4 + step, "later")), f"later-{step}")
        if verb == "repair":
            assert run("repair", place.path, "--apply", *WORDS).exit_code == 0
        place.serve()
    assert succeeded or not plans, f"others completed its plan, but it ended with {exit_code}: {said}"


def _same(found: Rows, expected: Rows) -> bool:
    """Of each key the same word: a time is of the moment at which it was written."""
    return {key: row[1] for key, row in found.items()} == {key: row[1] for key, row in expected.items()}


def begun(directory: Path, version: int) -> Place:
    place = Place(directory, version)
    make(place.path, version)
    for hours, name in ((-3, "first"), (-2, "second")):
        place.ingest(rows(*((f"k{n}", hours, name) for n in range(4))), name)
    return place


def others_go_on(place: Place, kind: Kind, words: tuple[object, ...]) -> tuple[Rows, list[str]]:
    """Returns the rows that they wrote, and the plans that were pending and that they completed."""
    let_expire(place.path)
    pending = [plan.requested_time for plan in place.timeline.pending_plans]
    if kind is Kind.FINISH:
        call_again(words)
    for plan in pending:
        if kind is Kind.UNDO and run("rollback", place.path, plan, "--force", *WORDS).exit_code == 0:
            continue
        if kind is Kind.EXECUTE:
            run_json("compact", place.path, "--execute", plan, *WORDS)
    timeline = place.timeline
    found = {plan: timeline.find_compaction(plan) for plan in pending}
    completed = [plan for plan, instant in found.items() if instant is not None and instant.is_completed]
    written: Rows = {}
    for number in range(4):
        batch = rows(("k0", 2, f"others {number}"), ("k1", 2, f"others {number}"))
        written |= place.ingest(batch, f"others-{number}")
        place.serve()
    return written, completed


def call_again(words: tuple[object, ...]) -> None:
    if words[0] == "merge":
        _, path, source, *options = map(str, words)
        assert merge(path, source, options) == 0
        return
    answer = run(*words, *WORDS, *(("--take-over",) if words[0] == "windows" else ()))
    assert answer.exit_code in (0, 2, 3), answer.stderr

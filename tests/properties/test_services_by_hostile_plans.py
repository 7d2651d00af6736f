"""A service that meets a plan or savepoint with a hostile path: it refuses before it writes anything, or it does no harm.

Of each kind of text (`support.faults.hostile_paths`) one that decoding refuses and one that it lets pass, in each field.
"""

import posixpath
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache

import pytest

from eventide.bootstrap import Application
from eventide.testing.crash_enumeration import OPTIONS, Bench, Moment
from eventide.testing.histories import EPOCH_MS, Layout, Story, put
from eventide.testing.inspection.observation import LOCK_PREFIX
from eventide.testing.oracle import Order
from eventide_adapters.storage.faulty import FaultyStorage
from eventide_core.action.compaction.request import CompactionRequest
from eventide_core.config import PENDING_SERVICE_STALE_MS, LinkChoice
from eventide_core.errors import EventideError
from eventide_core.ports import NoProgress
from eventide_core.table.timeline.contents.commit_metadata import WriteStat
from support.faults.hostile_paths import HOSTILE, filled
from support.faults.path_fields import (
    CLEAN,
    CODEC,
    COMPACTION,
    EARLY,
    FIELDS,
    INSTANT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    PathField,
)
from support.run.reach import reached

TIMELINE = ".hoodie/timeline"
HISTORY = f"{TIMELINE}/history"  # where an undo asks whether a write is archived
OWN_DIRECTORIES = {
    "",
    ".hoodie",
    ".hoodie/.aux",
    ".hoodie/.temp",
    ".hoodie/.heartbeat",
    ".hoodie/.aux/eventide",
    HISTORY,
}


@cache
def start() -> tuple[Bench, Moment, str]:
    """A table of two commits, and the instant of the last."""
    bench = Bench("hostile-plans", {**OPTIONS, PENDING_SERVICE_STALE_MS: "0"})  # whoever began the plan is gone
    story = Story.begin(Layout(9, Order.EVENT_TIME), bench.storage, bench.clock)
    story.commit((put("k0", 1, "base"), put("k1", 2, "base", partition="b")))
    last = story.commit((put("k0", 5, "early"), put("k1", 6, "early", partition="b")))
    return bench, bench.moment(), last


def services(document: str, last: str) -> tuple[Callable[[Application], object], ...]:
    """Whatever reads the document and may write or remove by it."""
    clean: Callable[[Application], object] = lambda application: application.cleaner.clean(1)  # noqa: E731
    match document:
        case _ if document == CLEAN:
            return (clean,)
        case _ if document == ROLLBACK:
            return (clean, lambda application: application.rollback.undo(INSTANT))
        case _ if document == SAVEPOINT:
            return (clean, lambda application: application.restorer.restore(last))
        case _ if document == RESTORE:
            return (lambda application: application.restorer.restore(EARLY),)
        case _:
            return (
                clean,
                lambda application: application.rollback.undo(INSTANT),
                lambda application: application.runner.execute(INSTANT, NoProgress()),
            )


def file_names(document: str, last: str) -> tuple[str, tuple[str, ...]]:
    """The file of the timeline that holds the document, and the empty ones beside it."""
    if document == SAVEPOINT:
        return f"{last}_{INSTANT}.savepoint", ()
    inflight = document.replace("requested", "inflight")
    return f"{INSTANT}{document}", () if document == COMPACTION else (f"{INSTANT}{inflight}",)


@dataclass(frozen=True, slots=True)
class Outcome:
    failure: EventideError | None
    written: tuple[str, ...]
    lost: tuple[str, ...]


def outcome(field: PathField, data: bytes, service: Callable[[Application], object]) -> Outcome:
    bench, moment, last = start()
    bench.load(moment)
    name, others = file_names(field.document, last)
    bench.storage.put(f"{TIMELINE}/{name}", data)
    for other in others:
        bench.storage.put(f"{TIMELINE}/{other}", b"")
    storage = FaultyStorage(bench.storage)
    failure: EventideError | None = None
    try:
        service(bench.process(storage))
    except EventideError as error:
        failure = error
    left = bench.storage.dump()
    written = tuple(w.path for w in storage.writes if not w.path.startswith(LOCK_PREFIX))
    lost = tuple(path for path, file in moment.files.items() if path not in left or left[path].data != file.data)
    return Outcome(failure, written, lost)


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_document_with_what_belongs_there_is_followed(field: PathField) -> None:
    """Or nothing would be refused for its path alone."""
    _, _, last = start()
    found = outcome(field, field.bytes_with(field.proper), services(field.document, last)[0])
    assert found.failure is None
    assert not found.lost


def is_refused(field: PathField, data: bytes) -> bool:
    try:
        field.touched_by(data)
    except EventideError:
        return True
    return False


def chosen(field: PathField) -> list[tuple[bytes, bool]]:
    """The first text of each kind that decoding refuses, and the first that it lets pass."""
    found: list[tuple[bytes, bool]] = []
    for texts in HOSTILE.values():
        first: dict[bool, bytes] = {}
        for text in texts:
            try:
                data = field.bytes_with(filled(text, field.proper))
            except UnicodeEncodeError:
                continue
            first.setdefault(is_refused(field, data), data)
        found += [(data, refused) for refused, data in first.items()]
    return found


@pytest.mark.parametrize("field", FIELDS, ids=str)
def test_a_service_refuses_a_hostile_plan_before_its_first_write_or_does_no_harm(field: PathField) -> None:
    """What a harmless plan names is not there: none of the table's own files may go."""
    _, _, last = start()
    for data, refused in chosen(field):
        for service in services(field.document, last):
            found = outcome(field, data, service)
            assert not found.lost
            reached(f"hostile plans, {'refused' if refused else 'harmless'}")
            if refused:
                assert found.failure is not None
                assert found.failure.exit_code == 2
                assert found.written == ()


def hostile_commit(change: Callable[[WriteStat, str], tuple[str, WriteStat]], text: str) -> tuple[Moment, str]:
    """The table, its last commit's first write stat changed by the text."""
    bench, moment, last = start()
    bench.load(moment)
    (path,) = (path for path in moment.files if path.startswith(f"{TIMELINE}/{last}_") and path.endswith("deltacommit"))
    metadata = CODEC.decode_commit(moment.files[path].data, path)
    first, *others = metadata.stats
    partition, changed = change(first, text)
    stats = {stat.partition: (stat,) for stat in others} | {partition: (changed,)}
    bench.storage.put(path, CODEC.encode_commit(replace(metadata, write_stats=stats), 9))
    return bench.moment(), last


@pytest.mark.parametrize(
    "change",
    [
        lambda stat, text: (stat.partition, stat._replace(path=filled(text, stat.path))),
        lambda stat, text: (filled(text, stat.partition), stat._replace(path=filled(text, stat.path))),
    ],
    ids=["path", "partition and path"],
)
def test_no_service_goes_where_a_write_stat_says(change: Callable[[WriteStat, str], tuple[str, WriteStat]]) -> None:
    """Paths of commits are looked up among those that were listed."""
    actions: tuple[Callable[[Application], object], ...] = (
        lambda application: application.queries.snapshot(),
        lambda application: application.scheduler.schedule(CompactionRequest(EPOCH_MS + 3, None, LinkChoice.COPY)),
        lambda application: application.cleaner.clean(1),
        lambda application: application.rollback.undo(start()[2]),
    )
    for texts in HOSTILE.values():
        text = next(text for text in texts if text not in ("", "a", "{}/{}", "part=b"))
        try:
            moment, _ = hostile_commit(change, text)
        except UnicodeEncodeError:
            continue
        bench = start()[0]
        for action in actions:
            bench.load(moment)
            storage = FaultyStorage(bench.storage)
            with suppress(EventideError):
                action(bench.process(storage))
            known = {posixpath.dirname(path) for path in moment.files}
            gone_to = {posixpath.dirname(operation.path) for operation in storage.operations}
            assert gone_to <= known | OWN_DIRECTORIES, text
            reached("hostile plans, commits")

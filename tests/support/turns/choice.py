"""Draws the next move of a life: of an engine that can make it, and of a kind that fits the state of the table."""

from eventide.testing.oracle import Change
from support.turns.kinds import EVENTIDE
from support.turns.life import EPOCH_MS, Life
from support.turns.moves import (
    MOST_WRITES,
    Archive,
    BreakOff,
    Clean,
    DieWriting,
    Execute,
    Move,
    RollPlanBack,
    RollWriteBack,
    Schedule,
    WriteChanges,
)

PARTITIONS = ("part=a", "part=b")
KEYS = 5  # of one partition


def next_move(life: Life) -> Move:
    """The next move. The first one is a write.

    After a write that died, the next move is a write that finds it. The same applies after a rollback that Hudi 0.x
    can't read past, because its compaction would lose what it doesn't read.
    """
    if life.is_empty():
        return _write(life)
    if life.has_dead_write:
        return _write(life) if life.chance.random() < 0.8 else Clean(EVENTIDE, 2)
    if life.is_hidden_from_hudi_0x():
        return _write(life)
    weights = _weights_of_pending(life) if life.scheduled else _weights_of_idle(life)
    (name,) = life.chance.choices(list(weights), list(weights.values()))
    match name:
        case "write":
            return _write(life)
        case "delete":
            return _natural_deletes(life)
        case "die":
            return DieWriting(_changes(life))
        case "clean":
            return Clean(_actor(life), life.chance.randint(1, 3))
        case "archive":
            return Archive()
        case "roll write back":
            # A Hudi that creates a metadata table during a rollback lists the files in it that the rollback removes.
            return RollWriteBack(EVENTIDE if life.lacks_metadata_table() else _actor(life))
        case "schedule" | "compact":
            before_ms = life.chance.randint(life.cut_ms + 1, max(life.now_ms, life.cut_ms) + 10)
            return Schedule(_actor(life), before_ms, life.chance.choice(("auto", "copy")), name == "compact")
        case "execute":
            return Execute(_executor(life))
        case "break off":
            return BreakOff(life.chance.randint(1, MOST_WRITES))
        case _:
            return RollPlanBack()


def _weights_of_idle(life: Life) -> dict[str, int]:
    undo = 12 if life.undoable is not None else 0
    return {
        "write": 40, "delete": 8, "die": 5, "compact": 18, "schedule": 15, "clean": 7, "archive": 2, "roll write back": undo,
    }  # fmt: skip


def _weights_of_pending(life: Life) -> dict[str, int]:
    assert life.scheduled is not None
    is_own = life.scheduled.planner == EVENTIDE
    return {
        "write": 35, "delete": 6, "execute": 35, "break off": 12 if is_own else 0, "clean": 6,
        "roll plan back": 10 if is_own else 0,
    }  # fmt: skip


def _actor(life: Life) -> str:
    if not life.kind.writers or life.chance.random() < 0.45:
        return EVENTIDE
    return life.chance.choice(life.kind.writers)


def _executor(life: Life) -> str:
    """Any engine, except that only Hudi executes a plan of Hudi."""
    assert life.scheduled is not None
    if life.scheduled.planner == EVENTIDE:
        return _actor(life)
    return life.chance.choice(life.kind.writers)


def _write(life: Life) -> WriteChanges:
    may_be_ours = not life.is_empty() or (life.kind.may_be_made_by_eventide and not life.has_column_stats())
    return WriteChanges(_actor(life) if may_be_ours else life.kind.writers[0], _changes(life))


def _natural_deletes(life: Life) -> WriteChanges:
    there = sorted(life.oracle.log_counts())
    chosen = life.chance.sample([(p, f"k{n}") for p in there for n in range(KEYS)], life.chance.randint(1, 2))
    return WriteChanges(_actor(life), tuple(Change(*place, None, None) for place in chosen), is_natural=True)


def _changes(life: Life) -> tuple[Change, ...]:
    """Changes of distinct keys, mostly with event times of this turn. Deletes only if there are rows."""
    there = life.oracle.log_counts()
    partitions = PARTITIONS if life.chance.random() < 0.6 else (life.chance.choice(PARTITIONS),)
    places = [(partition, f"k{number}") for partition in partitions for number in range(KEYS)]
    changes: list[Change] = []
    for number, (partition, key) in enumerate(life.chance.sample(places, life.chance.randint(1, 5))):
        is_delete = life.kind.has_ordered_deletes and partition in there and life.chance.random() < 0.2
        word = None if is_delete else f"{life.turn}.{number}"
        changes.append(Change(partition, key, _event_time(life, partition, key, is_delete=is_delete), word))
    return tuple(changes)


def _event_time(life: Life, partition: str, key: str, *, is_delete: bool) -> int | None:
    """An event time of this turn, a late one, the one that the key has, or none."""
    drawn = life.chance.random()
    if drawn < 0.1 and life.kind.has_null_event_times and not is_delete:
        return None
    if drawn < 0.25:
        for row in sorted(life.oracle.snapshot(), key=repr):
            if row[:2] == (partition, key) and isinstance(row[2], int):
                return row[2]
    if drawn < 0.5:
        return EPOCH_MS + life.chance.randint(0, 10 * life.turn)
    return life.now_ms + life.chance.randint(0, 9)

"""What a seed stands for: a kind of table, the actors on it, and what happens to their requests."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import Final

from eventide.testing.histories import Layout
from eventide.testing.oracle import Order


class Trouble(StrEnum):
    """What happens to a request or its sender."""

    ERROR = "error"
    """It fails, and does nothing."""
    LOST = "lost"
    """A write is applied, and its answer is lost. A read fails."""
    SLOW = "slow"
    """It takes seconds, but less than the lock is valid."""
    KILL = "kill"
    """Its process dies before it."""
    LATE = "late"
    """Its process dies, and a write arrives later all the same."""
    PAUSE = "pause"
    """Its process stands still before it, past the expiry of its lock and heartbeat."""
    JUMP = "jump"
    """The clock of its process jumps."""


_WEIGHTS = {
    Trouble.ERROR: 6,
    Trouble.LOST: 6,
    Trouble.SLOW: 8,
    Trouble.KILL: 5,
    Trouble.LATE: 2,
    Trouble.PAUSE: 6,
    Trouble.JUMP: 2,
}
READING: Final = 1
WRITING: Final = 6
DECIDING: Final = 20
"""How often something happens to a request: most of what matters is a write, above all of a file that decides what an
action was, and most requests are reads."""
_DURATIONS_MS: dict[Trouble, Sequence[int]] = {
    Trouble.SLOW: (500, 3_000, 15_000),
    Trouble.PAUSE: (70_000, 180_000, 900_000, 7_200_000),
    Trouble.LATE: (1_000, 90_000, 600_000),
    Trouble.JUMP: (-600_000, -5_000, 5_000, 600_000),
}
DISTURBING = frozenset({Trouble.PAUSE, Trouble.LATE, Trouble.JUMP})
"""A late write is visible until it is withdrawn, so queries are checked strictly only when the world is at rest."""
UNLIKE_STOCK = DISTURBING
"""What doesn't happen to a stock writer: it has no fence, so it would break the table, and that isn't eventide's fault."""
ALWAYS = ("writer-1", "compactor")
SOMETIMES = (
    "writer-2", "stock-writer", "stock-planner", "exact-compactor", "service", "cleaner", "archiver", "undoer",
    "restorer", "tagger", "consumer-1", "consumer-2", "rebuilder", "reader",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mishap:
    """What happens to an actor's request of that number, and for how long."""

    actor: str
    number: int
    trouble: Trouble
    ms: int = 0

    def __str__(self) -> str:
        return f"{self.actor}:{self.number}:{self.trouble}:{self.ms}"

    @classmethod
    def parse(cls, text: str) -> "Mishap":
        actor, number, trouble, ms = text.split(":")
        return cls(actor, int(number), Trouble(trouble), int(ms))


@dataclass(frozen=True, slots=True)
class Lot:
    """A world before it begins.

    A storm ends when the actors have done `turns` of what they do; there are `storms` of them. `troubles` are drawn at
    `per_mille` of the requests that read, and more often at the others, unless `mishaps` lists what happens. An actor rests
    for up to `rest_ms` after a verb: the longer, the more verbs of others fall into a pause.
    """

    seed: int
    layout: Layout
    is_lock_renewed: bool
    actors: tuple[str, ...]
    turns: int
    storms: int
    troubles: frozenset[Trouble]
    per_mille: int
    mishaps: tuple[Mishap, ...] | None = None
    rest_ms: int = 3_000

    @classmethod
    def of(cls, seed: int) -> "Lot":
        dice = Random(f"{seed} lot")
        layout = Layout(
            dice.choice((6, 9)),
            Order.EVENT_TIME,
            has_block_event_times=dice.random() < 0.5,
            has_metadata_table=dice.random() < 0.4,
            buckets=2,
            index=dice.choice(("BUCKET", "BUCKET", "SIMPLE")),
        )
        others = [name for name in SOMETIMES if name != "rebuilder" or layout.has_metadata_table]
        chosen = {"service", *dice.sample(others, dice.randint(3, 8))}
        return cls(
            seed,
            layout,
            dice.random() < 0.5,
            (*ALWAYS, *(name for name in SOMETIMES if name in chosen)),
            dice.choice((30, 60, 90)),
            2,
            frozenset(trouble for trouble in Trouble if dice.random() < 0.5),
            dice.choice((1, 2, 4, 8)),
        )

    @property
    def command(self) -> str:
        """What replays this world."""
        drawn = Lot.of(self.seed)
        words = [f"./run simulate --seed {self.seed}"]
        if self.actors != drawn.actors:
            words.append(f"--actors {','.join(self.actors)}")
        if self.turns != drawn.turns:
            words.append(f"--turns {self.turns}")
        if self.storms != drawn.storms:
            words.append(f"--storms {self.storms}")
        if self.mishaps is not None:
            words.append(f"--mishaps {','.join(map(str, self.mishaps)) or 'none'}")
        return " ".join(words)

    def with_mishaps(self, mishaps: Sequence[Mishap]) -> "Lot":
        return replace(self, mishaps=tuple(mishaps))

    def __str__(self) -> str:
        layout = self.layout
        return (
            f"version {layout.version}, {layout.index}, {'with' if layout.has_metadata_table else 'without'} a metadata "
            f"table, {'a renewed' if self.is_lock_renewed else 'an expiring'} lock; {', '.join(self.actors)}; "
            f"{', '.join(sorted(self.troubles)) or 'no trouble'} at {self.per_mille} of 1,000 requests"
        )


def luck_of(lot: Lot, actor: str) -> Callable[[int, int], Mishap | None]:
    """What happens to the requests of an actor, by their number and how often something does.

    Called for each of them, in order.

    Each request takes the same draws whatever the lot leaves out, so fewer troubles or actors change no others.
    """
    if lot.mishaps is not None:
        planned = {mishap.number: mishap for mishap in lot.mishaps if mishap.actor == actor}
        return lambda number, _: planned.get(number)
    dice, kinds, weights = Random(f"{lot.seed} luck of {actor}"), list(_WEIGHTS), list(_WEIGHTS.values())
    avoided = UNLIKE_STOCK if actor.startswith("stock") else frozenset[Trouble]()

    def draw(number: int, weight: int) -> Mishap | None:
        happens = dice.random() * 1_000 < lot.per_mille * weight
        (trouble,), place = dice.choices(kinds, weights), dice.random()
        if not happens or trouble not in lot.troubles - avoided:
            return None
        durations = _DURATIONS_MS.get(trouble, (0,))
        return Mishap(actor, number, trouble, durations[int(place * len(durations))])

    return draw

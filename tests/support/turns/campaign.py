"""Many lives at once: a turn of eventide and then of Hudi in each, then a comparison of every reader."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from eventide.testing.oracle import Order, Rows
from eventide_core.errors import EventideError
from support.judge import HudiJudge, JudgeError, hudi_rs
from support.judge.hudi_judge import Query, Question
from support.turns.choice import next_move
from support.turns.kinds import EVENTIDE, HUDI_RS, KINDS, NEW, NEWEST, OLD
from support.turns.life import SEEN_COLUMNS, Life, seen
from support.turns.moves import Move, WriteChanges

QUERIES: tuple[Query, Query] = ("snapshot", "read_optimized")


class Campaign:
    """Lives that are distinguished by their seeds. `failures` has the story and the difference of each failed life."""

    def __init__(self, judges: Mapping[str, HudiJudge], directory: Path) -> None:
        self.failures: list[str] = []
        self.reached: Counter[str] = Counter()
        self._judges = judges
        self._directory = directory
        kinds = (replace(kind, writers=tuple(v for v in kind.writers if v in judges)) for kind in KINDS)
        self._kinds = [kind for kind in kinds if kind.writers or kind.may_be_made_by_eventide]

    def live(self, seeds: Iterable[int], turns: int) -> None:
        """Runs a life of that many turns for each seed, all of them at once."""
        lives = [Life(seed, self._kinds[seed % len(self._kinds)], self._directory / f"life_{seed}") for seed in seeds]
        for turn in range(1, turns + 1):
            lives = self._checked(self._turn(lives), is_last=turn == turns)
        self.reached["lives to their end"] += len(lives)

    def _turn(self, lives: list[Life]) -> list[Life]:
        moves = [(life, next_move(life)) for life in lives]
        done: list[tuple[Life, Move]] = []
        for life, move in moves:
            life.turn += 1
            life.told.append(str(move))
            if move.actor == EVENTIDE and not self._is_done_by_eventide(life, move):
                continue
            done.append((life, move))
        failed = self._by_hudi([(life, move) for life, move in done if move.actor != EVENTIDE])
        extending: list[Life] = []
        optimized = {life.seed: life.oracle.read_optimized() for life, _ in done}
        for life, move in done:
            if life.seed in failed:
                self._fail(life, failed[life.seed])
                continue
            try:
                move.happened(life)
            except AssertionError as failure:
                self._fail(life, f"after {move.actor}: {failure}")
                continue
            self.reached[f"turns of {move.actor}"] += 1
            self.reached[type(move).__name__] += 1
            life.has_other_bases = (
                not isinstance(move, WriteChanges) or life.oracle.read_optimized() != optimized[life.seed]
            )
            extending.append(life)
        return extending

    def _is_done_by_eventide(self, life: Life, move: Move) -> bool:
        try:
            move.by_eventide(life)
        except (EventideError, AssertionError) as failure:
            self._fail(life, f"eventide: {type(failure).__name__}: {failure}")
            return False
        return True

    def _by_hudi(self, moves: list[tuple[Life, Move]]) -> dict[int, str]:
        """The errors, by seed."""
        failed: dict[int, str] = {}
        for version, judge in self._judges.items():
            of_version = [(life, move) for life, move in moves if move.actor == version]
            if not of_version:
                continue
            answers = judge.together([move.by_hudi(life) for life, move in of_version])
            for (life, _), answer in zip(of_version, answers, strict=True):
                if answer is not None:
                    failed[life.seed] = f"Hudi {version}: {answer[:2000]}"
        return failed

    def _checked(self, lives: list[Life], *, is_last: bool) -> list[Life]:
        wrong: dict[int, list[str]] = {life.seed: [] for life in lives}
        shown = [life for life in lives if not life.is_empty()]
        for version, judge in self._judges.items():
            asked: list[tuple[Life, Query]] = [
                (life, query) for life in shown for query in _queries(life, version, is_last=is_last)
            ]
            for life, query, found in self._asked(judge, asked):
                wrong[life.seed] += _differences(life, version, query, found)
                self.reached[f"answers of Hudi {version}"] += 1
        for life in shown:
            for query in QUERIES:
                if not life.is_hidden_from_hudi_rs():
                    wrong[life.seed] += _differences(life, HUDI_RS, query, _by_hudi_rs(life, query))
                wrong[life.seed] += _differences(life, EVENTIDE, query, _by_eventide(life, query))
        for life in lives:
            if is_last:
                wrong[life.seed] += [f"verify: {check}" for check in life.table.verify(deep=True).failed]
            if wrong[life.seed]:
                self._fail(life, "\n  ".join(wrong[life.seed]))
        return [life for life in lives if not wrong[life.seed]]

    def _asked(self, judge: HudiJudge, asked: list[tuple[Life, Query]]) -> Iterable[tuple[Life, Query, Rows | str]]:
        if not asked:
            return
        try:
            answers = judge.ask([Question(life.path, query) for life, query in asked], SEEN_COLUMNS)
        except JudgeError:
            # Finds the one that failed.
            for life, query in asked:
                try:
                    yield life, query, seen(judge.ask([Question(life.path, query)], SEEN_COLUMNS)[0])
                except (JudgeError, AssertionError) as failure:
                    yield life, query, str(failure)[:2000]
            return
        for (life, query), answer in zip(asked, answers, strict=True):
            try:
                yield life, query, seen(answer)
            except AssertionError as failure:
                yield life, query, str(failure)

    def _fail(self, life: Life, why: str) -> None:
        self.failures.append(f"{life.story()}\n  {why}")


def _queries(life: Life, version: str, *, is_last: bool) -> tuple[Query, ...]:
    """The queries for a version of Hudi after a turn; at the end, all queries for all versions.

    Until then, Hudi 1.1 and 1.2 take turns, and the read-optimized view is queried if base files may have changed.
    """
    if version not in life.kind.orders or (version == OLD and life.is_hidden_from_hudi_0x()):
        return ()
    if not is_last and version != OLD and version != (NEW, NEWEST)[(life.seed + life.turn) % 2]:
        return ()
    return QUERIES if is_last or life.has_other_bases else ("snapshot",)


def _differences(life: Life, reader: str, query: Query, found: Rows | str) -> list[str]:
    """The differences between a reader's rows and the order that it is known to use."""
    order: Order = life.kind.orders[reader]
    expected = life.oracle.snapshot(order) if query == "snapshot" else life.oracle.read_optimized()
    if isinstance(found, str):
        return [f"{reader}, {query}: {found}"]
    if found == expected:
        return []
    lost, more = sorted(map(repr, expected - found)), sorted(map(repr, found - expected))
    return [f"{reader}, {query}: lost {lost}, and shows {more} instead"]


def _by_hudi_rs(life: Life, query: Query) -> Rows | str:
    try:
        return seen(hudi_rs.read(life.path, query))
    # Any error of hudi-rs is its answer.
    except Exception as failure:
        return f"{type(failure).__name__}: {failure}"


def _by_eventide(life: Life, query: Query) -> Rows | str:
    table = life.table
    try:
        return seen((table.snapshot() if query == "snapshot" else table.read_optimized()).to_arrow())
    except (EventideError, AssertionError) as failure:
        return f"{type(failure).__name__}: {failure}"

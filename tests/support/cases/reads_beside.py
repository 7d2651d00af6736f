"""Runs reading verbs repeatedly beside services of any engine, and checks how each ends."""

from collections.abc import Callable
from pathlib import Path

from support.run.command_line import run
from support.run.reach import reached

RIGHT = {
    ("show",): {0},
    ("freshness",): {0},
    # A query that has begun can't be planned again. A verification ends as busy if files disappear each time.
    ("read", "--columns", "id"): {0, 4},
    ("verify",): {0, 4},
}


def read_beside(path: Path, rounds: Callable[[], int], times: int, beside: str) -> None:
    """Runs the verbs in turn until the services have made that many more rounds. Counts the results."""
    enough = rounds() + times
    while rounds() < enough:
        for words, right in RIGHT.items():
            answer = run(words[0], path, *words[1:], "--output", "json")
            assert answer.exit_code in right, (
                f"{words[0]} ended with {answer.exit_code}: {answer.stdout}{answer.stderr}"
            )
            reached(f"beside {beside}: {words[0]} ended with exit code {answer.exit_code}")
    reached(f"beside {beside}: rounds of the services", times)

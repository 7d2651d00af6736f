"""Reports at the end of a run what the tests reached, so that a proof that reached nothing is visible."""

from collections import Counter

REACHED: Counter[str] = Counter()


def reached(what: str, times: int = 1) -> None:
    """Counts something that a test reached, under its label in the summary."""
    REACHED[what] += times

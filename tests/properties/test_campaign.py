"""A campaign of the state machine keeps what it reached, continues where it was interrupted, and never forgets a failure."""

from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path

from eventide.testing.campaign import Outcome, Part, main, outcomes, run_campaign, seed_of

PARTS = (Part("one kind", 0), Part("another kind", 0), Part("one kind", 1))


def succeeding(parts: Sequence[Part]) -> Iterator[Outcome]:
    for part in parts:
        reach = {"examples": 50, "steps": 1000, "write": 900, "write, done": 800, "writes avoided": 7}
        yield Outcome(part.configuration, part.number, seed_of(part), reach, 1.5, None)


def failing(parts: Sequence[Part]) -> Iterator[Outcome]:
    for part in parts:
        yield Outcome(part.configuration, part.number, seed_of(part), {"examples": 3}, 1.5, "I1, a row is lost")


def test_a_campaign_reports_what_it_reached_of_each_kind(tmp_path: Path) -> None:
    out = StringIO()
    assert run_campaign(tmp_path / "tally", PARTS, succeeding, out)
    assert [line.split() for line in out.getvalue().splitlines() if line.startswith(("one kind ", "all"))] == [
        ["one", "kind", "100", "2000", "1800", "0", "0", "0", "0", "0", "0"],
        ["all", "150", "3000", "2700", "0", "0", "0", "0", "0", "0"],
    ]


def test_a_campaign_continues_after_the_last_complete_line(tmp_path: Path) -> None:
    tally = tmp_path / "tally"
    run_campaign(tally, PARTS[:2], succeeding, StringIO())
    with tally.open("a") as lines:
        lines.write('{"configuration": "one ki')
    asked: list[Part] = []

    def run(parts: Sequence[Part]) -> Iterator[Outcome]:
        asked.extend(parts)
        return succeeding(parts)

    assert run_campaign(tally, PARTS, run, StringIO())
    assert asked == [PARTS[2]]
    assert [outcome.part for outcome in outcomes(tally)] == list(PARTS)


def test_a_broken_invariant_stays_broken_when_a_campaign_continues(tmp_path: Path) -> None:
    tally = tmp_path / "tally"
    assert not run_campaign(tally, PARTS[:1], failing, StringIO())
    assert not run_campaign(tally, PARTS, succeeding, StringIO())
    assert [outcome.failure for outcome in outcomes(tally)] == ["I1, a row is lost", None, None]


def test_parts_are_not_the_same_examples() -> None:
    assert len({seed_of(part) for part in PARTS}) == len(PARTS)


def test_a_campaign_without_a_file_explains_how_to_start_it() -> None:
    assert main([]) == 2

"""A dead writer isn't taken for a write that completed and lost its completed file."""

from eventide.testing.crash_enumeration import Bench, Moment
from eventide_core.action.verification.lost_completions import lost_completions
from eventide_core.ports import NoProgress


def check_no_lost_completion(bench: Bench, moment: Moment) -> None:
    bench.load(moment)
    facts, _ = bench.process().verifier.examine(is_deep=True, progress=NoProgress())
    found = lost_completions(facts)
    assert not found, f"false alarms: {found}"

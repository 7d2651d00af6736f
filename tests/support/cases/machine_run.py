"""Runs the state machine over some kinds of tables, and reports what it reached."""

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest
from _pytest.mark import ParameterSet

from eventide.testing.campaign import run_examples
from eventide.testing.state_machine import Configuration
from eventide_adapters.format.encoding.parquet import open_file
from eventide_adapters.format.encoding.parquet.dictionary_columns import small_dictionary_columns
from support.run.campaign import IS_REPEATED, tries
from support.run.reach import reached

EXAMPLES = tries(test=6, proof=50)

# The minimum average reach of an example. A generator that reaches less finds less.
FLOORS = {
    "execute, done": 0.5,
    "crashes": 0.5,
    "clean, done": 0.2,
    "plans with left-overs": 0.3,
    "plans with carried deletes": 0.01,
    "plans beside open writes": 0.1,
    "executed beside open writes": 0.01,
    "end write, done": 0.3,
    "roll back plan, done": 0.02,
    "execute as stock, done": 0.02,
    "completed actions undone": 0.1,
    "restore, done": 0.02,
    "archive, done": 0.1,
    "pauses": 0.2,
    "statements": 1.0,
}


def params_of(kinds: Sequence[Configuration]) -> list[ParameterSet]:
    """Two of sixteen kinds of tables by default, with and without dictionary-encoded strings; the next two are broad."""
    marks: tuple[tuple[pytest.MarkDecorator, ...], ...] = ((), (pytest.mark.broad,), (pytest.mark.proof,))
    return [pytest.param(kind, id=str(kind), marks=marks[min(number // 2 % 8, 2)]) for number, kind in enumerate(kinds)]


@dataclass(slots=True)
class MachineRun:
    kinds: tuple[Configuration, ...]
    reach: Counter[str] = field(default_factory=Counter[str])

    def of(self, configuration: Configuration) -> None:
        """Its examples of twenty steps: the same ones in each run, others in a campaign that is longer than a proof.

        For every other kind of table, strings stay dictionary-encoded wherever a base file has a dictionary.
        """
        seeded = zlib.crc32(str(configuration).encode()) if IS_REPEATED else None
        with pytest.MonkeyPatch.context() as patch:
            if self.kinds.index(configuration) % 2:
                encoded = partial(small_dictionary_columns, rows_min=1, value_bytes_max=1 << 20)
                patch.setattr(open_file, "small_dictionary_columns", encoded)
            # Shrinking an example takes minutes, so it is only done in longer campaigns.
            run_examples(configuration, self.reach, EXAMPLES, seeded, shrinks=not IS_REPEATED)

    def tell(self) -> None:
        """Fails if too little was reached for a proof."""
        for what, count in self.reach.items():
            reached(f"state machine: {what}", count)
        examples = self.reach["examples"]
        if examples < len(self.kinds):
            pytest.skip("not every configuration was run")
        missed = {
            what: self.reach[what] / examples
            for what, floor in FLOORS.items()
            # A few examples need not reach what is rare.
            if self.reach[what] < int(floor * examples)
        }
        assert not missed, f"reached only {missed} an example, of {FLOORS}"

"""The mutants: known errors, each enabled by a patch of the code under test, with the steps that reveal it.

The numbers are from docs/kit.md. `is_wrong` applies the patch. `happens` runs a short history with a kit
that checks every invariant at each step. Without the patch, nothing is found; with it, something is.
"""

from support.mutants import left_overs, merging, open_writes, queries, quiet_moments
from support.mutants.mutant import Mutant

MUTANTS: tuple[Mutant, ...] = (
    *merging.MUTANTS,
    *left_overs.MUTANTS,
    *queries.MUTANTS,
    *open_writes.MUTANTS,
    *quiet_moments.MUTANTS,
)

"""Whether a table keeps its promises: gathers what is known of it, and lets each named check look at that. Writes nothing.

A damaged table is an answer. What raises is a table that cannot be opened at all, and a storage or an engine that fails.
A table that changed meanwhile is looked at again where something was found: what a reader of two moments sees may fit
neither.
"""

from dataclasses import dataclass

from eventide_core.action.verification.checks import verify
from eventide_core.action.verification.result import Verification
from eventide_core.ports import Progress
from eventide_core.service.state.table_files import TableFiles
from eventide_core.service.verification.facts import FactsReader
from eventide_core.service.verification.records import RecordsReader

_LOOKS_MAX = 3


@dataclass(frozen=True, slots=True)
class Verifier:
    files: TableFiles
    facts: FactsReader
    records: RecordsReader

    def verify(self, *, is_deep: bool, progress: Progress) -> Verification:
        """What each check found. `is_deep`: reads every record of the latest slices, and of compacted ones."""
        for _ in range(_LOOKS_MAX - 1):
            found, names = self._look(is_deep, progress)
            if found.ok or self.facts.timeline_names(self.files.config()) == names:
                return found
        return self._look(is_deep, progress)[0]

    def _look(self, is_deep: bool, progress: Progress) -> tuple[Verification, tuple[str, ...]]:
        gathered = self.facts.gather(is_deep=is_deep)
        facts = gathered.facts
        if is_deep and gathered.state is not None:
            facts = self.records.read(facts, gathered.state, gathered.shape, progress)
        return verify(facts), facts.timeline_names

"""Verifies a table: gathers the facts, and runs each named check over them. Writes nothing.

Damage is a result and no error. A table that cannot be opened at all raises one, and so does a storage or an engine that
fails.

A table that changed meanwhile is read again if something was found: files that were read at two times may fit neither
state. A clean that is pending removes files while the timeline stands still, so files that disappeared are a change, too.
"""

from dataclasses import dataclass

from eventide_core.action.verification.checks import verify
from eventide_core.action.verification.facts import TableFacts
from eventide_core.action.verification.result import Verification
from eventide_core.errors import BusyError
from eventide_core.ports import Progress
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.verification.facts import FactsReader
from eventide_core.service.verification.records import RecordsReader
from eventide_core.service.verification.timeline import timeline_names

_LOOKS_MAX = 5


@dataclass(frozen=True, slots=True)
class Verifier:
    files: TableFiles
    facts: FactsReader
    records: RecordsReader

    def verify(self, *, is_deep: bool, progress: Progress) -> Verification:
        """What each check found. `is_deep`: reads every record of the latest slices, and of compacted ones.

        Raises BusyError if files disappeared during each attempt: that could be damage, or the work of a cleaner.
        """
        return self.examine(is_deep=is_deep, progress=progress)[1]

    def examine(self, *, is_deep: bool, progress: Progress) -> tuple[TableFacts, Verification]:
        """The facts of the table, and what each check found in them. Raises as `verify`."""
        for look in range(1, _LOOKS_MAX + 1):
            gathered = self.facts.gather(is_deep=is_deep)
            facts = gathered.facts
            if is_deep and gathered.state is not None:
                facts = self.records.read(facts, gathered.state, gathered.shape, progress)
            verification = verify(facts)
            if verification.ok:
                return facts, verification
            gone = self.facts.gone_since(gathered)
            if gone and look == _LOOKS_MAX:
                raise BusyError(
                    f"{self.files.storage.root}: files disappeared in each of {look} passes, {gone[0]} in the last "
                    "one: a cleaner or a rollback is running; verify again when it has completed"
                )
            names = timeline_names(self.files.storage, self.files.config())
            if look == _LOOKS_MAX or not (gone or names != gathered.facts.timeline_names):
                return facts, verification
        raise AssertionError("the last look returns or raises")

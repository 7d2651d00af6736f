"""The use cases that verify a table and repair it."""

from functools import cached_property
from typing import TYPE_CHECKING

from eventide.bootstrap.writing import WritingCases

if TYPE_CHECKING:
    from eventide_core.service.repair.lost_keys import LostKeysReader
    from eventide_core.service.repair.lost_settings import SettingsRecovery
    from eventide_core.service.repair.repair import Repairer
    from eventide_core.service.verification.verify import Verifier


class RepairCases(WritingCases):
    @cached_property
    def verifier(self) -> "Verifier":
        from eventide_core.service.verification.facts import FactsReader
        from eventide_core.service.verification.records import RecordsReader
        from eventide_core.service.verification.verify import Verifier

        facts = FactsReader(self.files, self.freshness, self._content_audit, self.engine, self._liveness, self.options)
        return Verifier(self.files, facts, RecordsReader(self._content_audit, self.engine))

    @cached_property
    def repairer(self) -> "Repairer":
        from eventide_core.service.repair.repair import Repairer

        return Repairer(
            self.files, self.verifier, self._content_audit, self.runner, self.metadata_rebuilder, self._lock, self.clock
        )

    @cached_property
    def lost_keys(self) -> "LostKeysReader":
        from eventide_core.service.repair.lost_keys import LostKeysReader

        return LostKeysReader(self.verifier, self._content_audit, self.metadata, self.engine)

    @cached_property
    def settings_recovery(self) -> "SettingsRecovery":
        from eventide_core.service.repair.lost_settings import SettingsRecovery

        return SettingsRecovery(self.files, self._lock, self.clock)

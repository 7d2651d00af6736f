"""The use cases that write rows: appends, changes of the schema, and compactions."""

import time
from functools import cached_property
from typing import TYPE_CHECKING

from eventide.bootstrap.maintaining import MaintenanceCases
from eventide_adapters.format.slice.merge.record_mergers import check_merger

if TYPE_CHECKING:
    from eventide_core.service.compaction.pending import PendingCompactions
    from eventide_core.service.compaction.run import CompactionRunner
    from eventide_core.service.compaction.scheduling.schedule import CompactionScheduler
    from eventide_core.service.compaction.scheduling.slice_facts import SliceFactsReader
    from eventide_core.service.compaction.scheduling.split_judge import SplitJudge
    from eventide_core.service.write.alter import Alter
    from eventide_core.service.write.append import Append


class WritingCases(MaintenanceCases):
    @cached_property
    def append(self) -> "Append":
        from eventide_core.service.write.append import Append
        from eventide_core.service.write.instants import WriteInstants

        instants = WriteInstants(self.files, self.metadata, self.rollback, self._lock, self._liveness, self.options)
        return Append(self.files, self.metadata, instants, self.options, self.new_uuid)

    @cached_property
    def alter(self) -> "Alter":
        from eventide_core.service.write.alter import Alter

        return Alter(self.append)

    @cached_property
    def scheduler(self) -> "CompactionScheduler":
        from eventide_core.service.compaction.scheduling.draft import CompactionDrafter
        from eventide_core.service.compaction.scheduling.schedule import CompactionScheduler
        from eventide_core.service.compaction.scheduling.settings import CompactionSettings

        settings = CompactionSettings.of(self.options)
        drafter = CompactionDrafter(
            self.files,
            self._splits,
            self._slice_facts,
            self.freshness,
            self.arrival,
            self.metadata,
            self.exact_views,
            self.options,
            settings,
        )
        return CompactionScheduler(self.files, drafter, check_merger, self.engine, self._lock, settings)

    @cached_property
    def runner(self) -> "CompactionRunner":
        from eventide_adapters.format.slice.merge.slice_merger import ArrowSliceMerger
        from eventide_core.service.common.state.ownership import Ownership
        from eventide_core.service.compaction.compact_slice import SliceCompactor
        from eventide_core.service.compaction.run import CompactionRunner
        from eventide_core.service.compaction.run_foreign import ForeignCompactionRunner
        from eventide_core.service.compaction.scheduling.replan import Replanner

        compact_slice = SliceCompactor(self.storage, ArrowSliceMerger(self.storage), time.time_ns)
        settings = self.scheduler.settings
        return CompactionRunner(
            self.files,
            self.scheduler,
            Replanner(self._slice_facts, self._splits),
            self.freshness,
            self.metadata,
            compact_slice,
            ForeignCompactionRunner(self.files, self.metadata, compact_slice, self.engine, self._lock, settings),
            self.engine,
            Ownership(self._lock, self._liveness),
            self._lock,
            settings,
        )

    @cached_property
    def pending(self) -> "PendingCompactions":
        from eventide_core.service.compaction.pending import PendingCompactions

        return PendingCompactions(self.files, self.runner, self.rollback, self.scheduler.settings)

    @cached_property
    def _slice_facts(self) -> "SliceFactsReader":
        from eventide_core.service.compaction.scheduling.slice_facts import SliceFactsReader

        return SliceFactsReader(self._log_facts, self.options)

    @cached_property
    def _splits(self) -> "SplitJudge":
        from eventide_core.service.compaction.scheduling.split_judge import SplitJudge

        return SplitJudge(self._log_content, self.engine)

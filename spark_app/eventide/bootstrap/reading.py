"""The use cases that read a table: queries, windows, freshness and arrival."""

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from eventide.bootstrap.foundation import Foundation
from eventide.engine_local import LocalEngine, RequestEngine
from eventide_adapters.storage.secret_texts import secrets_in
from eventide_core.config import Options
from eventide_core.service.common.state.table import TableState

if TYPE_CHECKING:
    from eventide_core.ports import ArrivalSource, CountRows, MarkerTarget
    from eventide_core.service.common.facts.arrival import ArrivalReader
    from eventide_core.service.common.facts.exact_view import ExactViews
    from eventide_core.service.common.facts.freshness import FreshnessReader
    from eventide_core.service.common.facts.log_facts import LogFactsReader
    from eventide_core.service.maintenance.declared_sources import SourceDeclarations
    from eventide_core.service.query.done_markers import DoneMarkers
    from eventide_core.service.query.offending_records import OffendingRecordsReader
    from eventide_core.service.query.read import QueryService
    from eventide_core.service.query.record_index_lookup import RecordIndexLookup
    from eventide_core.service.query.windows import WindowService
    from eventide_core.table.settings.declared_sources import DeclaredSource


class ReadingCases(Foundation):
    @cached_property
    def freshness(self) -> "FreshnessReader":
        from eventide_core.service.common.facts.freshness import FreshnessReader

        return FreshnessReader(self._log_facts, self.options)

    @cached_property
    def exact_views(self) -> "ExactViews":
        from eventide_core.service.common.facts.exact_view import ExactViews

        return ExactViews(lambda: self.bases, self._log_facts.request_engine)

    @cached_property
    def arrival(self) -> "ArrivalReader":
        from eventide_core.service.common.facts.arrival import ArrivalReader

        return ArrivalReader(self.files, self.options, partial(_open_source, self.options), self._counts_of)

    def _counts_of(self, state: TableState, instant: str | None) -> "CountRows":
        def count(spans: "Sequence[tuple[int, int]]") -> "Sequence[int]":
            from eventide_adapters.format.slice.comparison.window_content import ArrowWindowContent
            from eventide_core.service.common.facts.event_time_field import event_time_field_of
            from eventide_core.service.query.read import QueryService

            queries, field = QueryService(self.files, state), event_time_field_of(state, self.options)
            plan = queries.snapshot() if instant is None else queries.as_of(instant)
            return ArrowWindowContent(self.storage).counts(plan.slices, plan.shape, field, spans, self.engine)

        return count

    @cached_property
    def queries(self) -> "QueryService":
        from eventide_core.service.query.read import QueryService

        return QueryService(self.files)

    @cached_property
    def key_lookup(self) -> "RecordIndexLookup":
        from eventide_core.service.query.record_index_lookup import RecordIndexLookup

        return RecordIndexLookup(self.files, self.options)

    def windows(self, runner: str) -> "WindowService":
        """The windows of the table's consumers, for a runner of that name."""
        from eventide_adapters.format.slice.comparison.window_content import ArrowWindowContent
        from eventide_core.service.query.windows import WindowService

        return WindowService(
            self.files, lambda: ArrowWindowContent(self.storage), self.engine, self.options, self.arrival, runner
        )

    def done_markers(self, target: "MarkerTarget") -> "DoneMarkers":
        """What sends the target the windows that are done."""
        from eventide_adapters.format.slice.comparison.window_content import ArrowWindowContent
        from eventide_core.service.query.done_markers import DoneMarkers

        content = partial(ArrowWindowContent, self.storage)
        return DoneMarkers(
            self.files, content, self.engine, self.options, self.arrival, self._uuid, self.freshness, target
        )

    @cached_property
    def offending(self) -> "OffendingRecordsReader":
        from eventide_core.service.query.offending_records import OffendingRecordsReader

        return OffendingRecordsReader(self.files, self._log_content, self.options)

    @cached_property
    def declared_sources(self) -> "SourceDeclarations":
        from eventide_core.service.maintenance.declared_sources import SourceDeclarations

        return SourceDeclarations(self.files, self._lock, partial(_open_source, self.options))

    @cached_property
    def _log_facts(self) -> "LogFactsReader":
        from eventide_core.service.common.facts.log_facts import LogFactsReader

        engine = self.engine
        request_engine = RequestEngine(engine.threads) if isinstance(engine, LocalEngine) else engine
        return LogFactsReader(self._log_content, engine, request_engine)


def _open_source(options: Options, source: "DeclaredSource") -> "ArrivalSource":
    from eventide.formatting import MaskedSource, masking
    from eventide_adapters.arrival.open import open_source

    secrets = secrets_in({**options.values, **source.settings}.items())
    with masking(secrets):
        return MaskedSource(open_source(source, options), secrets)

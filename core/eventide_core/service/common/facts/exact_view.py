"""Whether a read-optimized view is exact at T: no base file of it holds an event time at or after T.

The footers of the base files show it, whichever engine wrote them. A base file holds later records if a cut by whole log
files merged them, if an exact cut compacted its slice in full, or if a writer put them there. No compaction takes them out
again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eventide_core.action.freshness.freshness import Freshness
from eventide_core.errors import NoExactCutError, format_timestamp
from eventide_core.ports import BaseContent, Engine
from eventide_core.service.common.facts.watermark_views import published_views
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.timeline.contents.plans import CutMode


@dataclass(frozen=True, slots=True)
class Exactness:
    """How a view relates to T, `threshold_ms`. Times are in epoch milliseconds, paths relative to the table's root.

    `latest_ms` is the latest event time in its base files, `latest_path` the file that holds it; both None if no footer
    states one. `silent_path` is a base file whose footer doesn't state its event times, if there is one.
    """

    threshold_ms: int
    latest_ms: int | None
    latest_path: str | None
    silent_path: str | None

    @property
    def is_exact(self) -> bool | None:
        """None if the footers don't show it."""
        if self.latest_ms is not None and self.latest_ms >= self.threshold_ms:
            return False
        return True if self.silent_path is None else None

    def __str__(self) -> str:
        asked = format_timestamp(self.threshold_ms)
        match self.is_exact:
            case True:
                return f"the view is exact at {asked}"
            case False:
                return f"the view is not exact at {asked}: {self.latest_path} holds {format_timestamp(self.latest_ms)}"
            case None:
                footer = f"the footer of {self.silent_path} doesn't state its event times"
                return f"whether the view is exact at {asked} is unknown: {footer}"


@dataclass(frozen=True, slots=True)
class ExactViews:
    """`bases` opens what reads footers, which imports a library that most plans do without."""

    bases: Callable[[], BaseContent]
    engine: Engine

    def now(self, state: TableState, field: str, threshold_ms: int) -> Exactness:
        """Whether the read-optimized view, as it is now, is exact at T. Reads one footer for each file group."""
        return self.of(state.view.latest_base_files(), state.shape(field), threshold_ms)

    def with_exactness(self, state: TableState, fresh: Freshness) -> Freshness:
        """The freshness of that state. After an exact cut, `is_exact` states whether the view is exact there."""
        is_asked = state.published_cut.cut_mode is CutMode.EXACT and state.cut_ms == fresh.cut_ms
        if state.cut_ms is None or state.published_cut.event_time_field is None or not is_asked:
            return fresh
        return replace(fresh, is_exact=self.now(state, state.published_cut.event_time_field, state.cut_ms).is_exact)

    def of(self, slices: Sequence[FileSlice], shape: RecordShape, threshold_ms: int) -> Exactness:
        paths = [file_slice.base_file.path for file_slice in slices if file_slice.base_file is not None]
        ranges = self.engine.map(partial(self.bases().event_times, shape=shape), paths) if paths else []
        latest: tuple[int, str] | None = None
        silent: str | None = None
        for path, times in zip(paths, ranges, strict=True):
            if times is None:
                silent = silent or path
            elif times.max_ms is not None and (latest is None or times.max_ms > latest[0]):
                latest = times.max_ms, path
        latest_ms, latest_path = latest or (None, None)
        return Exactness(threshold_ms, latest_ms, latest_path, silent)

    def check_reached(self, state: TableState, field: str, threshold_ms: int) -> Exactness:
        """What the view is at a T that the published cut has reached. Raises NoExactCutError.

        If the cut at T was an exact one from the beginning, all that a compaction can do has been done, whatever the base
        files hold besides.
        """
        exactness = self.now(state, field, threshold_ms)
        first = next((view for view in published_views(state) if view.cut_ms == threshold_ms), None)
        if first is not None:
            was_exact = state.publications[first.compaction.requested_time].cut_mode is CutMode.EXACT
        else:  # it may be archived
            was_exact = state.cut_ms == threshold_ms and state.published_cut.cut_mode is CutMode.EXACT
        if exactness.is_exact is not True and not was_exact:
            raise NoExactCutError(
                f"no exact cut at {format_timestamp(threshold_ms)}: the published cut is there or later, {exactness}, and "
                "no compaction takes records out of a base file; use a later T, or restore the table to before the "
                "compaction that merged them"
            )
        return exactness

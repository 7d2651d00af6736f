"""The views of the read-optimized table that compactions left, and which of them can still be read."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from eventide_core.action.freshness.watermark_view import PublishedView, views_that_answer
from eventide_core.errors import CleanedHistoryError, WatermarkNotFoundError, format_timestamp
from eventide_core.service.common.facts.history import check_history_when
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_name import BaseFileName
from eventide_core.table.files.file_slice import FileSlice
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.instant import Action, Instant

_NAMED = 10  # the number of watermarks that an error names


def view_as_of_watermark(
    state: TableState, threshold_ms: int, *, compaction: str | None = None, is_newest: bool = False
) -> PublishedView:
    """The view that answers T: the one that `compaction` left, if it is given, or of several the first or the newest.

    Raises WatermarkNotFoundError if none was published, CleanedHistoryError if its files are gone.
    """
    active = published_views(state)
    answering = views_that_answer(active, threshold_ms)
    if all(
        view.cut_ms >= threshold_ms for view in active
    ):  # only then may an archived view contain fewer newer records
        answering = views_that_answer((*active, *_archived_views(state, threshold_ms)), threshold_ms)
    for view in reversed(answering) if is_newest else answering:
        if compaction in (None, view.compaction.requested_time) and _is_readable(state, view):
            return view
    known = [view for view in active if _is_readable(state, view)]
    asked = format_timestamp(threshold_ms)
    named = [f"{format_timestamp(view.watermark_ms)} (at {view.compaction.requested_time})" for view in known[-_NAMED:]]
    readable = ", ".join(named) or "none"
    if not answering:
        raise WatermarkNotFoundError(
            f"no compaction has published a watermark of {asked} or later; watermarks that can be read: {readable}"
        )
    gone = answering[-1]
    raise CleanedHistoryError(
        f"the view as of watermark {asked} was left by the compaction at "
        f"{gone.compaction.requested_time} (cut {format_timestamp(gone.cut_ms)}), whose files were "
        f"cleaned; watermarks that can be read: {readable}; a tag keeps a view"
    )


def readable_views(state: TableState) -> tuple[PublishedView, ...]:
    """The views of the active timeline's compactions whose files all exist, by completion."""
    return tuple(view for view in published_views(state) if _is_readable(state, view))


def latest_readable_view(state: TableState) -> PublishedView | None:
    """The last completed of them."""
    return next((view for view in reversed(published_views(state)) if _is_readable(state, view)), None)


def published_views(state: TableState) -> tuple[PublishedView, ...]:
    """The views of the active timeline's compactions, by completion."""
    publications = state.publications
    return _views(
        (i, publications[i.requested_time]) for i in state.timeline.writes if i.requested_time in publications
    )


def base_files_of(state: TableState, view: PublishedView) -> tuple[FileSlice, ...]:
    """The base files that a read-optimized query saw when the compaction had completed, one a file group."""
    is_shown = _had_completed(state, view.compaction)
    bases = (file for file in state.listing if (name := BaseFileName.parse(file.name)) and is_shown(name.instant))
    return state.view_of(bases, is_shown).latest_base_files()


def last_write_of(state: TableState, view: PublishedView) -> str:
    """The last requested of the writes that had completed when the compaction had: a savepoint of it keeps the view.

    The compaction itself, unless its base files are back-dated, or a write was open beside it.
    """
    is_shown = _had_completed(state, view.compaction)
    return max((i.requested_time for i in state.timeline.writes if is_shown(i.requested_time)), default="")


def _archived_views(state: TableState, threshold_ms: int) -> tuple[PublishedView, ...]:
    """The views of archived compactions with that cut or a later one; of earlier ones no more than has to be read."""

    def publications() -> Iterator[tuple[Instant, CompactionExtraMetadata]]:
        # An archived compaction that published a cut has left an outcome: see `settled_outcomes`.
        if not any(map(state.timeline.is_archived, state.ended)):
            return
        for write in state.archived_writes():
            if write.action is not Action.COMMIT:
                continue
            published = CompactionExtraMetadata.of(write.requested_time, state.commit(write))
            if published is None or published.cut_ms is None:
                continue
            yield write, published
            if published.cut_ms < threshold_ms:
                return

    return _views(publications())


def _views(publications: Iterable[tuple[Instant, CompactionExtraMetadata]]) -> tuple[PublishedView, ...]:
    views: list[PublishedView] = []
    for instant, published in publications:
        cut_ms, watermark_ms = published.cut_ms, published.watermark_ms
        if cut_ms is not None and watermark_ms is not None:
            views.append(PublishedView(instant, cut_ms, watermark_ms))
    return tuple(sorted(views, key=lambda view: view.completed))


def _is_readable(state: TableState, view: PublishedView) -> bool:
    if state.timeline.has_savepoint(last_write_of(state, view)):
        return True
    try:
        check_history_when(state, _had_completed(state, view.compaction), view.compaction.requested_time)
    except CleanedHistoryError:
        return False
    return True


def _had_completed(state: TableState, compaction: Instant) -> Callable[[str], bool]:
    """Whether the write of a requested time had completed when the compaction did.

    Version 6 records requested times alone; there no write requested before a compaction is pending when it is planned.
    """
    until = compaction.completion_time
    if until is None:
        return lambda time: time <= compaction.requested_time

    @cache
    def had_completed(time: str) -> bool:
        completion = state.timeline.completion_time(time)
        if completion is None and state.timeline.is_archived(time):
            archived = state.archive.find(time)
            # Instants older than the archive itself have ended.
            completion = "" if archived is None else archived.completion_time or time
        return completion is not None and completion <= until

    return had_completed

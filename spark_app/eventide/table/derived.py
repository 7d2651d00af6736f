"""What a derived table is made of: the notes that its commits record of its sources."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from eventide.bootstrap import Application, assemble
from eventide.catalog import located
from eventide.options.streams import SOURCES, STREAM_IDENTIFIER
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.config import SOURCE_SETTINGS
from eventide_core.errors import ConfigError, InvalidThresholdError, WindowTakenError
from eventide_core.service.common.facts.arrival import source_notes
from eventide_core.service.common.facts.watermark_views import published_views
from eventide_core.service.common.state.table import TableState
from eventide_core.service.compaction.result import CompactionResult
from eventide_core.table.records.event_time import Moment, parse_threshold
from eventide_core.table.settings.declared_sources import STATED, TABLE, declaration
from eventide_core.table.timeline.source_notes import SourceNote
from eventide_core.table.timeline.source_statements import STATEMENT_PREFIX

if TYPE_CHECKING:
    from eventide.table.window import Window
    from eventide_core.service.write.append import Append

_INSTANT_DIGITS: Final = (14, 17)

SourceState: TypeAlias = "Window | CompactionResult | Freshness"
"""How much of a source the records were made of: a window of it, a compaction of it, or its freshness before it was read."""


def _notes_of(
    application: Application, sources: "Iterable[tuple[Application, SourceState | SourceNote]]"
) -> tuple[SourceNote, ...]:
    """The notes for a write of the table, beside those that only its archived timeline still has.

    Raises ConfigError for what states nothing of how much of a source was read.
    """
    known = source_notes(application.files, TableState.load(application.files))
    earlier = {note.table: note for note in known}
    own_root = application.storage.root
    return (*known, *(_note(source, read, earlier, own_root) for source, read in sources))


def _notes_by_option(application: Application) -> tuple[SourceNote, ...]:
    """The notes for a write of the table, whose option `eventide.sources` says what its rows were made of; none without it.

    Raises ConfigError, also for a T that a source has not reached; WindowTakenError if the stream does not hold the window.
    """
    options = application.options
    text = options.text(SOURCES)
    if text is None:
        return ()
    wrong = ConfigError(f'option {SOURCES}={text!r} is not JSON of the form {{"/lake/trips": "2026-03-03T00:00Z"}}')
    try:
        states = json.loads(text)
    except (ValueError, RecursionError):
        raise wrong from None
    if not isinstance(states, dict) or not all(isinstance(state, str) for state in states.values()):
        raise wrong
    sources = [_stated(application, uri, state) for uri, state in states.items()]
    return _notes_of(application, sources)


def source_of(application: Application, uri: str) -> Application:
    """A table that the table is made of, whose root is what commits name it by. Raises NotAHudiTableError."""
    # Its sources have other settings than the table, but the storage's.
    options = application.options.values.items()
    shared = {key: value for key, value in options if not key.startswith(("hoodie.", "eventide."))}
    source = assemble(*located(uri, shared))
    source.files.config()
    return source


def append_of(application: Application) -> "Append":
    """The writes of the table, which note what its options say that the rows were made of. Raises as `_notes_by_option`."""
    return noting(application, application.append, None)


def noting(
    application: Application,
    append: "Append",
    sources: "Iterable[tuple[Application, SourceState]] | None",
    stated: Mapping[str, Moment] = MappingProxyType({}),
) -> "Append":
    """The write, whose commit notes what its rows were made of: `sources`, otherwise what the options say.

    `stated` is T of each other source; the options state more of them. Raises as `_notes_of` and `_notes_by_option`, and
    ConfigError or InvalidThresholdError for a name or a T that can't be right.
    """
    notes = _notes_by_option(application) if sources is None else _notes_of(application, sources)
    by_option = {
        key.removeprefix(STATEMENT_PREFIX).removesuffix(".watermark"): value
        for key, value in application.options.below(SOURCE_SETTINGS).items()
        if key.endswith(".watermark")
    }
    texts = {name: str(moment).strip() for name, moment in {**by_option, **stated}.items()}
    for name, text in texts.items():
        declaration(name, STATED, {})
        try:
            parse_threshold(text)
        except InvalidThresholdError:
            declared = application.arrival.declared(application.files.config()).get(name)
            if declared is None or declared.kind in ("", STATED, TABLE):
                raise  # other kinds have words of their own
    return replace(append, sources=notes, stated=texts) if notes or texts else append


def _stated(application: Application, uri: str, text: str) -> "tuple[Application, Window | SourceNote]":
    """A source, and how much of it was read, parsed from a text."""
    source = source_of(application, uri)
    kind, _, consumer = text.partition(":")
    if kind == "consumer":
        return source, _window_of(source, uri, consumer, application.options.get(STREAM_IDENTIFIER))
    root, is_instant = source.storage.root, text.isdecimal() and len(text) in _INSTANT_DIGITS
    threshold_ms = None if is_instant else parse_threshold(text)
    if threshold_ms is not None and source.state().config.is_copy_on_write:
        return source, SourceNote(root, None, threshold_ms)
    for view in published_views(source.state()):
        instant, watermark_ms = view.compaction.requested_time, view.watermark_ms
        if instant == text if threshold_ms is None else watermark_ms >= threshold_ms:
            reached_ms = watermark_ms if threshold_ms is None else threshold_ms
            return source, SourceNote(root, instant, _made_of(source, instant, reached_ms))
    what = f"a watermark at {text}" if is_instant else f"the watermark {text}, or a later one"
    raise ConfigError(f"option {SOURCES}: no compaction of {uri} has published {what}")


def _window_of(source: Application, uri: str, consumer: str, stream: str | None) -> "Window":
    # Imported here: most tables have no windows.
    from eventide.table.window import held_window

    if stream is None:
        raise ConfigError(
            f"option {SOURCES}: with consumer:{consumer}, set {STREAM_IDENTIFIER} to the same name for the stream of "
            "windows and for the write: it says which runner's window the rows are of"
        )
    window = held_window(source, consumer, stream)
    if window is None:
        raise WindowTakenError(
            f"the stream {stream} holds no window of the consumer {consumer} of {uri}, so nothing says what these "
            "rows were made of; nothing was written"
        )
    return window


def _note(
    source: Application, read: "SourceState | SourceNote", earlier: Mapping[str, SourceNote], own_root: str
) -> SourceNote:
    root = source.storage.root
    if root == own_root:
        raise ConfigError(f"sources: {root} is the table itself: name the tables that its records were made of")
    if isinstance(read, SourceNote):
        return read
    if isinstance(read, Freshness):
        return SourceNote(root, None, read.watermark_ms, read.is_complete)
    if isinstance(read, CompactionResult):
        fresh = read.freshness
        return SourceNote(root, read.instant, _made_of(source, read.instant, fresh.watermark_ms), fresh.is_complete)
    # Imported here: most tables have no windows.
    from eventide.table.window import Window

    given: object = read
    if not isinstance(given, Window):
        raise ConfigError(
            f"sources: a {type(given).__name__} does not say how much of {root} was read: pass its window, the result of "
            "its compaction, or its freshness from before it was read"
        )
    if given.root != root:
        raise ConfigError(f"sources: the window {given} is of {given.root}, not of {root}")
    if given.is_correction and root in earlier:
        # A correction is of a window before those that were done since.
        return replace(earlier[root], instant=given.instant, noted_at="")
    return SourceNote(root, given.instant, _made_of(source, given.instant, given.end_ms))


def _made_of(source: Application, instant: str, watermark_ms: int | None) -> int | None:
    """The lower of a watermark and of what the source itself was made of, in the view of the compaction at `instant`."""
    return source.arrival.watermark(source.state(), instant, watermark_ms)

"""How far the sources of a table have come, by its active timeline, or by the archived one if other engines wrote all of it.

A marker states that commits of a table name sources: without it, no archived commit is read.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from eventide_core.access.files import is_marked
from eventide_core.action.freshness.arrival import held, with_arrival
from eventide_core.action.freshness.freshness import Freshness
from eventide_core.action.freshness.watermark_view import PublishedView
from eventide_core.config import IDLE_SOURCES, Options, duration_of
from eventide_core.errors import EventideError
from eventide_core.ports import ArrivalSource, CountRows, SourceQuestion, StatedCommit
from eventide_core.service.common.facts.moments import epoch_ms_of
from eventide_core.service.common.state.said_of_sources import Said
from eventide_core.service.common.state.table import TableState
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.table.files.own_file import encoded_own
from eventide_core.table.settings.declared_sources import IDLE, STATED, TABLE, DeclaredSource, sources_for
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import END_OF_TIME
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.instant import Instant
from eventide_core.table.timeline.source_notes import SOURCE_PREFIX, SourceNote, latest_notes, notes_in
from eventide_core.table.timeline.source_progress import SourceProgress
from eventide_core.table.timeline.source_statements import (
    STATEMENT_PREFIX,
    Statement,
    is_repeated,
    last_statements,
    stated,
    statements_in,
)

_MARKER = ".hoodie/.aux/eventide/derived"
_NOT_READ = "no commit says how much of it was read"
_READ_IT = "write with sources= of that table"


@dataclass(frozen=True, slots=True)
class ArrivalReader:
    """What vouches for a table. `open_source` opens a declared source that is neither stated by commits nor a table.

    `count_rows` counts rows of the table's state, as of the requested time of a write, or of all writes without one.
    """

    files: TableFiles
    options: Options
    open_source: Callable[[DeclaredSource], ArrivalSource]
    count_rows: Callable[[TableState, str | None], CountRows]

    def freshness(self, state: TableState, own: Freshness) -> Freshness:
        """The lower of the table's own freshness and of how far its sources have come."""
        return with_arrival(own, self.progress(state))

    def watermark(self, state: TableState, instant: str, watermark_ms: int | None) -> int | None:
        """The lower of a view's watermark and of how far the sources had come when its compaction began, at `instant`.

        None if a source had not said so by then.
        """
        return held(watermark_ms, self.progress(state, before=instant))

    def had_come(self, state: TableState, view: PublishedView, threshold_ms: int) -> bool:
        """Whether everything before T had come, by the table's files and its sources, when a view was made."""
        watermark_ms = self.watermark(state, view.compaction.requested_time, view.watermark_ms)
        return watermark_ms is not None and watermark_ms >= threshold_ms

    def progress(self, state: TableState, *, before: str = "") -> tuple[SourceProgress, ...]:
        """How far each source has come, by the writes before an instant, if one is given. Raises CorruptTimelineError.

        What has been said by now is needed: a source that had not spoken before that instant has no progress then.
        """
        said = said_of(self.files, state)
        then = state.said_of_sources(before) if before else said
        return (*_of_tables(said, then), *self._of_others(state, said, then, before))

    def declared(self, config: TableConfig) -> dict[str, DeclaredSource]:
        """The sources that the settings of the table and the options declare, by name. Raises ConfigError."""
        return sources_for(config.properties, self.options.values)

    def _of_others(self, state: TableState, said: Said, then: Said, before: str) -> Iterator[SourceProgress]:
        now_ms = self.files.clock.now_ms()
        declared = self.declared(state.config)
        silent_until_ms = now_ms
        if before:  # a source may have spoken since
            silent_until_ms = min(now_ms, self._epoch_ms(state, before))
        for name in sorted({*said.by_name, *declared}):
            source = declared.get(name, DeclaredSource(name))
            if not source.is_declared and source.counts(said.by_name.get(name)) is None:
                continue
            statement = source.counts(then.by_name.get(name))
            if source.kind in ("", STATED):
                progress = _of_statement(name, statement, self._moment_ms(state, statement))
            elif source.kind != TABLE:
                progress = self._asked(source, self._question(state, source, statement, now_ms, before))
            elif (uri := source.settings.get(TABLE, "")) in (named := [note.table for note in said.notes]):
                continue
            else:
                others = f"; commits name {', '.join(named)}" if named else ""
                progress = _never(name, TABLE, f"no commit says how much of {uri or 'it'} was read{others}", _READ_IT)
            yield progress.going_on(
                silent_until_ms, 1000 * (idle_seconds(source) or self.options.get(IDLE_SOURCES) or 0)
            )

    def _asked(self, source: DeclaredSource, question: SourceQuestion) -> SourceProgress:
        """What the source says. One that fails as it is asked has no progress: the gate says no, and why."""
        opened = self.open_source(source)
        try:
            return opened.progress(question)
        except EventideError:
            raise
        except Exception as failure:  # of the code of others; its text may hold a secret
            return _never(
                source.name, source.kind, f"it cannot be asked: {type(failure).__name__}", "look at the source"
            )

    def _moment_ms(self, state: TableState, statement: Statement | None) -> int | None:
        write = None if statement is None else state.find_write(statement.stated_at)
        return None if write is None else self._completed_ms(state, write)

    def _question(
        self, state: TableState, source: DeclaredSource, statement: Statement | None, now_ms: int, before: str
    ) -> SourceQuestion:
        """The writes that completed before an instant, if one is given, and not before the source was forgotten.

        A statement outlives its commit: it stands for that.
        """
        completed = {write: write.completion_time or write.requested_time for write in state.timeline.writes}
        asked = {write for write in completed if not before or completed[write] < before}
        commits = [
            StatedCommit(
                write.requested_time,
                self._completed_ms(state, write),
                state.commits[write.requested_time].extra_metadata,
            )
            for write in sorted(asked, key=lambda write: completed[write], reverse=True)
            if write.requested_time > source.forgotten_at
        ]
        moment_ms = self._moment_ms(state, statement)
        if statement is not None and moment_ms is not None and state.timeline.is_archived(statement.stated_at):
            texts = stated({statement.name: statement.text})
            commits.append(StatedCommit(statement.stated_at, moment_ms, texts))
        until: str | None = None
        if before:  # rows are counted as of an instant: before all writes that completed later
            later = min((write.requested_time for write in completed.keys() - asked), default=END_OF_TIME)
            until = max((write.requested_time for write in asked if write.requested_time < later), default="")
        as_of_ms = partial(self._epoch_ms, state, before) if before else partial(self._current_until_ms, state)
        return SourceQuestion(tuple(commits), now_ms, self.count_rows(state, until), as_of_ms)

    def _current_until_ms(self, state: TableState) -> int:
        """Now; or when the last of the state's writes had completed, if others have since."""
        now_ms = self.files.clock.now_ms()
        known = {write.requested_time for write in state.timeline.writes}
        if all(write.requested_time in known for write in self.files.timeline(state.config).writes):
            return now_ms
        return max((self._completed_ms(state, write) for write in state.timeline.writes), default=0)

    def _completed_ms(self, state: TableState, write: Instant) -> int:
        put_ms = state.timeline.put_ms.get(write.requested_time)
        if put_ms is not None:
            return put_ms
        return self._epoch_ms(state, write.completion_time or write.requested_time)

    def _epoch_ms(self, state: TableState, instant: str) -> int:
        return epoch_ms_of(state.config, state.timeline, instant, self.files.clock)


def idle_seconds(source: DeclaredSource) -> int | None:
    """How long the silence of a source counts as progress; None if the table doesn't say. Raises ConfigError."""
    text = source.settings.get(IDLE)
    return None if text is None else duration_of(text, f"source {source.name}: {IDLE}=")


def mark_sources(files: TableFiles, extra_metadata: Iterable[str]) -> bool:
    """States that commits of the table name sources, if one with these keys of extra metadata does. Whether it does.

    Call it before the first commit of eventide that does, and before one is archived.
    """
    if not any(key.startswith((SOURCE_PREFIX, STATEMENT_PREFIX)) for key in extra_metadata):
        return False
    if not is_marked(files.storage, _MARKER):
        files.storage.put_if_absent(_MARKER, encoded_own({}))
    return True


def to_repeat(files: TableFiles, state: TableState) -> Said:
    """What a later commit repeats: all that is known, if there is any. Raises CorruptTimelineError.

    A commit that repeats nothing hides nothing that is archived.
    """
    said = state.said_of_sources()
    return said_of(files, state) if said.notes or said.statements else said


def source_notes(files: TableFiles, state: TableState) -> tuple[SourceNote, ...]:
    """The last note of each table that this one was made of; none if it is not derived. Raises CorruptTimelineError."""
    return said_of(files, state).notes


def said_of(files: TableFiles, state: TableState) -> Said:
    """What the commits say, archived ones included where no active one repeats it. Raises CorruptTimelineError."""
    said = state.said_of_sources()
    if any(map(_repeats_what_was_said, state.commits.values())) or not is_marked(files.storage, _MARKER):
        return said
    earlier_notes, earlier, completed, repeated_at = list[SourceNote](), list[Statement](), dict[str, str](), ""
    for write in state.archived_writes():
        completion = write.completion_time or write.requested_time
        if completion < repeated_at:
            if write.completion_time is None:
                break  # below version 8, as are all before it
            continue
        commit, completed[write.requested_time] = state.commit(write), completion
        earlier_notes += notes_in(commit.extra_metadata)
        earlier += statements_in(write.requested_time, commit.extra_metadata)
        if _repeats_what_was_said(commit):
            repeated_at = max(repeated_at, write.requested_time)  # what completed before it
    older = last_statements((one for one in earlier if one.name not in said.by_name), completed)
    return Said(said.notes or latest_notes(earlier_notes), (*said.statements, *older))


def _repeats_what_was_said(commit: CommitMetadata) -> bool:
    """Whether it is a commit of eventide, which repeats all that was known."""
    return any(key.startswith(SOURCE_PREFIX) or is_repeated(key) for key in commit.extra_metadata)


def _of_tables(said: Said, then: Said) -> Iterator[SourceProgress]:
    notes = {note.table: note for note in then.notes}
    for note in said.notes:
        yield _of_table(notes[note.table]) if note.table in notes else _never(note.table, TABLE, _NOT_READ, _READ_IT)


def _of_table(note: SourceNote) -> SourceProgress:
    view = f"the view of {note.instant}" if note.instant else "its files"
    return SourceProgress(
        note.table,
        TABLE,
        note.watermark_ms,
        f"the write at {note.noted_at} was made of {view}",
        is_complete=note.is_complete,
        cure="write what has come to that table since",
    )


def _of_statement(name: str, statement: Statement | None, moment_ms: int | None) -> SourceProgress:
    cure = f"state it with a write: {STATEMENT_PREFIX}{name}.watermark in its commit"
    if statement is None:
        return _never(name, STATED, "no commit states how far it has come", cure)
    said = f"the commit at {statement.stated_at} states {statement.text[:80]!r}"
    if statement.watermark_ms is None:
        return SourceProgress(name, STATED, None, f"{said}, which is not a T", moment_ms, cure=cure)
    return SourceProgress(name, STATED, statement.watermark_ms, said, moment_ms, cure=f"a later statement of {name}")


def _never(name: str, kind: str, evidence: str, cure: str) -> SourceProgress:
    return SourceProgress(name, kind, None, evidence, cure=cure)

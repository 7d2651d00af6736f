"""The output of a run: the result goes to stdout, everything else to stderr."""

import json
import shutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import click

from eventide.cli.cures import in_commands
from eventide.cli.json_log import JSON_LOG
from eventide.own_warnings import OwnWarning
from eventide_core.errors import counted, printable
from eventide_core.ports import NoProgress, Progress

UNFINISHED: Final[ContextVar[str]] = ContextVar("unfinished", default="{")
"""What stands before the error in the document: its beginning, or the end of the rows that were printed."""


# `rich` is imported only to draw: JSON output does not need it.
if TYPE_CHECKING:
    import rich.progress

    from eventide.cli.text_table import Lines

_ROWS_OF_TABLE = 1000
_COLUMNS = 80


class Console:
    """The output of one run. With `--quiet`, only the result."""

    def __init__(self, *, is_json: bool, is_quiet: bool) -> None:
        self.is_json = is_json
        self._is_quiet = is_quiet
        self._log = JSON_LOG.get()
        self._is_drawing = not is_quiet and self._log is None and sys.stderr.isatty()

    def event(self, document: Mapping[str, Any], sentence: str) -> None:
        """A result among many, as in a log: the document as JSON, or one line, which only a terminal wraps."""
        if self.is_json:
            click.echo(json.dumps(in_commands(document)))
        else:
            click.echo(_fitted(sentence, screen_width() if sys.stdout.isatty() else None))

    def result(self, document: Mapping[str, Any], *parts: "str | Lines") -> None:
        """The result: the document as JSON, or the text for people."""
        if self.is_json:
            click.echo(json.dumps(in_commands(document)))
            return
        from eventide.cli.text_table import drawn

        for number, part in enumerate(parts):
            if isinstance(part, str):
                click.echo(_fitted(part, screen_width()))
                continue
            if number:
                click.echo()
            for line in drawn(replace(part, rows=in_commands(part.rows)), screen_width()):
                click.echo(line)

    def rows(self, columns: Sequence[str], rows: Iterable[Mapping[str, Any]], *, more: Mapping[str, Any]) -> int:
        """Prints rows as they come, and returns how many. As JSON, they are `data`, beside `more` and `rows`, the count.

        A failure among them becomes the last member of the document. As text, each thousand rows are one table.
        """
        count = 0
        left = iter(rows)
        first = list(islice(left, _ROWS_OF_TABLE))  # before anything is printed: most errors come here
        left = chain(first, left)
        if self.is_json:
            click.echo(json.dumps(more)[:-1] + ', "data": [', nl=False)
            try:
                for count, row in enumerate(left, start=1):
                    click.echo((", " if count > 1 else "") + json.dumps(row), nl=False)
            except BaseException:
                UNFINISHED.set(f'], "rows": {count}, ')
                raise
            click.echo(f'], "rows": {count}}}')
            return count
        from eventide.cli.text_table import Lines, drawn

        keeps_words = not sys.stdout.isatty()  # what reads a pipe gets whole values
        while (part := list(islice(left, _ROWS_OF_TABLE))) or not count:
            table = Lines("", tuple(columns), tuple(tuple(row.values()) for row in part))
            for line in drawn(table, screen_width(), keeps_words=keeps_words):
                click.echo(line)
            count += len(part)
            if len(part) < _ROWS_OF_TABLE:
                break
        click.echo(counted(count, "row"))
        return count

    def tell(self, sentence: str) -> None:
        """Prints a part of the result as soon as it is known: to stdout as text, to stderr with JSON output."""
        if self.is_json:
            self.say(sentence)
        elif not self._is_quiet:
            click.echo(_fitted(sentence, screen_width()))

    def say(self, sentence: str) -> None:
        """Prints a message about the progress of the run."""
        if not self._is_quiet:
            self._message(sentence)

    def error(self, sentence: str) -> None:
        """Prints an error beside the result of the run."""
        self._message(f"error: {sentence}")

    def _message(self, sentence: str) -> None:
        if self._log is not None:
            self._log.write(sentence)
        else:
            click.echo(_fitted(sentence, _message_width()), err=True)

    def report_dropped(self, indexes: Sequence[str]) -> None:
        """Reports indexes of the metadata table that a write or a compaction dropped because it could not update them."""
        if indexes:
            self.say(
                f"dropped from the metadata table, because eventide cannot keep it up to date: {', '.join(indexes)}; "
                "to have it again, create it with Hudi (CREATE INDEX)"
            )

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """A progress bar, on a terminal and unless `--quiet` is set."""
        if not self._is_drawing:
            yield NoProgress()
            return
        bar = _Bar()
        try:
            yield bar
        finally:
            bar.stop()

    @contextmanager
    def reading(self) -> Iterator[Callable[[int], None]]:
        """A function that takes the number of rows in each batch, and shows their sum and the rows a second."""
        if not self._is_drawing:
            yield lambda _: None
            return
        import rich.console
        import rich.progress

        columns = (
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description} {task.completed:,.0f} rows"),
            rich.progress.TextColumn("{task.fields[rate]}"),
            rich.progress.TimeElapsedColumn(),
        )
        shown = rich.console.Console(stderr=True)
        with rich.progress.Progress(*columns, console=shown, redirect_stdout=False, transient=True) as bar:
            task = bar.add_task("reading", total=None, rate="")

            def advance(rows: int) -> None:
                bar.advance(task, rows)
                seconds = bar.tasks[0].elapsed
                bar.update(task, rate=f"{bar.tasks[0].completed / seconds:,.0f} rows/s" if seconds else "")

            yield advance


@contextmanager
def own_warnings_said(*, is_quiet: bool) -> Iterator[None]:
    """Says each warning of eventide once."""
    said, shown = set[str](), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, OwnWarning):
            shown(message, category, *place, **more)
        elif str(message) not in said:
            said.add(str(message))
            Console(is_json=False, is_quiet=is_quiet).say(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", OwnWarning)
        warnings.showwarning = show
        yield


class _Bar:
    """ports.Progress on a terminal. The bar is shown only while tasks run, so that no other output lands inside it."""

    def __init__(self) -> None:
        self._bar: rich.progress.Progress | None = None

    def start(self, what: str, total: int) -> None:
        import rich.console
        import rich.progress

        self.stop()
        columns = (
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
        )
        self._bar = rich.progress.Progress(*columns, console=rich.console.Console(stderr=True), redirect_stdout=False)
        self._bar.add_task(what, total=total)
        self._bar.start()

    def advance(self) -> None:
        if self._bar is None:
            return
        self._bar.advance(self._bar.task_ids[0])
        if self._bar.finished:
            self.stop()

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def screen_width() -> int:
    """The columns that a result fits: the terminal's; in a pipe or a file COLUMNS, else 80."""
    return shutil.get_terminal_size(fallback=(_COLUMNS, 24)).columns


def _message_width() -> int | None:
    """The columns of a message on stderr; None for a pipe or a file, where each message is one line."""
    return screen_width() if sys.stderr.isatty() else None


def _fitted(text: str, width: int | None) -> str:
    shown = printable(in_commands(text), keeps_lines=True)
    if width is None:
        return shown
    from eventide.cli.text_table import wrapped

    return wrapped(shown, width)


def table_of(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "Lines":
    """A table for people. Numbers are right-aligned, and None is an empty cell."""
    from eventide.cli.text_table import Lines

    return Lines(title, tuple(columns), tuple(tuple(row) for row in rows))

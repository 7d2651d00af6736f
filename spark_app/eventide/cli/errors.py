"""Reports a failure: one sentence on stderr, with `--output json` also one document on stdout, and an exit code.

An EventideError has its exit code. Wrong usage is 2, any unexpected error is 5, and as in shells, Ctrl-C is 130 and a reader
of the results that stops reading is 141. A stack is printed only with `--debug`. No text contains a secret of the options.
"""

import json
import os
import select
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

import click

from eventide.cli.console import UNFINISHED, own_warnings_said
from eventide.cli.cures import in_commands
from eventide.cli.json_log import JSON_LOG, asks_for_json, open_json_log
from eventide.cli.redaction import Redaction
from eventide_core.errors import EventideError

INTERRUPTED = 130
READER_STOPPED = 141
USAGE = 2
FAILED = 5


class ShortOfMemoryError(SystemExit):
    """The end of a process whose libraries may have lost threads, so that an end in order could wait for them for ever."""


class _ReaderStoppedError(Exception):
    """What reads the results, such as `head`, has stopped reading."""


class GroupWithExitCodes(click.Group):
    """A group whose `main` ends the process by the contract's exit codes."""

    def make_context(self, *words: Any, **extra: Any) -> click.Context:
        with _broken_pipe_by_cause():  # --help writes here
            return super().make_context(*words, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _broken_pipe_by_cause():
            value = super().invoke(ctx)
            sys.stdout.flush()
        return value

    def main(  # type: ignore[override]  # narrower than click's: it always ends the process
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        redaction = Redaction()
        redaction.add_words(words)
        close_log = open_json_log(words, redaction)
        try:
            with own_warnings_said(is_quiet="--quiet" in words):
                self._main(words, prog_name, redaction, **extra)
        finally:
            close_log()

    def _main(self, words: list[str], prog_name: str | None, redaction: Redaction, **extra: Any) -> NoReturn:
        UNFINISHED.set("{")
        extra.pop("standalone_mode", None)
        try:
            code = super().main(args=words, prog_name=prog_name, standalone_mode=False, obj=redaction, **extra)
        except _ReaderStoppedError:
            code = READER_STOPPED
        except (KeyboardInterrupt, click.Abort) as stop:
            code = _report("Interrupted", str(stop) or "interrupted", INTERRUPTED, words, redaction)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            code = USAGE
        except click.ClickException as error:
            hint = f"; see {error.ctx.command_path} -h" if isinstance(error, click.UsageError) and error.ctx else ""
            message = error.format_message().rstrip(".") + hint
            code = _report("UsageError", message, USAGE, words, redaction)
        except EventideError as error:
            _show_stack(words, redaction)
            message = "; ".join((str(error), *getattr(error, "__notes__", ())))
            code = _report(type(error).__name__, message, error.exit_code, words, redaction)
        except Exception as error:
            _show_stack(words, redaction)
            if isinstance(error, FileNotFoundError) and not _has_working_directory():
                message = "the working directory does not exist anymore: change to another one"
                sys.exit(_report("UsageError", message, USAGE, words, redaction))
            message = f"unexpected {type(error).__name__}: {str(error) or 'no message'}; --debug shows where"
            code = _report(type(error).__name__, message, FAILED, words, redaction)
            if isinstance(error, MemoryError) or "can't start new thread" in message:
                raise ShortOfMemoryError(code) from error
        sys.exit(code if isinstance(code, int) else 0)


def _has_working_directory() -> bool:
    """Whether it still exists; no relative path leads anywhere otherwise."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def _report(kind: str, message: str, exit_code: int, words: Sequence[str], redaction: Redaction) -> int:
    sentence = in_commands(redaction.clean(" ".join(message.split())))
    log = JSON_LOG.get()
    if log is not None:
        log.write(sentence, "error", type=kind, exit_code=exit_code)
    else:
        click.echo(f"error: {sentence}", err=True)
    if asks_for_json(words, "--output"):
        with suppress(OSError):  # it may be the failure that is reported
            error = json.dumps({"error": {"type": kind, "message": sentence, "exit_code": exit_code}})
            click.echo(UNFINISHED.get() + error.removeprefix("{"))
    return exit_code


@contextmanager
def _broken_pipe_by_cause() -> Iterator[None]:
    """Raises another error for a broken pipe: Click would exit with code 1, as for a failed check, and print nothing."""
    try:
        yield
    except BrokenPipeError as broken:
        if _has_reader():
            raise ConnectionError(str(broken)) from broken
        raise _ReaderStoppedError from broken


def _has_reader() -> bool:
    """Whether someone still reads stdout: if so, the broken pipe is another one, such as that to a server."""
    pipe = select.poll()
    try:
        pipe.register(sys.stdout.fileno(), 0)
    except (OSError, ValueError):
        return True
    return not any(event & select.POLLERR for _, event in pipe.poll(0))


def _show_stack(words: Sequence[str], redaction: Redaction) -> None:
    if "--debug" not in words:
        return
    log, stack = JSON_LOG.get(), redaction.clean(traceback.format_exc())
    if log is not None:
        log.write(stack, "debug")
    else:
        click.echo(stack, err=True)

"""The log of a run as JSON: with `--log-format json`, everything that goes to stderr is one JSON object in a line.

What Python's `logging` and `warnings` would print there is, too. Secrets are masked as in all output.
"""

import json
import logging
import time
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise

import click

from eventide.cli.cures import in_commands
from eventide.cli.redaction import Redaction
from eventide_core.errors import format_timestamp

_LEVELS = ("warning", "error")


@dataclass(slots=True)
class JsonLog:
    """`redaction` masks secrets. `table` is what the run is about; None before it is known, and of a fleet."""

    redaction: Redaction
    table: str | None = None

    def write(self, sentence: str, level: str = "info", **more: str | int) -> None:
        """Writes the line of an event. `warning: ` before the sentence is its level."""
        begin, _, rest = sentence.partition(": ")
        level, sentence = (begin, rest) if begin in _LEVELS else (level, sentence)
        event = self.redaction.clean(in_commands(sentence))
        at = format_timestamp(time.time_ns() // 1_000_000)
        click.echo(json.dumps({"time": at, "level": level, "event": event, "table": self.table, **more}), err=True)


JSON_LOG: ContextVar[JsonLog | None] = ContextVar("json_log", default=None)
"""The log of this run, if it is JSON."""


class _Handler(logging.Handler):
    def __init__(self, log: JsonLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.write(record.getMessage(), record.levelname.lower(), logger=record.name)


def asks_for_json(words: Sequence[str], option: str) -> bool:
    """Whether the words of a command line, which may be wrong in other places, set the option to `json`."""
    return f"{option}=json" in words or (option, "json") in pairwise(words)


def open_json_log(words: Sequence[str], redaction: Redaction) -> Callable[[], None]:
    """Opens the log if the words of the command line ask for it. Returns what closes it."""
    if not asks_for_json(words, "--log-format"):
        return lambda: None
    log, shown = JsonLog(redaction), warnings.showwarning
    handler, opened = _Handler(log), JSON_LOG.set(log)
    logging.getLogger().addHandler(handler)
    warnings.showwarning = lambda message, category, *_: log.write(str(message), "warning", type=category.__name__)

    def close() -> None:
        warnings.showwarning = shown
        logging.getLogger().removeHandler(handler)
        JSON_LOG.reset(opened)

    return close

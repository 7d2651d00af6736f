"""A source that says how many records each window of event time ought to have: the kind `counts`.

1. The windows are rows with `begin`, `end` and `records`: of a CSV or JSON file, of a table of Hudi, or of a function that a
   package declares in its entry points `eventide.counts`. A table can name no other code.
2. In the order of time, each window has come if the table has at least that share of its records.
3. The source has come up to the end of the last one before the first that has not come, or before a gap between windows.

More records than are expected have come as well: a count doesn't prove that they are the right ones. Nothing is said of the
time before the first window.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from eventide_adapters.entry_points import Adapters
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.errors import ConfigError, EventideError, InvalidRecordError, format_timestamp
from eventide_core.ports import SourceQuestion
from eventide_core.table.records.event_time import parse_threshold
from eventide_core.table.timeline.source_progress import SourceProgress
from eventide_core.table.timeline.source_statements import STATEMENT_PREFIX

COUNTS = "counts"
FUNCTIONS: Final = Adapters("eventide.counts", {})
"""What returns the expected windows, by name: rows with `begin`, `end` and `records`."""
_COLUMNS = ("begin", "end", "records")


@dataclass(frozen=True, slots=True)
class ExpectedCounts:
    """The source `name`, whose windows `read` returns, and are complete from `share` of their records on.

    `address` says to people where they come from.
    """

    name: str
    address: str
    share: float
    read: Callable[[], Iterable[Any]]

    def progress(self, question: SourceQuestion) -> SourceProgress:
        try:
            windows = sorted(map(_window, self.read()))
            counts = tuple(question.count_rows([(begin, end) for begin, end, _ in windows])) if windows else ()
        except EventideError as error:
            return self._at(None, f"the counts cannot be compared: {error}")
        if not counts:
            return self._at(None, f"{self.address} has no window")
        reached, first = windows[0][0], windows[0][0]
        for (begin, end, expected), count in zip(windows, counts, strict=True):
            if begin > reached:
                return self._at(reached, f"{self.address} has no window from {format_timestamp(reached)} on")
            if count < self.share * expected:
                # Of the time before the first window, nothing is known.
                known = None if reached == first else reached
                return self._at(known, self._evidence(begin, end, expected, count, "which is less than"))
            reached = max(reached, end)
        (begin, end, expected), count = windows[-1], counts[-1]
        return self._at(reached, self._evidence(begin, end, expected, count, "and each window before has at least"))

    def _evidence(self, begin: int, end: int, expected: int, count: int, how: str) -> str:
        share = 100.0 if not expected else 100 * count / expected
        return (
            f"[{format_timestamp(begin)}, {format_timestamp(end)}) has {count:,} of {expected:,} records "
            f"({share:.4g}%), {how} {100 * self.share:.6g}%"
        )

    def _at(self, progress_ms: int | None, evidence: str) -> SourceProgress:
        return SourceProgress(
            self.name, COUNTS, progress_ms, evidence, cure="write what is missing, or correct the counts"
        )


def open_counts(name: str, given: Mapping[str, str], options: Options) -> ExpectedCounts:
    """The source as given: `at`, an address, or `of`, a function; and `share`, above 0 up to 1. Raises ConfigError.

    The options open an address that one of them names. Whoever writes the table's settings gets no credentials.
    """
    address, function = given.get("at", ""), given.get("of", "")
    if bool(address) == bool(function):
        raise ConfigError(
            f"source {name}: set `at` to a .csv or .json file, or a table, with {', '.join(_COLUMNS)}, or set `of` to the "
            'name of a function in the entry points "eventide.counts"'
        )
    is_own = f"{STATEMENT_PREFIX}{name}.at" in options.values
    read = _function(name, function) if function else partial(_rows, address, options if is_own else Options({}))
    try:
        share = float(given.get("share", "1"))
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise ConfigError(f"source {name}: share={given.get('share')!r} must be above 0, and at most 1, such as 0.999")
    return ExpectedCounts(name, address or function, share, read)


def _function(name: str, function: str) -> Callable[[], Iterable[Any]]:
    adapter = FUNCTIONS.find(function)
    if adapter is None:
        raise ConfigError(
            f'source {name}: no installed package declares {function[:80]!r} in its entry points "eventide.counts"; '
            f"known are: {', '.join(FUNCTIONS.names()) or 'none'}"
        )
    return adapter.load()


def _rows(address: str, options: Options) -> Iterator[Mapping[str, Any]]:
    """Raises what the storage or the table raises, and InvalidRecordError."""
    directory, _, file = address.rpartition("/")
    if not file.endswith((".csv", ".json", ".jsonl")):
        from eventide.table.table import Table

        yield from Table.open(address, options.values).snapshot().to_arrow(_COLUMNS).to_pylist()
        return
    storage = open_storage(directory or ".", options, what="counts' directory")
    text = storage.read(file).decode("utf-8-sig", "replace")
    if file.endswith(".csv"):
        yield from csv.DictReader(text.splitlines())
        return
    try:
        rows: Any = json.loads(text if file.endswith(".json") else f"[{','.join(filter(None, text.splitlines()))}]")
    except (ValueError, RecursionError) as error:
        raise InvalidRecordError(f"{address} is not JSON: {error}") from None
    yield from rows if isinstance(rows, list) else (rows,)


def _window(row: Any) -> tuple[int, int, int]:
    """Begin, end and number of records. Raises InvalidRecordError, InvalidThresholdError."""
    try:
        begin, end, records = (row[name] for name in _COLUMNS)
        found = parse_threshold(begin), parse_threshold(end), int(records)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, EventideError):
            raise
        raise InvalidRecordError(f"{str(row)[:200]} is not a window with {', '.join(_COLUMNS)}") from None
    if found[0] >= found[1] or found[2] < 0:
        raise InvalidRecordError(
            f"{str(row)[:200]} is not a window: its end comes after its begin, records are 0 or more"
        )
    return found

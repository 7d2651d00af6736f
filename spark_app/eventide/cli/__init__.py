"""The command line `eventide`: one module per verb, and one place that turns errors into exit codes."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from eventide.cli.app import eventide
from eventide.cli.errors import FAILED, INTERRUPTED, ShortOfMemoryError
from eventide.cli.own_process import claim

__all__ = ["eventide", "main"]


def main() -> None:
    """Runs the command line of this process and ends it with the verb's exit code."""
    claim()
    spare_collector()
    with _results_alone_on_stdout():
        try:
            eventide.main(prog_name="eventide")
        except SystemExit as ended:
            code = ended.code
            if code != INTERRUPTED and not isinstance(ended, ShortOfMemoryError):
                gc.freeze()  # Python looks for cycles as it exits, which takes a tenth of a short verb
                raise
    # Python's own exit waits for threads that still merge, and for those that a library has lost. What they leave is what a
    # kill leaves.
    sys.stderr.flush()
    os._exit(FAILED if code is None else int(code))


def spare_collector() -> None:
    """Lets Python collect cycles less often: a large table consists of millions of values, none of them in a cycle.

    With its defaults, the collector takes a fourth of the time of a plan for 100,000 log files. It looks at new values
    while they are in the processor's cache, and at older ones after every five million.
    """
    gc.set_threshold(2_000, 2_500, 50)


@contextmanager
def _results_alone_on_stdout() -> Iterator[None]:
    """Redirects everything else that writes to file descriptor 1 to stderr, including a JVM and its workers."""
    results = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors="backslashreplace")
    os.dup2(2, 1)
    sys.stdout = results
    try:
        yield
    finally:
        with suppress(BrokenPipeError):  # the reader of the results, such as `head`, has stopped reading
            results.close()

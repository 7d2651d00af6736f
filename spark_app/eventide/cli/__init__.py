"""The command line `eventide`: a module per verb, in rooms by subject, and what all verbs share."""

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
    encoding = sys.stdout.encoding if sys.stdout else None
    results = os.fdopen(_standard_output(), "w", encoding=encoding, errors="backslashreplace")
    os.dup2(2, 1)
    sys.stdout = results
    try:
        yield
    finally:
        with suppress(OSError):  # a reader that has stopped, or a full disk: reported, with its exit code
            results.close()


def _standard_output() -> int:
    """A second descriptor of it. If it is closed, as by `>&-`, it leads nowhere from now on."""
    try:
        return os.dup(1)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return os.dup(1)

"""Starts the command line, for `eventide` and for `python -m eventide`.

It imports nothing before it has a handler of Ctrl-C, so that Ctrl-C also ends the first moments, in which Python imports the
command line, with one line and exit code 130.
"""

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130


def main() -> None:
    """Imports the command line and runs it."""
    is_caught = (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )  # not by a job in the background of a shell
    if is_caught:
        signal.signal(signal.SIGINT, _end)
    from eventide.cli import main as run

    if is_caught:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


def _end(*_: object) -> "NoReturn":
    # As the command line reports it later. Nothing has been started that would have to end in order.
    os.write(2, b"\nerror: interrupted\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()

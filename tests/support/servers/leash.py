"""Runs a command as long as this process's standard input stays open: `python leash.py COMMAND...`.

The test run holds the other end of it. However the run ends, the command is stopped.
"""

import os
import subprocess
import sys
import threading

STOP_SECONDS = 1  # the data of the servers is discarded with the run


def main() -> int:
    command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
    threading.Thread(target=_stop_at_the_end_of_input, args=(command,), daemon=True).start()
    return command.wait()


def _stop_at_the_end_of_input(command: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):
        pass
    command.terminate()
    try:
        command.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        command.kill()


if __name__ == "__main__":
    sys.exit(main())

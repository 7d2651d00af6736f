"""The other end of `processes.Server`: methods of one object asked by JSON requests, one a line."""

import json
import os
import sys
from collections.abc import Callable


def serve(make: Callable[[], object]) -> None:
    """Answers until standard input ends. Whatever else writes to standard output is led to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    served = make()
    answer: dict[str, object] = {"ok": "ready"}
    while True:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        line = sys.stdin.readline()
        if not line:
            os._exit(0)  # a JVM waits on a pipe from this process, and ends with it
        request = json.loads(line)
        try:
            answer = {"ok": getattr(served, request.pop("method"))(**request)}
        except Exception as failure:
            answer = {"error": f"{type(failure).__name__}: {failure}"}

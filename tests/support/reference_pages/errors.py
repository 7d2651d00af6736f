"""The error reference, from the error classes and their docstrings."""

import inspect

from eventide.cli.cures import command
from eventide_core import errors
from eventide_core.cure import in_words
from eventide_core.errors import EventideError

_HEAD = """# Errors

<!-- Made by `./run docs` from core/eventide_core/errors.py: change it there. -->

Every failure is one sentence on stderr, with `--output json` also the document
`{"error": {"type": ..., "message": ..., "exit_code": ...}}` on stdout. If `read` has printed rows
before, `error` is the last member of their document. The message names the value, the place and the cure.
In Python, each is an `eventide_core.errors.EventideError`, and also the builtin error in the third column. A message names
what its reader can type: the command line shows commands, and `str(error)` in Python the calls that do the same.

For symptoms and their cures, see [Troubleshooting](../guide/troubleshooting.md).
"""

_EXIT_CODES = """
| exit code | means |
|---|---|
| 0 | done, or met; there was nothing to do |
| 1 | a check failed: `verify`, `freshness --require` |
| 2 | wrong usage or bad input |
| 3 | refused, because it would not be safe or is not supported |
| 4 | busy: a pending plan or another writer; try again |
| 5 | storage or engine failed, or something unforeseen; run it again |
| 130 | interrupted |
| 141 | what reads the results, such as `head`, has stopped reading |
"""


def errors_page() -> str:
    """One row for each error, by exit code and then in the order of declaration."""
    found = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, EventideError)]
    rows = [_row(kind) for kind in sorted(found, key=lambda kind: kind.exit_code) if kind is not EventideError]
    table = "| error | exit code | also | what | what to do |\n|---|---|---|---|---|\n"
    return f"{_HEAD}{_EXIT_CODES}\n{table}" + "\n".join(rows) + "\n"


def _row(kind: type[EventideError]) -> str:
    what, cure = (" ".join(part.split()) for part in inspect.cleandoc(kind.__doc__ or "").split("\n\n"))
    cure = in_words(cure, lambda call: f"{call} or {command(call)}")
    return f"| `{kind.__name__}` | {kind.exit_code} | {_builtin(kind)} | {what} | {cure} |"


def _builtin(kind: type[EventideError]) -> str:
    own, builtin = kind.__bases__[0], kind.__bases__[-1]
    if builtin is EventideError:
        return ""
    return f"`{builtin.__name__}`" if own is EventideError else f"`{own.__name__}`"

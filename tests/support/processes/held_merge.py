"""Runs the command line in a process whose merges wait: each writes FILE.started, and then waits until FILE exists.

python -m support.processes.held_merge FILE ARGUMENT...
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

from eventide.cli import main
from eventide_core.ports import MergeResult, MergeTask
from eventide_core.service.compaction.compact_slice import SliceCompactor, at_once


def hold(go_on: Path) -> None:
    """Makes each merge of this process wait for the file."""
    merge = SliceCompactor.__call__

    def held(self: SliceCompactor, task: MergeTask, /, may_write: Callable[[], object] = at_once) -> MergeResult:
        go_on.with_suffix(".started").touch()
        while not go_on.exists():
            time.sleep(0.01)
        return merge(self, task, may_write)

    SliceCompactor.__call__ = held  # type: ignore[method-assign]


if __name__ == "__main__":
    hold(Path(sys.argv.pop(1)))
    main()

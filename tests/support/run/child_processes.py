"""Processes of this Python that tests start."""

import os
import sys


def environment(**more: str) -> dict[str, str]:
    """This process's environment, where a Python finds each package that this one finds: pytest changes `sys.path` alone."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), **more}

"""Processes of this Python that tests start."""

import ensurepip
import os
import sys
from pathlib import Path

from support.run.real_parts import require_or_skip


def environment(**more: str) -> dict[str, str]:
    """This process's environment, where a Python finds each package that this one finds: pytest changes `sys.path` alone."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), **more}


def bundled_pip() -> Path:
    """The wheel of pip that this Python brings: an environment that uv made has no pip."""
    pip = next((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"), None)
    if pip is None:
        require_or_skip("this Python brings no pip of its own, which installs packages")
    return pip

"""`python lower_bounds.py pyproject.toml`: what users install, each at its lower bound, as constraints for pip.

Needs the standard library alone. The groups of development are left out.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

# Stores of objects whose clients each need an fsspec of their own version: no two of them can be lowest at once.
LEFT_OUT = {"gs", "abfs"}


def lower_bounds(pyproject: str) -> Iterator[str]:
    """`name==version` of each requirement of the project and of its extras. Raises ValueError for one without a bound."""
    project = tomllib.loads(pyproject)["project"]
    extras = {name: texts for name, texts in project["optional-dependencies"].items() if name not in LEFT_OUT}
    for text in sorted({*project["dependencies"], *(text for texts in extras.values() for text in texts)}):
        found = re.match(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)", text)
        if found is None:
            raise ValueError(f"requirement {text!r} has no lower bound: write it as name>=version")
        yield f"{found[1]}=={found[2]}"


if __name__ == "__main__":
    found = lower_bounds(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.stdout.writelines(f"{line}\n" for line in dict.fromkeys(found))

"""`python lower_bounds.py pyproject.toml`: the dependencies of users at their lower bounds, as constraints for pip.

Needs only the standard library. Omits the development groups.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

# Clients of object stores, each of which needs a different version of fsspec: only one of them can be at its lower
# bound.
LEFT_OUT = {"gs", "abfs"}


def lower_bounds(pyproject: str) -> Iterator[str]:
    """`name==version` of each requirement of the project and of its extras.

    Raises ValueError if one has no lower bound.
    """
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

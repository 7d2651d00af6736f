"""Changes that the command line may make to its own process, but not to the process of a caller."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

_claimed: list[bool] = []


def claim() -> None:
    """Declares that this process is a run of the command line, and nothing else."""
    _claimed.append(True)


def spare_pandas() -> None:
    """Hides pandas while pyarrow looks for it, which it does once, with the first array of Python values.

    A run on the local engine creates no DataFrame, and importing pandas takes longer than most verbs. If pyarrow needs
    pandas later, it looks again.
    """
    if not _claimed or "pandas" in sys.modules:
        return
    import pyarrow

    nowhere = _NoPandas()
    sys.meta_path.insert(0, nowhere)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(nowhere)


class _NoPandas(MetaPathFinder):
    """Finds no pandas, and leaves every other module to the next finders."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)

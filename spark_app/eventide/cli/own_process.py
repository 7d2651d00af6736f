"""Changes that the command line may make to its own process, but not to the process of a caller."""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_claimed: list[bool] = []


def claim() -> None:
    """Declares that this process is a run of the command line, and nothing else."""
    _claimed.append(True)


def hide_pandas() -> None:
    """Hides pandas while pyarrow looks for it, which it does once, with the first array of Python values.

    A run on the local engine creates no DataFrame, and importing pandas is a fifth of the processor time of `eventide show`
    (0.18 of 0.87 seconds). If pyarrow needs pandas later, it looks again. If pyarrow is not imported yet, this happens when
    it is. A None in `sys.modules` doesn't hide it: pyarrow takes that for pandas.
    """
    if not _claimed or "pandas" in sys.modules:
        return
    if "pyarrow" in sys.modules:
        _look_without_pandas()
    elif not any(isinstance(finder, _FirstLook) for finder in sys.meta_path):
        sys.meta_path.insert(0, _FirstLook())


def _look_without_pandas() -> None:
    import pyarrow

    nowhere = _NoPandas()
    sys.meta_path.insert(0, nowhere)
    try:
        pyarrow.array([])
    finally:
        sys.meta_path.remove(nowhere)


class _FirstLook(MetaPathFinder):
    """Finds pyarrow as the next finders do, and lets it look for pandas as soon as it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        if fullname != "pyarrow":
            return None
        sys.meta_path.remove(self)
        spec = find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run: Any = spec.loader.exec_module

            def run_and_look(module: ModuleType) -> None:
                run(module)
                if "pandas" not in sys.modules:
                    _look_without_pandas()

            loader: Any = spec.loader
            loader.exec_module = run_and_look
        return spec


class _NoPandas(MetaPathFinder):
    """Finds no pandas, and leaves every other module to the next finders."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)

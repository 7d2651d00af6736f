"""Nothing in a table is ever run: no shipped module can turn bytes into code, or into objects of any class.

Looked for are the standard library's and known packages' ways to do so, by any name that they are imported under. Those that
stay have their reason here. Not looked for: what Spark does to send tasks to its own executors; what C code does with bytes.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHIPPED = ("core", "adapters", "spark_app")

UNPICKLERS = (
    "pickle",
    "_pickle",
    "cPickle",
    "marshal",
    "shelve",
    "dill",
    "cloudpickle",
    "joblib",
    "jsonpickle",
    "copyreg",
)
RUNNERS = ("code", "codeop", "runpy", "imp", "zipimport", "pydoc")
CALLS = {
    *("eval", "exec", "compile", "__import__"),
    *(f"builtins.{name}" for name in ("eval", "exec", "compile", "__import__")),
    *("importlib.import_module", "importlib.__import__", "pkgutil.resolve_name", "types.FunctionType"),
    *("importlib.util.spec_from_file_location", "importlib.util.module_from_spec"),
    *("importlib.machinery.SourceFileLoader", "importlib.machinery.SourcelessFileLoader"),
    *(f"yaml.{name}" for name in ("load", "load_all", "unsafe_load", "unsafe_load_all", "full_load", "full_load_all")),
    *(
        "numpy.load",
        "pandas.read_pickle",
        "pyarrow.deserialize",
        "pyarrow.deserialize_pandas",
        "pyarrow.read_serialized",
    ),
    *("logging.config.fileConfig", "logging.config.dictConfig"),
}
KEPT = {
    (
        "adapters/eventide_adapters/format/slice/merge/record_mergers.py",
        "importlib.import_module",
    ): "the user's own option names a merger; the table only has its strategy ID",
    (
        "adapters/eventide_adapters/entry_points.py",
        "importlib.import_module",
    ): "an installed package's entry point, or the user's own option, names an adapter",
    ("adapters/eventide_adapters/storage/guarantees.py", "pickle"): "a check copies a storage that it was handed",
    (
        "adapters/eventide_adapters/storage/packaged.py",
        "pickle",
    ): "a storage on its way from the driver to its executors",
    ("spark_app/eventide/__init__.py", "importlib.import_module"): "modules of a list in the same file",
    ("spark_app/eventide/cli/app.py", "importlib.import_module"): "the same",
    ("spark_app/eventide/spark/engine.py", "pickle"): "tasks and answers between the driver and its own executors",
    ("spark_app/eventide/spark/workers.py", "importlib.import_module"): "packages of a list in the same file",
    ("spark_app/eventide/testing/storage_contract/case.py", "pickle"): "the kit copies a storage that it was handed",
    ("spark_app/eventide/testing/storage_contract/content.py", "pickle"): "the kit copies a storage that it was handed",
}


def dangers(source: str) -> Iterator[str]:
    """The names of what could run bytes, as often as they exist."""
    tree = ast.parse(source)
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _of_module(alias.name)
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from _of_module(node.module)
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield from _of_module(whole)
                names[alias.asname or alias.name] = whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            whole = _whole_name(node, names)
            if whole in CALLS:
                yield whole
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield "allow_pickle"


def _of_module(name: str) -> Iterator[str]:
    if name.partition(".")[0] in UNPICKLERS + RUNNERS:
        yield name.partition(".")[0]


def _whole_name(node: ast.expr, names: dict[str, str]) -> str:
    """`a.b.c` with what `a` was imported as; "" for any other expression."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute):
        before = _whole_name(node.value, names)
        return f"{before}.{node.attr}" if before else ""
    return ""


def test_no_shipped_module_runs_what_a_table_holds() -> None:
    files = [path for directory in SHIPPED for path in sorted((ROOT / directory).rglob("*.py"))]
    assert len(files) > 200
    uses = {(str(path.relative_to(ROOT)), danger) for path in files for danger in dangers(path.read_text())}
    assert uses == KEPT.keys()


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p",
        "from pickle import loads",
        "from cloudpickle import loads",
        "import marshal, json",
        "import shelve",
        "def f(data):\n    import dill\n    return dill.loads(data)",
        "eval(text)",
        "[*map(eval, texts)]",
        "exec(compile(text, 'name', 'exec'))",
        "__import__(name)",
        "import builtins\nbuiltins.exec(text)",
        "from builtins import eval as read\nread(text)",
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module\nimport_module(name)",
        "from importlib import import_module as load\nload(name)",
        "import importlib.util\nimportlib.util.spec_from_file_location(name, path)",
        "import pkgutil\npkgutil.resolve_name(text)",
        "import yaml\nyaml.load(text, Loader=yaml.Loader)",
        "from yaml import unsafe_load\nunsafe_load(text)",
        "import numpy as np\nnp.load(path)",
        "import numpy as np\nnp.lib.format.read_array(stream, allow_pickle=True)",
        "import pandas as pd\npd.read_pickle(path)",
        "import pyarrow as pa\npa.deserialize(data)",
        "import runpy\nrunpy.run_path(path)",
    ],
)
def test_a_module_that_could_is_found(source: str) -> None:
    assert list(dangers(source))


@pytest.mark.parametrize(
    "source",
    [
        "import json\njson.loads(text)",
        "import re\nre.compile(text)",
        "import yaml\nyaml.safe_load(text)",
        "x.eval(text)",
    ],
)
def test_a_module_that_could_not_is_left_alone(source: str) -> None:
    assert list(dangers(source)) == []

"""The configuration reference, told by the code: which options there are, what they are, and who reads them.

1. An option is a constant of a key, or of several names of one, with its line below it, in one of `_DECLARED`.
2. Its type and its default are those of the calls that read it: `options.integer(KEY, DEFAULT)` and the like. Where such a
   call computes its default, the line below the constant says it: "Default: ...".
3. Who reads it is who names the constant, the command line and the tests' kit apart.

An option that a call reads and nothing declares ends this with an AssertionError, and so does one without a line.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[3]
_PACKAGES = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
# They only pass options on.
_PASSING_ON = ("eventide.cli", "eventide.demo", "eventide.testing")
_DECLARED = {
    "eventide_core.config": "",
    "eventide_core.table.key_format": "Key generators",
    "eventide_adapters.storage.objects": "Object stores",
    "eventide_adapters.storage.open": "Object stores",
    "eventide_adapters.storage.s3_config": "S3",
    "eventide_adapters.storage.hdfs_config": "HDFS",
}
_TYPES = {
    "integer": "whole number",
    "first_integer": "whole number",
    "_count": "whole number",
    "flag": "true, false",
    "duration": "duration",
    "fraction": "between 0 and 1",
    "choice": "",
}
_HEADING = re.compile(r"# (\w[^.]*)")
_KEY = re.compile(r"[a-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+\.?|fsspec\.")

_HEAD = """# Options

<!-- Made by `./run docs` from the keys in core/eventide_core/config.py and adapters/eventide_adapters/storage: change them
there. -->

Every option that eventide reads. They are given as `--option KEY=VALUE` or in a file by `--config FILE.toml`, to
`Table.open(uri, options)`, to `eventide.stream_sink(table, options)`, or as `.option(KEY, VALUE)` of `format("eventide")`.
Hudi's keys keep Hudi's meaning and, where nothing else is said, Hudi's defaults. Of several names the first that is given
counts. Keys that Hudi has and this page has not are passed over. What a table says of itself in `hoodie.properties` is on
[the page of the format](../on_disk_format.md).

A duration is written as 90s, 30m, 2h or 1d, or several of these one after another.
"""


@dataclass(slots=True)
class _Option:
    """A key and what the code tells of it; `names` are several where Hudi has several for one."""

    names: tuple[str, ...]
    constant: str
    module: str
    section: str
    line: str
    types: list[str] = field(default_factory=list)
    defaults: list[str] = field(default_factory=list)
    readers: list[str] = field(default_factory=list)


def configuration_page() -> str:
    """A table a section, in the order of the declarations."""
    options = [option for name in _DECLARED for option in _declared(name)]
    for module in _modules():
        _read_by(module, options)
    sections: dict[str, list[str]] = {}
    for option in options:
        assert option.readers, f"nothing reads {option.constant} of {option.module}"
        sections.setdefault(option.section, []).append(_row(option))
    head = "| option | default | type | meaning | read in |\n|---|---|---|---|---|\n"
    tables = (f"## {section}\n\n{head}" + "\n".join(rows) for section, rows in sections.items())
    return _HEAD + "\n" + "\n\n".join(tables) + "\n"


def _declared(module: str) -> Iterator[_Option]:
    path, section = _path(module), _DECLARED[module]
    lines = path.read_text(encoding="utf-8").splitlines()
    body, end = _tree(path).body, 0
    for statement, below in zip(body, [*body[1:], None], strict=True):
        headings = [found[1] for line in lines[end : statement.lineno - 1] if (found := _HEADING.fullmatch(line))]
        section = headings[-1] if headings and not _DECLARED[module] else section
        end = statement.end_lineno or 0
        match statement:
            case ast.Assign(targets=[ast.Name(constant)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(constant), value=ast.expr() as value):
                pass
            case _:
                continue
        names = _names(value)
        match below:
            case ast.Expr(ast.Constant(str(line))):
                assert names, f"{constant} of {module} is no key"
                yield _Option(names, constant, module, section, " ".join(line.split()))
            case _:
                assert not names or _DECLARED[module], f"{constant} of {module} has no line below it"


def _names(value: ast.expr) -> tuple[str, ...]:
    """The keys in the value of a constant; none where it is something else."""
    match value:
        case ast.Constant(str(text)) if _KEY.fullmatch(text):
            return (text,)
        case ast.Tuple(parts):
            texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            return tuple(texts) if all(_KEY.fullmatch(text) for text in texts) else ()
        case _:
            return ()


def _read_by(path: Path, options: list[_Option]) -> None:
    """Adds what one module tells of the options that it reads."""
    name = _module_name(path)
    module: ModuleType | None = None
    by_names = {option.names: option for option in options} | {option.names[0]: option for option in options}
    constants = {option.constant for option in options}
    for node in ast.walk(_tree(path)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _TYPES
            and node.args
        ):
            module = module or import_module(name)
            key = _value(node.args[0], module)
            if not isinstance(key, str | tuple):
                continue
            option = by_names.get(key)
            assert option is not None or not _is_key(key), f"{name} reads {key}, which no constant with a line declares"
            if option is not None:
                _told_by_call(option, node, module)
                _note_reader(option, name)
        elif isinstance(node, ast.Name | ast.Attribute):
            constant = node.id if isinstance(node, ast.Name) else node.attr
            if constant in constants and isinstance(node.ctx, ast.Load):
                module = module or import_module(name)
                value = _value(node, module)
                option = by_names.get(value) if isinstance(value, str | tuple) else None
                if option is not None:
                    _note_reader(option, name)


def _note_reader(option: _Option, module: str) -> None:
    if module not in option.readers and not module.startswith(_PASSING_ON):
        option.readers.append(module)


def _told_by_call(option: _Option, call: ast.Call, module: ModuleType) -> None:
    assert isinstance(call.func, ast.Attribute)
    kind = _TYPES[call.func.attr]
    said = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "default")]
    default = _value(said[0], module) if said else False if call.func.attr == "flag" else None
    if isinstance(default, StrEnum):
        kind = ", ".join(type(default))
    for text, known in ((kind, option.types), (_said(default), option.defaults)):
        if text and text not in known:
            known.append(text)


def _said(default: Any) -> str:
    return "" if default is None else str(default).lower() if isinstance(default, bool) else str(default)


def _value(expression: ast.expr, module: ModuleType) -> Any:
    """What an expression is in a module; None where it is known only while it runs."""
    try:
        return eval(compile(ast.Expression(expression), "<option>", "eval"), dict(vars(module)))
    except (AttributeError, NameError):
        return None


def _is_key(key: str | tuple[str, ...]) -> bool:
    return isinstance(key, str) and key.startswith(("hoodie.", "eventide.", "s3.", "fs.", "hdfs.", "dfs."))


def _row(option: _Option) -> str:
    meaning, _, default = option.line.partition(" Default: ")
    defaults = f"{default.rstrip('.')}" if default else ", ".join(f"`{text}`" for text in option.defaults)
    assert defaults, f"nothing tells the default of {option.constant}: say it below the constant, as Default: ..."
    names = "<br>".join(f"`{name}*`" if name.endswith(".") else f"`{name}`" for name in option.names)
    readers = ", ".join(f"`{name.split('.', 1)[1]}`" for name in option.readers)
    kinds = option.types or ["true, false" if defaults in ("true", "false") else "text"]
    cells = (names, defaults, "; ".join(kinds), meaning, readers)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _modules() -> Iterator[Path]:
    for package in _PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")


def _path(module: str) -> Path:
    parts = module.split(".")
    folder = next(ROOT / package for package in _PACKAGES if package.endswith(f"/{parts[0]}"))
    return folder.joinpath(*parts[1:]).with_suffix(".py")


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))

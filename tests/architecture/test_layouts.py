"""Nobody but the layout asks which of the two layouts a table has: they ask it the question that they have.

Not checked: which settings a new table has, and what those for merging mean, because these differ from version 8 to 9, too;
and the kit of tests, which makes tables behind the back of the code that it tests.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("core/eventide_core", "adapters/eventide_adapters", "spark_app/eventide")
LAYOUT = "core/eventide_core/table/timeline/layout.py"
APART = (
    "core/eventide_core/table/settings/merge_config.py",
    "core/eventide_core/table/settings/new_table.py",
    "spark_app/eventide/testing/",
)
LAST_OF_EACH = (6, 7, 8)
"""The versions that a comparison for the layout would name: below 8, at least 8, at most 7, 6 itself."""
NAMES_OF_ONE = ("LAYOUT_6", "LAYOUT_8", "Layout6", "Layout8")
BOOLEANS = ("by_completion_time", "is_v6", "is_v8", "is_version_6", "is_version_8")


def product_files() -> list[Path]:
    return sorted(path for part in PRODUCT for path in (ROOT / part).rglob("*.py"))


def name_of(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
            return name
        case ast.FunctionDef(name=name) | ast.alias(name=name):
            return name
        case _:
            return ""


def versions_in(tree: ast.Module) -> set[str]:
    """The constants of a module that are one of these versions."""
    versions: set[str] = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int(value))):
                versions |= {name} if value in LAST_OF_EACH else set()
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int(value))):
                versions |= {name} if value in LAST_OF_EACH else set()
            case _:
                pass
    return versions


def asks(source: str, *, compares: bool = True) -> Iterator[str]:
    """The places that ask for the layout itself, as `line: what`."""
    tree = ast.parse(source)
    versions = versions_in(tree)
    for node in ast.walk(tree):
        name = name_of(node)
        if name in NAMES_OF_ONE or name.endswith(BOOLEANS):
            yield f"{getattr(node, 'lineno', 0)}: {name}"
        if compares and isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            is_of_version = any(name_of(side).lower().endswith("version") for side in sides)
            if is_of_version and any(
                (isinstance(side, ast.Constant) and side.value in LAST_OF_EACH) or name_of(side) in versions
                for side in sides
            ):
                yield f"{node.lineno}: {ast.unparse(node)}"


def test_only_the_layout_compares_versions() -> None:
    comparisons: list[str] = []
    for path in product_files():
        name = path.relative_to(ROOT).as_posix()
        if name != LAYOUT:
            comparisons += [
                f"{name}:{place}"
                for place in asks(path.read_text(encoding="utf-8"), compares=not name.startswith(APART))
            ]
    assert comparisons == []


@pytest.mark.parametrize(
    "line",
    [
        "if config.version >= 8: pass",
        "if 8 > table_version: pass",
        "if _FIRST_VERSION <= version < 8: pass",
        "_FIRST: Final = 8\nhas_directory = config.version >= _FIRST",
        "_LAST = 6\nhas_directory = config.version > _LAST",
        "if version == 6: pass",
        "def slices_by_completion_time(): pass",
        "plan(slices_by_completion_time=True)",
        "def plan(is_v6): pass",
        "is_v6 = False",
        "if config.layout is LAYOUT_8: pass",
        "isinstance(layout, Layout6)",
        "from eventide_core.table.timeline.layout import LAYOUT_6",
    ],
)
def test_a_question_for_the_layout_itself_is_found(line: str) -> None:
    assert len(list(asks(line))) >= 1


@pytest.mark.parametrize("line", ["if version < 9: pass", "if len(data) < 8: pass", "layout_of(version).needs_hudi_1"])
def test_what_asks_for_no_layout_is_left_alone(line: str) -> None:
    assert list(asks(line)) == []

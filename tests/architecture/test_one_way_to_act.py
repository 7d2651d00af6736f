"""A file of a timeline is put in one place, and every other file that a use case puts has its row in the table of steps."""

import ast
from collections.abc import Iterator
from pathlib import Path

from eventide_core.service.common.transaction.steps import FENCES, Kind
from eventide_core.table.timeline.instant import State
from support.reference_pages.step_texts import OTHER_FILES, STEPS

CORE = Path(__file__).parents[2] / "core/eventide_core"
SERVICE = CORE / "service"
PUTS = {"put", "put_if_absent", "replace_version", "copy_if_absent", "link_if_absent", "open_output"}
OF_A_TRANSACTION = "common/transaction/action"


def putting_modules() -> Iterator[str]:
    """The modules that put a file through a storage."""
    for path in sorted(SERVICE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and node.attr in PUTS and _is_storage(node.value):
                yield path.relative_to(SERVICE).with_suffix("").as_posix()
                break


def _is_storage(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in ("storage", "own")


def test_only_a_transaction_puts_a_file_of_a_timeline() -> None:
    """The modules that put other files are listed in the table, with each of their files."""
    named = {name for other in OTHER_FILES for name in other.module.split(", ") if not name.startswith("adapters: ")}
    assert set(putting_modules()) == named | {OF_A_TRANSACTION}


def test_no_module_but_the_transaction_asks_for_the_path_of_an_instant_to_put_it() -> None:
    """`TimelineFiles` reads and deletes; what puts is `Transaction.put`, `put_each` and `replace_request`."""
    source = (CORE / "access/timeline_files.py").read_text(encoding="utf-8")
    assert "put" not in {node.attr for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute)}


def test_every_action_ends_with_a_completed_file() -> None:
    assert {kind for kind, state in FENCES if state is State.COMPLETED} == set(Kind)


def test_the_page_of_steps_has_each_file_of_an_action() -> None:
    assert STEPS.keys() == FENCES.keys()

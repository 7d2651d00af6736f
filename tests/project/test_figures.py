"""The figures of docs/architecture.md are counted by a command, and have a place on the page."""

from pathlib import Path

import pytest

from support.documentation import figures


@pytest.mark.slow
def test_a_compaction_is_counted_and_has_a_place_on_the_page(tmp_path: Path) -> None:
    found = figures.measured("local compaction", tmp_path / "of")
    assert found["functions"] > found["modules"] > 100
    assert all(functions >= rooms > 0 for functions, rooms in found["walks"].values())
    used, possible = figures.arrows("eventide_core.service")
    assert 0 < used < possible
    made = figures.page({"local compaction": found}, {"eventide_core.service": (used, possible)})
    page = figures.PAGE.read_text(encoding="utf-8")
    shown = page[page.index(figures.BEGIN) : page.index(figures.END)]
    assert made.splitlines()[0] in shown
    assert "| local compaction |" in shown

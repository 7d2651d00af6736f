"""docs/tested_tables.md says what the tests run: its tables are those that their parameters make."""

from support.documentation.tested_grid import BEGIN, END, PAGE, page, problems


def test_the_page_has_the_tables_that_the_tests_declare() -> None:
    assert PAGE.read_text().count(BEGIN) == PAGE.read_text().count(END) == 1
    assert PAGE.read_text() == page(), "run: PYTHONPATH=tests .venv/bin/python -m support.documentation.tested_grid"


def test_each_combination_without_a_test_has_a_reason_and_no_other_has_one() -> None:
    assert problems() == []

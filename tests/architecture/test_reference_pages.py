"""The pages of docs/reference match the code."""

from support.reference_pages import DIRECTORY, pages


def test_the_reference_pages_are_those_that_the_code_makes() -> None:
    made = pages()
    assert {path.name for path in DIRECTORY.glob("*.md")} == set(made)
    outdated = [name for name, text in made.items() if (DIRECTORY / name).read_text(encoding="utf-8") != text]
    assert outdated == [], "`./run docs` updates them"

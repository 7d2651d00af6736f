"""Turns of phrase that a native technical writer avoids stay out of messages, docstrings, comments and pages.

A phrase may be broken over lines. Of Python, comments and strings are checked; of other files, each paragraph.
Not checked: names in code, and strings within the braces of an f-string.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIRECTORIES = ("core", "adapters", "spark_app", "tests", "docs", "benchmarks", "examples", "deploy", ".github", ".ci")
FILES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "pyproject.toml",
    "run",
    ".pre-commit-config.yaml",
)
SUFFIXES = {"", ".md", ".py", ".toml", ".yaml", ".yml"}
AVOIDED = {
    "say what was expected, then what came": re.compile(
        r"\b(?<!there )(?<!There )(is|are|was|were) no (?!(longer|more|older|later|less|fewer|sooner|earlier)\b)\w"
    ),
    "the noun": re.compile(r"\b([Tt]hat|[Tt]hose) of\b"),
    "again": re.compile(r"\banew\b"),
    "shows, records or says": re.compile(
        r"\b(tells|told) (?!us\b|apart\b|to\b|= |is not )|doesn't tell\b|don't tell\b"
    ),
}
FINE = re.compile(r"\beventide\*\* tells you")
_COMMENTS = re.compile(r"(?:(?<!\S)#(?: .*)?\n[ \t]*)+")
_PARAGRAPHS = re.compile(r"(?:.*\S.*\n?)+")
_MARK = re.compile(r"^[ \t]*#+", re.MULTILINE)


def of_python(source: str) -> Iterator[tuple[int, str]]:
    """Each run of comments, and each string with `_` for its values, with the line where it begins."""
    for comment in _COMMENTS.finditer(source):
        yield source.count("\n", 0, comment.start()) + 1, comment[0]
    nodes: list[ast.AST] = [ast.parse(source)]
    while nodes:
        match node := nodes.pop():
            case ast.Constant(value=str(text)):
                yield node.lineno, text
            case ast.JoinedStr(values=pieces):
                yield (
                    node.lineno,
                    "".join(str(piece.value) if isinstance(piece, ast.Constant) else "_" for piece in pieces),
                )
            case _:
                nodes += ast.iter_child_nodes(node)


def of_pages(source: str) -> Iterator[tuple[int, str]]:
    """Each paragraph with the line where it begins."""
    for paragraph in _PARAGRAPHS.finditer(source):
        yield source.count("\n", 0, paragraph.start()) + 1, paragraph[0]


def faults(name: str, source: str) -> Iterator[str]:
    """Each avoided phrase in a file, with its place and what is better."""
    for line, text in (of_python if name.endswith(".py") else of_pages)(source):
        joined = FINE.sub("", " ".join(_MARK.sub("", text).split()))
        for better, phrase in AVOIDED.items():
            for found in phrase.finditer(joined):
                yield f"{name}:{line}: {joined[max(0, found.start() - 60) : found.end() + 40]!r}: {better}"


def test_each_text_is_plain() -> None:
    files = [ROOT / name for name in FILES]
    for directory in DIRECTORIES:
        files += sorted(path for path in (ROOT / directory).rglob("*") if path.suffix in SUFFIXES and path.is_file())
    assert len(files) > 1500
    assert [
        fault
        for file in files
        if file != Path(__file__)
        for fault in faults(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", '"""The count\n\nis no\nnumber."""\n'),
        ("a.py", 'print(f"{path} is " "no table")\n'),
        ("a.py", 'print(f"{path} is no {kind}")\n'),
        ("a.py", "if True:\n    # Its size is that\n    # of a block.\n    pass  # by name\n"),
        ("a.md", "# Made\n\n- It was made\n  anew.\n"),
        ("run", "make it  # a comment that\n# tells them\n"),
    ],
)
def test_a_phrase_is_found_over_line_ends_and_pieces(name: str, source: str) -> None:
    assert len([*faults(name, source)]) == 1


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("a.py", "told = 1\nassert told\nprint(told is None)\n"),
        ("a.py", '# There is no\n# such name.\nprint("that", "of")\n'),
        ("a.md", "made from that\n\nof each\n"),
        ("a.md", "**eventide** tells you when\n"),
    ],
)
def test_names_and_separate_texts_are_not_joined(name: str, source: str) -> None:
    assert [*faults(name, source)] == []

"""Each JSON document of the command line has a schema below docs/reference/json, and real documents fit it."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from support.documentation.json_documents import DIRECTORY, ERROR, problems, samples, schema_of, widened

REFERENCE = Path(__file__).parents[2] / "docs/reference"
UNSTABLE = {"demo"}  # docs/stability.md


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the verbs print on small tables, by verb."""
    documents = defaultdict(list)
    for verb, document in samples(tmp_path_factory.mktemp("tables")):
        documents[verb].append(document)
    return documents


def test_each_verb_has_a_schema_and_prints_a_document(printed: dict[str, list[dict[str, Any]]]) -> None:
    pages = "".join(path.read_text() for path in REFERENCE.glob("command_line_*.md"))
    verbs = set(re.findall(r"^## (.+)$", pages, re.MULTILINE)) - UNSTABLE
    assert printed.keys() == verbs | {ERROR}
    assert {path.name for path in DIRECTORY.iterdir()} == {f"{verb.replace(' ', '_')}.schema.json" for verb in printed}


def test_what_the_verbs_print_fits_their_schemas(printed: dict[str, list[dict[str, Any]]]) -> None:
    wrong = {
        f"{verb}: {problem}"
        for verb, documents in printed.items()
        for document in documents
        for problem in problems(schema_of(verb), document)
    }
    assert wrong == set(), "run python -m support.documentation.json_documents"


def test_a_schema_takes_what_it_was_made_of_and_nothing_else() -> None:
    schema = widened(widened({}, {"a": 1, "b": [{"c": "x"}]}), {"a": None, "b": []})
    assert list(problems(schema, {"a": 2, "b": [{"c": "y"}]})) == []
    assert list(problems(schema, {"a": 1.5, "b": [{"c": 1}, {}], "d": True})) == [
        "$.a is number, not ['integer', 'null']",
        "$.b[0].c is integer, not string",
        "$.b[1] lacks c",
        "$.d isn't in the schema",
    ]
    assert list(problems(schema, {"a": 1})) == ["$ lacks b"]


@pytest.mark.parametrize("path", sorted(DIRECTORY.iterdir()), ids=lambda path: path.name)
def test_a_schema_names_its_draft_and_title(path: Path) -> None:
    schema = json.loads(path.read_text())
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"].startswith("What eventide ")
    assert schema["type"] == "object"

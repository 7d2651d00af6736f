"""MySqlDebeziumAvroPayload below version 9: no two kinds of Hudi read such a table alike, so eventide refuses it.

Hudi 0.15 orders log records by the text of `_event_seq`, and compares with the base file by its two numbers. Hudi 1.0 and
1.1 compare numbers everywhere; of two log records at one place, Hudi 1.0 keeps the earlier one, and 1.1 the later one.
"""

from pathlib import Path

import pyarrow as pa
import pytest

from support.judge import HudiJudge
from support.judge.options import (
    AVRO_LOG_BLOCKS,
    BUCKET_INDEX,
    MERGE_ON_READ,
    NO_METADATA_TABLE,
    PAYLOADS,
    table_name,
    table_version,
)
from support.run.command_line import content_of, run

SCHEMA = pa.schema(dict.fromkeys(("id", "part", "_event_seq", "_change_operation_type", "text"), pa.string()))
PLACES = "9.5", "9.40", "10.1"  # in the order of numbers, and in the opposite one as texts


def written(judge: HudiJudge, path: Path) -> None:
    """Two commits of each pair of places, over another key's base row."""
    options = MERGE_ON_READ | BUCKET_INDEX | NO_METADATA_TABLE | AVRO_LOG_BLOCKS | table_name("debezium")
    options |= {
        "hoodie.datasource.write.payload.class": f"{PAYLOADS}.debezium.MySqlDebeziumAvroPayload",
        "hoodie.datasource.write.precombine.field": "_event_seq",
        "hoodie.payload.ordering.field": "_event_seq",
        "hoodie.bucket.index.num.buckets": "1",
    }
    if judge.version != "0.15.0":
        options |= table_version(8)
    pairs = [(first, second) for first in PLACES for second in PLACES]
    for commit in (0, 1, 2):
        found = [("base", "9.5")] if commit == 0 else [("|".join(pair), pair[commit - 1]) for pair in pairs]
        rows = [
            {"id": key, "part": "a", "_event_seq": place, "_change_operation_type": "u", "text": f"text {commit}"}
            for key, place in found
        ]
        operation = "upsert" if commit else "bulk_insert"
        judge.write(path, rows, SCHEMA, options=options, operation=operation, mode="append" if commit else "overwrite")


def winners(judge: HudiJudge, path: Path) -> dict[str, str]:
    return {row["id"]: row["text"] for row in judge.read(path).to_pylist() if row["id"] != "base"}


def kept(*pairs: str) -> dict[str, str]:
    """The first record of these pairs wins, and the second one of the others."""
    names = [f"{first}|{second}" for first in PLACES for second in PLACES]
    return {name: "text 1" if name in pairs else "text 2" for name in names}


BY_NUMBERS = kept("9.40|9.5", "10.1|9.5", "10.1|9.40")
BY_TEXTS = kept("9.5|9.40", "9.5|10.1", "9.40|10.1")
BY_NUMBERS_THE_FIRST = kept("9.40|9.5", "10.1|9.5", "10.1|9.40", "9.5|9.5", "9.40|9.40", "10.1|10.1")


@pytest.mark.broad
@pytest.mark.parametrize(
    ("writer", "expected"), [("judge_015", BY_TEXTS), ("judge_102", BY_NUMBERS_THE_FIRST)], ids=["0.15", "1.0.2"]
)
def test_hudi_0_15_and_1_0_read_other_rows_than_1_1(
    writer: str, expected: dict[str, str], tmp_path: Path, judge_111: HudiJudge, request: pytest.FixtureRequest
) -> None:
    judge: HudiJudge = request.getfixturevalue(writer)
    path = tmp_path / "debezium"
    written(judge, path)
    assert winners(judge, path) == expected
    assert winners(judge_111, path) == BY_NUMBERS

    before = content_of(path)
    for words in (
        ("plan", "--before", "2026-03-03T00:00Z"),
        ("compact", "--before", "2026-03-03T00:00Z"),
        ("read",),
        ("show",),
        ("verify",),
    ):
        answer = run(words[0], str(path), *words[1:])
        assert answer.exit_code == 3, f"{words}: {answer.stdout} {answer.stderr}"
        assert "payload.class=" in answer.stderr, words
        assert "MySqlDebeziumAvroPayload" in answer.stderr, words
        assert "then upgrade it to version 9" in answer.stderr, words
    assert content_of(path) == before

"""Tables whose records carry operations, as Flink's changelog mode writes them, are refused by every verb alike."""

from pathlib import Path

import pytest

from support.files.logs import avro_block, with_meta, written_schema
from support.judge.hudi_judge import JudgeUnavailableError
from support.run.command_line import content_of, run
from support.run.maven import JarUnavailableError
from support.run.real_parts import require_or_skip
from support.tables.small import LATER_MS, make, rows
from support.writers.java_writer import JavaWriter

SCHEMA = (
    '{"type": "record", "name": "t", "fields": [{"name": "_hoodie_operation", "type": "string"},'
    ' {"name": "id", "type": "string"}, {"name": "ms", "type": "long"}]}'
)
LOCAL = ("--engine", "local")


def last_instant(path: Path) -> str:
    return max(file.name for file in (path / ".hoodie").rglob("*.deltacommit.requested"))[:17]


def assert_refused(path: Path, before_ms: int) -> None:
    before = content_of(path)
    for words in (
        ("show", path),
        ("read", path, "--query", "snapshot"),
        ("plan", path, "--before", before_ms),
        ("compact", path, "--before", before_ms, *LOCAL),
        ("compact", path, "--before", before_ms, "--schedule-only", *LOCAL),
        ("verify", path),
        ("verify", path, "--deep"),
    ):
        answer = run(*words)
        assert answer.exit_code == 3, f"{words}: {answer.exit_code} {answer.stdout} {answer.stderr}"
        assert "hoodie.allow.operation.metadata.field=true" in answer.stderr, words
    assert content_of(path) == before


@pytest.mark.parametrize("version", [6, 9])
def test_every_verb_refuses_a_table_with_operations(version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = make(path, version)
    table.upsert(rows(("k0", 0, "one")))
    table.upsert(rows(("k0", 1, "two")))
    assert run("show", path).exit_code == run("verify", path, "--deep").exit_code == 0
    log = max(path.rglob(".*.log.*"), key=lambda file: file.name)
    instant = last_instant(path)
    record = with_meta({"_hoodie_operation": "D", "id": "k0", "ms": LATER_MS}, "k0", instant)
    with log.open("ab") as appended:  # a log file that got shorter would be damage
        appended.write(avro_block(instant, written_schema(SCHEMA), [record]))
    assert_refused(path, LATER_MS + 1)


@pytest.mark.broad
@pytest.mark.parametrize(("hudi", "version"), [pytest.param("0.15.0", 6, marks=pytest.mark.proof), ("1.1.1", 9)])
def test_every_verb_refuses_a_changelog_table_of_hudi(hudi: str, version: int, tmp_path: Path) -> None:
    path = tmp_path / "t"
    options = {"hoodie.allow.operation.metadata.field": "true"}
    try:
        with JavaWriter(
            hudi, version, [], tmp_path / "w", options=options, dying={path: "requested"}, whole=2
        ) as writer:
            writer.kill()
    except (JarUnavailableError, JudgeUnavailableError) as missing:
        require_or_skip(f"Hudi {hudi} can't run here: {missing}")
    assert_refused(path, LATER_MS)

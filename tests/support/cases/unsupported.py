"""What every verb has to answer on a table that eventide does not support."""

from collections.abc import Mapping
from pathlib import Path

from support.run.command_line import run
from support.tables.small import LATER_MS

LOCAL = ("--engine", "local")
INSTANT = "20260102030405006"
CATALOG = ("--option", "hoodie.datasource.hive_sync.metastore.uris=thrift://localhost:1", "--database", "lake")


def refused_by_every_verb(path: Path, properties: Mapping[str, str]) -> None:
    """Each verb exits with 3 and names one of these properties with its value. No cure removes or restores data."""
    for words in _verbs(path):
        answer = run(*words)
        place = f"{words[0]} {words[2:]}: {answer.exit_code} {answer.stdout} {answer.stderr}"
        assert answer.exit_code == 3, place
        assert any(f"{key}={value}" in answer.stderr for key, value in properties.items()), place
        assert not any(word in answer.stderr for word in ("restore", "remove", "roll back", "delete it")), place


def _verbs(path: Path) -> list[tuple[object, ...]]:
    rows = path.parent / "rows.json"
    rows.write_text('{"id": "k0", "part": "a"}\n')
    page = path.parent / "report.html"
    return [
        ("show", path),
        ("read", path),
        ("read", path, "--query", "read_optimized"),
        ("read", path, "--query", "incremental", "--begin", "0"),
        ("read", path, "--as-of", INSTANT),
        ("plan", path, "--before", LATER_MS),
        ("compact", path, "--before", LATER_MS, *LOCAL),
        ("compact", path, "--before", LATER_MS, "--schedule-only", *LOCAL),
        ("serve", path, "--rounds", "1", "--data-latency", "1h", *LOCAL),
        ("ingest", path, rows, *LOCAL),
        ("freshness", path),
        ("verify", path),
        ("verify", path, "--deep"),
        ("repair", path),
        ("repair", path, "--apply"),
        ("report", path, "--to", page),
        ("sync", path, *CATALOG),
        ("clean", path, "--dry-run"),
        ("clean", path),
        ("archive", path),
        ("savepoint", path, INSTANT),
        ("tag", path),
        ("tag", path, "kept"),
        ("rollback", path, INSTANT),
        ("restore", path, INSTANT),
    ]

"""The verbs of a table as spans of a trace."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from eventide import ConfigError, Table
from support.tables.traced import BEFORE, ROWS, paths, recorded_spans, table_of_two_slices

VERBS: dict[str, Callable[[Table], Any]] = {
    "upsert": lambda table: table.upsert(ROWS),
    "insert": lambda table: table.insert(ROWS),
    "bulk_insert": lambda table: table.bulk_insert(ROWS),
    "insert_overwrite": lambda table: table.insert_overwrite(ROWS),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(ROWS),
    "delete": lambda table: table.delete(where="id = 'a'"),
    "update": lambda table: table.update({"at": 20_000}, "id = 'a'"),
    "merge": lambda table: table.merge(ROWS, when_matched_update=True),
    "alter": lambda table: table.alter(add={"fare": "double"}),
    "resume": Table.resume,
    "clean": Table.clean,
    "archive": Table.archive,
    "rollback": lambda table: table.rollback(table.history()[0].instant),
    "savepoint": lambda table: table.savepoint(table.history()[0].instant),
    "tag": lambda table: table.tag("now"),
    "verify": Table.verify,
    "repair": lambda table: table.repair(apply=True),
    "lost_keys": Table.lost_keys,
    "rebuild_metadata_table": Table.rebuild_metadata_table,
}
NO_LOCK = {"verify", "lost_keys", "resume", "repair", "archive", "clean"}  # nothing is written here


@pytest.fixture
def table(tmp_path: Path) -> str:
    return str(table_of_two_slices(tmp_path / "trips"))


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    return recorded_spans(monkeypatch)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_one_trace_with_its_waits_for_the_lock(verb: str, table: str, spans: InMemorySpanExporter) -> None:
    VERBS[verb](Table.open(table))
    found = paths(spans)
    assert found[verb].attributes == {"table": Path(table).as_uri()}
    assert any(path.endswith("wait for the lock") for path in found) or verb in NO_LOCK


def test_what_is_kept_and_deleted_again_is_a_trace_each(table: str, spans: InMemorySpanExporter) -> None:
    opened = Table.open(table)
    first = opened.history()[-1].instant
    steps: dict[str, Callable[[], Any]] = {
        "savepoint": lambda: opened.savepoint(first),
        "restore": lambda: opened.restore(first),
        "delete_savepoint": lambda: opened.delete_savepoint(first),
        "tag": lambda: opened.tag("now"),
        "delete_tag": lambda: opened.delete_tag("now"),
    }
    for name, step in steps.items():
        spans.clear()
        step()
        assert name in paths(spans)


def test_cleaning_and_archiving_wait_for_the_lock_in_their_traces(table: str, spans: InMemorySpanExporter) -> None:
    kept = {"hoodie.cleaner.commits.retained": "1", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    opened = Table.open(table, kept)
    opened.compact(before=BEFORE)
    for _ in range(4):
        opened.bulk_insert(ROWS)
    opened.compact(before=BEFORE)
    spans.clear()
    assert opened.clean().deleted
    assert "clean / wait for the lock" in paths(spans)
    spans.clear()
    assert opened.archive()
    assert "archive / wait for the lock" in paths(spans)


def test_a_verb_that_is_refused_is_a_trace_with_the_type_of_the_error(table: str, spans: InMemorySpanExporter) -> None:
    with pytest.raises(ConfigError):
        Table.open(table).clean(0)
    (span,) = spans.get_finished_spans()
    assert (span.name, span.status.status_code, span.status.description) == ("clean", StatusCode.ERROR, "ConfigError")

"""Names that a table holds are shown with control characters escaped: none forges a line of a log or moves a cursor."""

import html
import logging
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide import Table
from eventide.cli.console import Console, table_of
from eventide.results.detail import Detail
from eventide_adapters.metrics.local_files import JsonLines, PrometheusTextfile
from eventide_core import errors
from eventide_core.errors import EventideError, printable
from eventide_core.table.catalog.metric import Metric

HOSTILE = "a\x1b[2J\x07\r\nERROR forged\u2028\u202elast\x9b1m"
UNSEEN = "\x1b\x07\r\n\u2028\u202e\x9b"
CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EventideError)]


@given(st.text())
def test_a_printable_text_has_no_control_characters_and_keeps_all_others(text: str) -> None:
    shown = printable(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u2028\u2029\u202a\u202e\u2066" for c in shown)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_shows_a_name_on_one_line(kind: type[EventideError], caplog: pytest.LogCaptureFixture) -> None:
    error = kind(f"the partition {HOSTILE} is not there")
    logging.getLogger("pipeline").error("failed: %s", error)
    for shown in (str(error), caplog.records[-1].getMessage()):
        assert not set(shown) & set(UNSEEN)
        assert r"\x1b[2J\x07\r\nERROR forged\u2028\u202elast\x9b1m" in shown


def test_what_the_command_line_shows_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(is_json=False, is_quiet=False)
    console.result({}, f"compacted {HOSTILE}", table_of("slices", ["partition"], [[HOSTILE]]))
    console.tell(HOSTILE)
    console.say(HOSTILE)
    out, err = capsys.readouterr()
    assert out.count(r"\x1b[2J") == 3
    assert err.count(r"\x1b[2J") == 1
    assert not set(out + err) & (set(UNSEEN) - {"\n"})


def test_a_name_of_a_table_is_one_label_of_a_metric(tmp_path: Path) -> None:
    metric = Metric("log_files", "logs", 3)
    PrometheusTextfile(str(tmp_path / "a.prom"), "eventide").write(HOSTILE + '"} 7', 0, [metric])
    JsonLines(str(tmp_path / "a.jsonl"), "eventide").write(HOSTILE, 0, [metric])
    lines = (tmp_path / "a.prom").read_bytes().splitlines(keepends=True)
    assert [line.split(b" ")[0] for line in lines[:2]] == [b"#", b"#"]
    assert len(lines) == 3
    assert lines[2].endswith(b'\\"} 7"} 3\n')
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == 1


def test_plans_and_reports_show_the_names_of_partitions_escaped(tmp_path: Path) -> None:
    """Of what a directory can be called, and a writer lets pass."""
    hostile = "<b>\u202etxt\u2028forged"
    rows = pa.table({"id": ["a", "b"], "part": [hostile] * 2, "ms": [1_790_000_000_000, 1_790_000_009_000]})
    table = Table.create(str(tmp_path / "t"), schema=rows.schema, record_key="id", partition="part", event_time="ms")
    table.upsert(rows)
    table.upsert(rows)
    told = table.plan_compaction(1_790_000_010_000).explain(Detail(is_verbose=True))
    assert r"<b>\u202etxt\u2028forged" in told
    assert not any(line.startswith("forged") for line in told.splitlines())
    table.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert not set(page) & {"\u202e", "\u2028"}
    assert html.escape("<b>") + r"\u202e" in page
    assert "<b>\\" not in page

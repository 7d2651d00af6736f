"""How log files are asked for their facts: in portions."""

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eventide_core.service.common.facts.log_facts import LogFactsReader
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.files.slice_read import BlockFilter
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.timeline.layout import layout_of

_HELD_OF_EACH = 64 * 1024
_HELD = 8 * 1024 * 1024


class _Content:
    def summarize(self, logs: Sequence[LogFile], shape: Any) -> list[LogFacts]:
        assert shape.event_time_field == "ts"
        none = frozenset[str]()
        timed = [(log, EventTimeRange(log.size, log.size)) for log in logs]
        return [LogFacts(log, times, none, 0, none, HeaderCheck.NONE, False, times) for log, times in timed]


class _Engine:
    def __init__(self) -> None:
        self.asked: list[list[LogFile]] = []

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        self.asked += [list(item) for item in items]
        return [function(item) for item in self.asked]


@given(st.lists(st.tuples(st.integers(1, 1200), st.sampled_from([0, 1800, 1 << 16, 1 << 17, 1 << 30])), max_size=4))
def test_each_log_file_is_asked_once_in_portions_that_fit_into_memory(runs: list[tuple[int, int]]) -> None:
    sizes = [size for count, size in runs for _ in range(count)]
    logs = [LogFile(LogFileName(f"f{n}", "20261125000000000", 1), f"p/f{n}", size) for n, size in enumerate(sizes)]
    content: Any = _Content()
    engine: Any = _Engine()
    state: Any = SimpleNamespace(
        listing=(),
        commits={},
        publications={},
        config=SimpleNamespace(layout=layout_of(9)),
        timeline=SimpleNamespace(archived=()),
        cut_ms=None,
        blocks_of_slices=lambda: BlockFilter(frozenset(), None),
        blocks=lambda: BlockFilter(frozenset(), None),
    )
    shape: Any = SimpleNamespace(event_time_field="ts", event_time_source="ts")
    facts = LogFactsReader(content, engine, engine).read(state, shape, logs, are_stats_proof=False)
    assert [log for portion in engine.asked for log in portion] == logs
    assert {path: fact.event_times.min_ms for path, fact in facts.items()} == {log.path: log.size for log in logs}
    for portion in engine.asked:
        assert len(portion) <= 500
        assert sum(min(log.size, _HELD_OF_EACH) for log in portion[:-1]) < _HELD

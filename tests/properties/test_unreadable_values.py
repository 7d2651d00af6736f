"""Random lives of tables whose other writers leave event times that cannot be read, in every type that can hold them.

The oracle is a list of what was written, with the event time of each value (`support/values/event_times.py`).
Whatever a watermark or a gate promises, no record that is before it, or may be, is missing from the read-optimized table.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from eventide import NothingToDoError, Table
from eventide_core.config import BUCKETS, EVENT_TIME_FIELD
from eventide_core.errors import InvalidThresholdError, RefusedError
from eventide_core.service.write.settings import write_shape
from eventide_core.table.timeline.contents.plans import CutMode
from support.run.reach import reached
from support.values.columns import schema_of
from support.values.event_times import LAST_MS, UNREADABLE, VALUES, Value

_THRESHOLDS: Final = {
    "1969-12-31T23:59:59.500Z": -500,
    "1970-01-01T00:00:01Z": 1000,
    "2026-11-20T04:00Z": 1_795_147_200_000,
    "9999-12-31T23:59:59.999Z": LAST_MS + 999,
}


@pytest.fixture(autouse=True)
def other_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of another engine: it asks nothing of event times, and its blocks and stats state none."""

    def shape(*args: Any) -> Any:
        found = write_shape(*args)
        layout = replace(found.layout, notes_event_times=False, tracks_event_times=False)
        return replace(found, refuses_unreadable_times=False, layout=layout)

    monkeypatch.setattr("eventide_core.service.write.append.write_shape", shape)


@dataclass(slots=True)
class Life:
    """A table, and each record that was written to it: key, sequence number, and what its event time is."""

    table: Table
    kind: Any
    values: list[Value]
    random: Random
    written: list[tuple[str, int, int | str | None]] = field(default_factory=list)

    def write(self) -> None:
        keys = self.random.sample("abcdef", self.random.randint(1, 4))
        chosen = [self.random.choice(self.values) for _ in keys]
        seq = [len(self.written) + number for number in range(len(keys))]
        columns = {
            "id": pa.array(keys),
            "at": pa.array([value for value, _ in chosen], self.kind),
            "seq": pa.array(seq),
        }
        self.table.upsert(pa.table(columns))
        self.written += [(key, number, means) for key, number, (_, means) in zip(keys, seq, chosen, strict=True)]
        reached("unreadable event times written by others", [means for _, means in chosen].count(UNREADABLE))
        reached("nulls written by others", [means for _, means in chosen].count(None))

    def compact(self) -> None:
        threshold, cut = self.random.choice([*_THRESHOLDS]), self.random.choice([*CutMode])
        # A T far ahead of the clock and of every record is refused, and an exact view that can't be made any more.
        with suppress(NothingToDoError, InvalidThresholdError, RefusedError):
            self.table.compact(before=threshold, cut=cut)
            assert self.table.freshness().unreadable_event_time_records == 0, "a plan merges those first"
            self.check_promise(_THRESHOLDS[threshold], is_met=self.table.freshness().has_reached(threshold))

    def missing(self) -> Iterator[int | str | None]:
        """What the event times of those records are that the read-optimized table shows in no version, nor a later one."""
        rows = self.table.read_optimized().to_arrow(["id", "seq"]).to_pylist()
        shown = {row["id"]: row["seq"] for row in rows}
        return (means for key, seq, means in self.written if shown.get(key, -1) < seq)

    def check_promise(self, before_ms: int, *, is_met: bool) -> None:
        """That nothing is missing which is, or may be, before that time."""
        if is_met:
            reached("gates met beside unreadable event times", any(means == UNREADABLE for *_, means in self.written))
            broken = [means for means in self.missing() if means == UNREADABLE or _is_before(means, before_ms)]
            assert not broken, f"{broken} before {before_ms}"

    def check(self) -> None:
        found = self.table.freshness()
        missing = [*self.missing()]
        if found.watermark_ms is not None:
            self.check_promise(found.watermark_ms, is_met=True)
        else:
            reached("no watermark for unreadable event times", UNREADABLE in missing)
        assert found.unreadable_event_time_records >= missing.count(UNREADABLE)
        assert found.unknown_event_time_records >= missing.count(None)
        for threshold, milliseconds in _THRESHOLDS.items():
            self.check_promise(milliseconds, is_met=found.has_reached(threshold))
            assert not (None in missing and found.has_reached(threshold, nulls_count=True))


def _is_before(means: int | str | None, before_ms: int) -> bool:
    return isinstance(means, int) and means < before_ms


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", [*VALUES])
@pytest.mark.parametrize(
    "seed",
    [1, *(pytest.param(seed, marks=pytest.mark.broad if seed < 3 else pytest.mark.proof) for seed in range(2, 12))],
)
def test_no_promise_is_more_than_the_view_holds(kind: str, version: int, seed: int, tmp_path: Path) -> None:
    of_column, values = VALUES[kind]
    uri, random = str(tmp_path / "t"), Random(f"{kind} {version} {seed}")
    Table.create(
        uri,
        schema=schema_of(id=pa.string(), at=of_column, seq=pa.int64()),
        record_key="id",
        ordering="seq",
        version=version,
        options={BUCKETS: random.randint(1, 2)},
    )
    named = "at.at" if kind == "nested" else "at"
    life = Life(Table.open(uri, {str(EVENT_TIME_FIELD): named}), of_column, values, random)
    life.write()
    for _ in range(6):
        life.write() if random.random() < 0.65 else life.compact()
        life.check()

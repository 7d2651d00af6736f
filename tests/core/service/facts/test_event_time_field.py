"""One table, one event-time field: what is published in terms of one is never continued in terms of another."""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.errors import ConfigError, RefusedError
from support import golden
from support.thresholds import dividing_plan

FIELD = "hoodie.payload.event.time.field"


def test_the_field_of_the_published_cut_is_the_default_from_then_on(tmp_path: Path) -> None:
    path = str(golden.unpack("v9_null_event_time", tmp_path))  # ordered by `seq`
    by_option = Table.open(path, {FIELD: "event_ts"})
    fresh = by_option.compact(dividing_plan(by_option, "event_ts", "copy")).freshness
    plain = Table.open(path)
    assert plain.freshness() == fresh
    assert plain.plan_compaction(fresh.cut_ms).draft.plan.event_time_field == "event_ts"


def test_another_field_than_the_published_cuts_is_refused(tmp_path: Path) -> None:
    path = str(golden.unpack("v9_null_event_time", tmp_path))
    table = Table.open(path, {FIELD: "event_ts"})
    table.compact(dividing_plan(table, "event_ts", "copy"))
    other = Table.open(path, {FIELD: "seq"})
    with pytest.raises(RefusedError, match="'event_ts'"):
        other.freshness()
    with pytest.raises(RefusedError, match="'event_ts'"):
        other.plan_compaction(2_000_000_000_000)


def test_an_unknown_field_is_reported_with_the_fields_that_the_table_has(tmp_path: Path) -> None:
    table = Table.open(str(golden.unpack("v9_no_deletes", tmp_path)), {FIELD: "landed_at"})
    with pytest.raises(ConfigError, match=r"landed_at.*event_ts"):
        table.plan_compaction(0)

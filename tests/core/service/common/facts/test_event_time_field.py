"""One table, one event-time field: what is published in terms of one is never continued in terms of another.

And when Hudi's write stats state all event times of that field.
"""

from pathlib import Path

import pytest

from eventide import Table
from eventide_core.config import EVENT_TIME_FIELD, TRACK_EVENT_TIMES, Options
from eventide_core.errors import ConfigError, RefusedError
from eventide_core.service.common.facts.event_time_field import are_stats_proof
from eventide_core.table.records.event_time_texts import EventTimeTexts
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from support.pasts import golden
from support.tables.thresholds import dividing_plan

FIELD = "hoodie.payload.event.time.field"
SCHEMA = AvroSchema.of(
    '{"type": "record", "name": "row", "fields": ['
    '{"name": "ts", "type": "long"}, {"name": "other", "type": "long"}, {"name": "seen", "type": ["null", "long"]}]}'
)
LOCAL = '{"type": "record", "name": "row", "fields": [{"name": "at", "type": {"type": "long", "logicalType": "%s"}}]}'


def shape_of(field: str, schema: AvroSchema = SCHEMA, zone: str | None = None) -> RecordShape:
    return RecordShape(schema, MergeRule.COMMIT_TIME_ORDERING, (), field, event_time_texts=EventTimeTexts(zone))


TRACKED = {str(TRACK_EVENT_TIMES): "true"}


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
        table.plan_compaction("2026-11-21T00:00Z")


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({}, "ts", False),
        (TRACKED, "ts", False),
        ({str(EVENT_TIME_FIELD): "ts"}, "ts", False),  # as `--event-time` gives it, whatever field a writer tracked
        (TRACKED | {str(EVENT_TIME_FIELD): "ts"}, "ts", True),
        (TRACKED | {str(EVENT_TIME_FIELD): "other"}, "ts", False),
        (TRACKED | {str(EVENT_TIME_FIELD): "seen"}, "seen", False),
        ({str(TRACK_EVENT_TIMES): "false", str(EVENT_TIME_FIELD): "ts"}, "ts", False),
    ],
)
def test_stats_of_hudi_count_only_if_both_options_of_its_writers_are_given(
    given: dict[str, str], field: str, expected: bool
) -> None:
    assert are_stats_proof(shape_of(field), Options(given), {}) is expected


def test_stats_of_upstream_commits_are_no_proof() -> None:
    """By an option, or by the table's settings."""
    given = {**TRACKED, str(EVENT_TIME_FIELD): "ts"}
    upstream = {"hoodie.write.track.event.time.propagate.from.upstream": "true"}
    assert are_stats_proof(shape_of("ts"), Options(given), {})
    assert not are_stats_proof(shape_of("ts"), Options(given | upstream), {})
    assert not are_stats_proof(shape_of("ts"), Options(given), upstream)


def test_stats_of_hudi_take_local_times_for_utc() -> None:
    schema = AvroSchema.of(LOCAL % "local-timestamp-micros")
    given = Options({**TRACKED, str(EVENT_TIME_FIELD): "at"})
    assert are_stats_proof(shape_of("at", schema), given, {})
    assert are_stats_proof(shape_of("at", schema, "UTC"), given, {})
    assert not are_stats_proof(shape_of("at", schema, "Europe/Berlin"), given, {})
    assert are_stats_proof(shape_of("at", AvroSchema.of(LOCAL % "timestamp-micros"), "Europe/Berlin"), given, {})

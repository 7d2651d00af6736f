"""Whose event times count: which field has them, and when Hudi's write stats state all of them."""

from __future__ import annotations

import pytest

from eventide_core.config import EVENT_TIME_FIELD, TRACK_EVENT_TIMES, Options
from eventide_core.service.facts.event_time_field import are_stats_proof

SCHEMA = (
    '{"type": "record", "name": "row", "fields": ['
    '{"name": "ts", "type": "long"}, {"name": "other", "type": "long"}, {"name": "seen", "type": ["null", "long"]}]}'
)
TRACKED = {str(TRACK_EVENT_TIMES): "true"}


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
    assert are_stats_proof(SCHEMA, field, Options(given)) is expected

"""Batches of streams in the words of Hudi's sink."""

import pytest

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.settings.stream_batch import BATCH_KEY, StreamBatch, batches_of


def test_a_commit_records_its_batch_as_hudis_sink_does() -> None:
    assert StreamBatch("s", 7).extra_metadata == {"_hudi_streaming_sink_checkpoint": '{"s": "7"}'}


def test_the_batch_that_hudis_sink_recorded_is_read() -> None:
    assert batches_of({BATCH_KEY: '{"default_single_writer":"12"}'}) == (StreamBatch("default_single_writer", 12),)
    assert batches_of({"schema": "{}"}) == ()


@pytest.mark.parametrize("text", ["12", "{", '{"s": "x"}', '{"s": null}', "[]"])
def test_what_names_no_batch_is_reported(text: str) -> None:
    with pytest.raises(CorruptTimelineError, match="names no batches"):
        batches_of({BATCH_KEY: text})

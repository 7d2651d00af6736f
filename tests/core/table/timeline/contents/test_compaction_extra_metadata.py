"""What a compaction publishes is read as it was written, and nothing else is taken for it."""

from dataclasses import replace

import pytest

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.contents.plans import (
    CompactionPlan,
    FallbackReason,
    LeftOver,
    LinkMode,
    PlannedLog,
    PlannedOperation,
)


def _read(texts: dict[str, str]) -> CompactionExtraMetadata | None:
    return CompactionExtraMetadata.of("20261121000000001", CommitMetadata({}, {"schema": "{}", **texts}, "COMPACT"))


def _plan(
    *left_overs: LeftOver, link_mode: LinkMode = LinkMode.COPY, cut_ms: int | None = None, fallbacks: int = 0
) -> CompactionPlan:
    left = PlannedOperation("a", "f", "1", None, 0, (), "base", "", left_overs)
    whole = replace(left, left_overs=(), fallback=FallbackReason.ROLLBACK_BLOCK)
    field = None if cut_ms is None else "ts"
    operations = (left, *[whole] * fallbacks)
    return CompactionPlan("1", operations, AvroSchema.of("{}"), link_mode, "", cut_ms, event_time_field=field)


def _left_over(name: str, new_name: str, deletes: int = 0) -> LeftOver:
    return LeftOver(PlannedLog(f"a/{name}", 1, None), new_name, delete_count=deletes)


def test_a_publication_is_read_as_it_was_written() -> None:
    plan = _plan(_left_over(".old.log.1", ".new.log.1"), cut_ms=200, fallbacks=2)
    uncompacted = {"a/.new.log.1": 150, "a/.new.log.2": None}
    written = CompactionExtraMetadata.of_plan(plan, watermark_ms=-100, late_records=3, uncompacted=uncompacted)
    read = _read(dict(written.texts))
    assert read is not None
    assert (read.cut_ms, read.watermark_ms, read.late_records, read.event_time_field) == (200, -100, 3, "ts")
    assert read.link_mode is LinkMode.COPY
    assert read.links == {"a/.new.log.1": ".old.log.1"}
    assert read.fallbacks == {"rollback-block": 2}
    assert read.uncompacted == uncompacted


def test_the_keys_are_the_ones_that_catalogs_and_earlier_commits_have() -> None:
    plan = _plan(_left_over("log", "a", 2), link_mode=LinkMode.SYMLINK, cut_ms=2)
    written = CompactionExtraMetadata.of_plan(plan, watermark_ms=1, uncompacted={"a/a": 1})
    assert written.deletes == {"a/a": 2}
    assert set(written.texts) == {
        "hoodie.ro.event.time.cut",
        "hoodie.ro.event.time.field",
        "hoodie.ro.event.time.watermark",
        "hoodie.ro.late.records",
        "eventide.cut",
        "eventide.link.mode",
        "eventide.symlink.operations",
        "eventide.fallbacks",
        "eventide.waiting.event.times",
        "eventide.left.over.deletes",
    }


def test_a_compaction_that_promises_no_time_publishes_no_cut() -> None:
    read = _read(dict(CompactionExtraMetadata.of_plan(_plan()).texts))
    assert read is not None
    assert not read.has_cut
    assert (read.cut_ms, read.watermark_ms, read.late_records, read.event_time_field) == (None, None, None, None)


def test_a_commit_of_another_engine_published_nothing() -> None:
    assert _read({}) is None


@pytest.mark.parametrize(
    ("key", "text", "wanted"),
    [
        ("hoodie.ro.event.time.cut", "soon", "cut_ms"),
        ("hoodie.ro.event.time.watermark", "", "watermark_ms"),
        ("hoodie.ro.late.records", "1.5", "late_records"),
        ("eventide.link.mode", "teleport", "link_mode"),
        ("eventide.symlink.operations", "[]", "links"),
        ("eventide.fallbacks", "{", "fallbacks"),
        ("eventide.waiting.event.times", '{"a": "soon"}', "uncompacted"),
        ("eventide.left.over.deletes", '{"a": -1}', "deletes"),
    ],
)
def test_a_damaged_value_is_reported_when_it_is_read(key: str, text: str, wanted: str) -> None:
    read = _read({"eventide.link.mode": "copy", key: text})
    assert read is not None
    with pytest.raises(CorruptTimelineError, match=f"20261121000000001 has {key}"):
        getattr(read, wanted)

"""What a compaction publishes is read as it was written, and nothing else is taken for it."""

import pytest

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.timeline.commit_metadata import CommitMetadata
from eventide_core.table.timeline.compaction_extra_metadata import CompactionExtraMetadata, PublishedThreshold
from eventide_core.table.timeline.plans import LinkMode


def _read(texts: dict[str, str]) -> CompactionExtraMetadata | None:
    return CompactionExtraMetadata.of("20261121000000001", CommitMetadata({}, {"schema": "{}", **texts}, "COMPACT"))


def test_a_publication_is_read_as_it_was_written() -> None:
    written = CompactionExtraMetadata.write(
        "20261121000000001",
        link_mode=LinkMode.COPY,
        cut=PublishedThreshold(200, -100, 3, "ts"),
        links={"a/.new.log.1": ".old.log.1"},
        fallbacks={"rollback-block": 2},
        uncompacted={"a/.new.log.1": 150, "a/.new.log.2": None},
    )
    read = _read(dict(written.texts))
    assert read is not None
    assert (read.cut_ms, read.watermark_ms, read.late_records, read.event_time_field) == (200, -100, 3, "ts")
    assert read.link_mode is LinkMode.COPY
    assert read.links == {"a/.new.log.1": ".old.log.1"}
    assert read.fallbacks == {"rollback-block": 2}
    assert read.uncompacted == {"a/.new.log.1": 150, "a/.new.log.2": None}


def test_the_keys_are_the_ones_that_catalogs_and_earlier_commits_have() -> None:
    written = CompactionExtraMetadata.write(
        "1", link_mode=LinkMode.PREFIX, cut=PublishedThreshold(2, 1, 0, "ts"), uncompacted={"a": 1}, deletes={"a": 2}
    )
    assert written.deletes == {"a": 2}
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
    read = _read(dict(CompactionExtraMetadata.write("1", link_mode=LinkMode.COPY).texts))
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

"""What a table says of itself, when the write that said it has been archived."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from eventide_core.errors import CorruptTimelineError, UnsupportedTableError
from eventide_core.ports import ArchivedAction, Lease
from eventide_core.service.common.facts.log_facts import LogFactsReader
from eventide_core.service.common.state.table import TableState
from eventide_core.table.files.file_name import LogFileName
from eventide_core.table.files.file_slice import LogFile
from eventide_core.table.files.log_facts import HeaderCheck, LogFacts
from eventide_core.table.records.event_time import EventTimeRange
from eventide_core.table.records.record_order import MergeRule
from eventide_core.table.records.record_shape import RecordShape
from eventide_core.table.schema.avro_schema import AvroSchema
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.archived_timeline import MergeLimits
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata
from eventide_core.table.timeline.contents.compaction_extra_metadata import CompactionExtraMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, LinkMode
from eventide_core.table.timeline.file_system_view import FileSystemView
from eventide_core.table.timeline.instant import Action, Instant, State
from eventide_core.table.timeline.layout import layout_of
from eventide_core.table.timeline.timeline import Timeline


def _t(number: int) -> str:
    return f"202611210000000{number:02d}"


def _write(requested: int, completed: int | None) -> Instant:
    completion = None if completed is None else _t(completed)
    return Instant(_t(requested), Action.COMMIT, State.COMPLETED, completion)


def _says(**extra: str) -> CommitMetadata:
    return CommitMetadata({}, extra, "COMPACT")


def _cut(milliseconds: int) -> CommitMetadata:
    plan = CompactionPlan("", (), AvroSchema.of("{}"), LinkMode.COPY, "", milliseconds, event_time_field="ts")
    published = CompactionExtraMetadata.of_plan(plan, watermark_ms=milliseconds)
    return CommitMetadata({}, published.texts, "COMPACT")


@dataclass(slots=True)
class Archive:
    """Archived writes, and which of them were requested."""

    held: Mapping[Instant, CommitMetadata | None] = field(default_factory=dict[Instant, CommitMetadata | None])
    asked: list[str] = field(default_factory=list[str])
    read: list[str] = field(default_factory=list[str])

    def refresh(self) -> None:
        raise AssertionError("a state stays as it is")

    def find(self, requested_time: str) -> Instant | None:
        self.asked.append(requested_time)
        return next((i for i in self.held if i.requested_time == requested_time), None)

    def writes(self, begin: str, end: str) -> Iterator[Instant]:
        for instant in sorted(self.held, reverse=True):
            if begin <= instant.requested_time <= end:
                self.asked.append(instant.requested_time)
                yield instant

    def encode(self, actions: Sequence[ArchivedAction]) -> bytes:
        raise AssertionError(actions)

    def undone(self, begin: str) -> frozenset[str]:
        raise AssertionError(f"no log file is there whose write since {begin} is unknown")

    def lost_files(self) -> Mapping[str, str]:
        raise AssertionError("only a verification asks for lost files")

    def append(self, actions: Sequence[ArchivedAction], lease: Lease) -> None:
        raise AssertionError(f"a state stays as it is, without {actions} of {lease}")

    def merge(self, limits: MergeLimits, lease: Lease) -> None:
        raise AssertionError(f"a state stays as it is, without {limits} and {lease}")

    def commit(self, requested_time: str) -> CommitMetadata | None:
        self.read.append(requested_time)
        return next((m for i, m in self.held.items() if i.requested_time == requested_time), None)


def _state(
    active: Mapping[Instant, CommitMetadata],
    archive: Archive,
    *,
    version: int = 9,
    ended: tuple[int, ...] = (),
) -> TableState:
    timeline = Timeline.of(active)
    settings = f"hoodie.table.version={version}\nhoodie.table.type=MERGE_ON_READ"
    return TableState(
        config=TableConfig.parse(settings, "t"),
        timeline=timeline,
        archive=archive,
        commits={i.requested_time: metadata for i, metadata in active.items()},
        listing=(),
        replaced_at={},
        view=FileSystemView.build(timeline, (), layout=layout_of(version), replaced_at={}),
        ended=frozenset(_t(n) for n in ended),
    )


def test_the_schema_is_that_of_the_newest_write_even_if_it_is_archived() -> None:
    archive = Archive({_write(1, 2): _says(schema="old"), _write(3, 4): _says(schema="new"), _write(5, 6): _says()})
    assert _state({_write(7, 8): _says()}, archive).schema.text == "new"
    assert archive.asked == [_t(5), _t(3)]


def test_the_archive_is_not_read_for_a_schema_that_an_active_write_has() -> None:
    archive = Archive({_write(1, 2): _says(schema="old")})
    assert _state({_write(7, 8): _says(schema="new")}, archive).schema.text == "new"
    assert archive.asked == []


def test_a_table_without_a_write_that_has_a_schema_is_refused() -> None:
    with pytest.raises(UnsupportedTableError, match="schema"):
        _ = _state({_write(7, 8): _says()}, Archive({_write(1, 2): _says()})).schema


@pytest.mark.parametrize("version", [6, 8, 9])
def test_the_cut_of_an_archived_compaction_holds(version: int) -> None:
    times = ((1, None), (3, None)) if version == 6 else ((1, 2), (3, 4))
    archive = Archive({_write(*times[0]): _cut(100), _write(*times[1]): _cut(200)})
    state = _state({_write(7, None if version == 6 else 8): _says()}, archive, version=version, ended=(1, 3))
    assert (state.cut_ms, state.published_cut.event_time_field) == (200, "ts")


def test_the_archive_is_not_asked_for_a_cut_in_a_table_that_eventide_never_compacted() -> None:
    archive = Archive({_write(1, 2): _says()})
    assert _state({_write(7, 8): _says()}, archive).cut_ms is None
    assert archive.asked == []


def test_on_version_6_the_archive_is_not_read_for_a_cut_that_an_active_commit_has() -> None:
    archive = Archive({_write(1, None): _cut(100)})
    assert _state({_write(7, None): _cut(200)}, archive, version=6, ended=(1, 7)).cut_ms == 200
    assert archive.asked == []


def test_an_archived_compaction_that_was_back_dated_may_have_published_the_last_cut() -> None:
    archive = Archive({_write(1, 9): _cut(200)})
    assert _state({_write(7, 8): _cut(100)}, archive, ended=(1, 7)).cut_ms == 200


def test_a_compaction_that_was_rolled_back_or_that_hudi_completed_published_no_cut() -> None:
    archive = Archive({_write(1, 2): _cut(100), _write(3, 4): _says()})
    assert _state({_write(7, 8): _says()}, archive, ended=(1, 3, 5)).cut_ms == 100


def test_archived_writes_leave_out_what_is_still_active() -> None:
    """An archival that died before it removed the active files has them in both places."""
    both = _write(3, 4)
    archive = Archive({_write(1, 2): _says(), both: _says()})
    assert list(_state({both: _says(), _write(7, 8): _says()}, archive).archived_writes()) == [_write(1, 2)]


def test_a_write_whose_metadata_the_archive_lost_is_named() -> None:
    archive = Archive({_write(1, 2): None})
    with pytest.raises(CorruptTimelineError, match=_t(1)):
        _state({_write(7, 8): _says()}, archive).commit(_write(1, 2))


@dataclass(frozen=True, slots=True)
class Content:
    """Logs that all hold event times from `least_ms` to 300."""

    least_ms: int

    def summarize(self, logs: Sequence[LogFile], shape: RecordShape) -> list[LogFacts]:
        assert shape.event_time_field == "ts"
        times = EventTimeRange(self.least_ms, 300)
        return [
            LogFacts(
                log,
                times,
                frozenset({_t(1)}),
                0,
                rolled_back=frozenset(),
                check=HeaderCheck.NONE,
                has_merged_block=False,
                uncompacted=times,
            )
            for log in logs
        ]


class InLine:
    def map(self, function: Any, items: Sequence[Any], *, sizes: object = None, on_done: object = None) -> list[Any]:
        assert sizes is None
        assert on_done is None
        return [function(item) for item in items]


def _waiting(log_version: int, archive: Archive, *, version: int, least_ms: int = 50) -> EventTimeRange:
    """What waits in a log that a compaction at 3, archived since, gave its name; the last cut is 200."""
    active = {_write(7, None if version == 6 else 8): _cut(200)}
    state = _state(active, archive, version=version)
    if version >= 8:  # as `TableState.load` does for what wrote the log files that exist
        state = replace(state, timeline=state.timeline.with_archived(archive.held))
    name = LogFileName("f", _t(3), log_version, "0-0-1")
    log = LogFile(name, f"a/{name}", 100)
    content: Any = Content(least_ms)
    shape = RecordShape(AvroSchema.of("{}"), MergeRule.EVENT_TIME_ORDERING, ("ts",), "ts")
    return (
        LogFactsReader(content, InLine(), InLine())
        .read(state, shape, [log], are_stats_proof=False)[log.path]
        .uncompacted
    )


def _merged_early(log_version: int, *, version: int) -> Archive:
    """A compaction at 3 that took of such a log what lies before 120."""
    path = f"a/{LogFileName('f', _t(3), log_version, '0-0-1')}"
    plan = CompactionPlan(_t(3), (), AvroSchema.of("{}"), LinkMode.COPY, "")
    said = CompactionExtraMetadata.of_plan(plan, uncompacted={path: 120})
    return Archive({_write(3, None if version == 6 else 4): CommitMetadata({}, said.texts, "COMPACT")})


@pytest.mark.parametrize(("version", "log_version"), [(6, 0), (8, 1), (9, 2)])
def test_what_an_archived_compaction_merged_early_does_not_wait(version: int, log_version: int) -> None:
    archive = _merged_early(log_version, version=version)
    assert _waiting(log_version, archive, version=version) == EventTimeRange(120, 300)


def test_the_archive_is_not_asked_of_a_left_over_with_nothing_before_the_cut() -> None:
    archive = _merged_early(1, version=9)
    assert _waiting(1, archive, version=9, least_ms=200) == EventTimeRange(200, 300)
    assert archive.read == []


def test_on_version_6_the_archive_is_not_read_for_a_log_that_a_writer_added() -> None:
    archive = _merged_early(0, version=6)
    assert _waiting(1, archive, version=6) == EventTimeRange(50, 300)
    assert archive.read == []


def test_where_the_archive_lost_the_commit_all_of_the_left_over_waits() -> None:
    assert _waiting(1, Archive(), version=9) == EventTimeRange(50, 300)

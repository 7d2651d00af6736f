"""What a compaction of eventide publishes in its commit's extraMetadata. Only this module reads and writes it.

    hoodie.ro.event.time.cut         epoch milliseconds; this key and the next three only if the compaction publishes a cut
    hoodie.ro.event.time.field       the event-time field
    eventide.cut                     file or exact: what the cut took; absent in commits of earlier versions of eventide
    hoodie.ro.event.time.watermark   epoch milliseconds, as the commit found it: late records may have lowered it since
    hoodie.ro.late.records           a count, as the commit found it
    eventide.link.mode               how left-overs became visible; every commit of eventide's own compactions has it
    eventide.symlink.operations      JSON: path of each left-over's file in the new slice -> name of its log file
    eventide.fallbacks               JSON: reason -> number of slices that were compacted in full for it
    eventide.waiting.event.times     JSON: see `uncompacted`; absent if an exact cut took nothing early
    eventide.left.over.deletes       JSON: path of a left-over's file -> number of its deletes, if it has any

Values are parsed on access, so that a damaged value raises only where it matters. A commit of a plan that another
engine ran has none of these keys.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from eventide_core.errors import CorruptTimelineError
from eventide_core.table.files.file_name import path_in
from eventide_core.table.timeline.contents.commit_metadata import EVENT_TIMES_KEY, WRITER_KEY, CommitMetadata
from eventide_core.table.timeline.contents.plans import CompactionPlan, CutMode, LinkMode

CUT_KEY = "hoodie.ro.event.time.cut"
_EVENT_TIME_FIELD_KEY = "hoodie.ro.event.time.field"
WATERMARK_KEY = "hoodie.ro.event.time.watermark"
LATE_RECORDS_KEY = "hoodie.ro.late.records"
CUT_MODE_KEY = "eventide.cut"
LINK_MODE_KEY = "eventide.link.mode"
_LINKS_KEY = "eventide.symlink.operations"
_FALLBACKS_KEY = "eventide.fallbacks"
_WAITING_KEY = "eventide.waiting.event.times"
_DELETES_KEY = "eventide.left.over.deletes"


@dataclass(frozen=True, slots=True)
class CompactionExtraMetadata:
    """What the compaction at `instant`, a requested time, published: `texts` as in extraMetadata.

    Every property raises CorruptTimelineError if its text is invalid.
    """

    instant: str
    texts: Mapping[str, str] = field(repr=False)

    @classmethod
    def of(cls, instant: str, commit: CommitMetadata) -> "CompactionExtraMetadata | None":
        """What a completed write published; None if it is not a compaction of eventide."""
        return cls(instant, commit.extra_metadata) if LINK_MODE_KEY in commit.extra_metadata else None

    @classmethod
    def of_plan(
        cls,
        plan: CompactionPlan,
        *,
        watermark_ms: int | None = None,
        late_records: int = 0,
        uncompacted: Mapping[str, int | None] | None = None,
    ) -> "CompactionExtraMetadata":
        """What the compaction of a plan publishes. Without a cut it publishes no freshness: the previous cut stays true.

        There is no watermark (None) if a log file that the compaction did not merge has an event time that cannot be read.
        `late_records` counts those that the commit found.
        """
        linked = {path: left for op in plan.operations for path, left in op.linked.items()}
        fallbacks = {str(reason): count for reason, count in plan.fallbacks.items()}
        texts = {
            LINK_MODE_KEY: str(plan.link_mode),
            _LINKS_KEY: json.dumps({path: left.log_file.name for path, left in linked.items()}, sort_keys=True),
            _FALLBACKS_KEY: json.dumps(fallbacks, sort_keys=True),
        }
        if plan.cut_ms is not None and plan.event_time_field is not None:
            texts[CUT_KEY] = str(plan.cut_ms)
            texts[CUT_MODE_KEY] = str(plan.cut)
            texts[_EVENT_TIME_FIELD_KEY] = plan.event_time_field
            if watermark_ms is not None:
                texts[WATERMARK_KEY] = str(watermark_ms)
            texts[LATE_RECORDS_KEY] = str(late_records)
        if uncompacted:
            texts[_WAITING_KEY] = json.dumps(uncompacted, sort_keys=True)
        deletes = {path: left.delete_count for path, left in linked.items() if left.delete_count}
        if deletes:
            texts[_DELETES_KEY] = json.dumps(deletes, sort_keys=True)
        return cls(plan.instant, texts)

    @property
    def has_cut(self) -> bool:
        return CUT_KEY in self.texts

    @property
    def cut_ms(self) -> int | None:
        return self._number(CUT_KEY)

    @property
    def cut_mode(self) -> CutMode | None:
        """What the cut took; None if the commit does not state it."""
        text = self.texts.get(CUT_MODE_KEY)
        return CutMode(text) if text in list(CutMode) else None

    @property
    def watermark_ms(self) -> int | None:
        """The watermark when the compaction was committed; None if there was none."""
        return self._number(WATERMARK_KEY)

    @property
    def late_records(self) -> int | None:
        return self._number(LATE_RECORDS_KEY)

    @property
    def event_time_field(self) -> str | None:
        return self.texts.get(_EVENT_TIME_FIELD_KEY)

    @property
    def event_times(self) -> str | None:
        """What names the event times of this commit's figures (EventTimeTexts.source)."""
        return self.texts.get(EVENT_TIMES_KEY)

    @property
    def link_mode(self) -> LinkMode:
        text = self.texts[LINK_MODE_KEY]
        if text not in list(LinkMode):
            raise self._corrupt(LINK_MODE_KEY, f"none of {', '.join(LinkMode)}")
        return LinkMode(text)

    @property
    def links(self) -> Mapping[str, str]:
        """The original log file's name of each left-over file that the compaction made, by path."""
        return {path: str(name) for path, name in self._object(_LINKS_KEY).items()}

    @property
    def origins(self) -> Mapping[str, str]:
        """The original log file's path of each left-over file, by path."""
        return {path: path_in(path.rpartition("/")[0], name) for path, name in self.links.items()}

    @property
    def fallbacks(self) -> Mapping[str, int]:
        """How many slices were compacted in full, by reason."""
        return {reason: count for reason, count in self._object(_FALLBACKS_KEY).items() if isinstance(count, int)}

    @property
    def uncompacted(self) -> Mapping[str, int | None]:
        """For each log file of the new slice that is in the base in whole or in part: the least event time of the rest.

        None if there is no rest: for carried tombstones, and for left-overs that an exact cut has merged in whole.
        """
        times = self._object(_WAITING_KEY)
        if not all(since is None or isinstance(since, int) for since in times.values()):
            raise self._corrupt(_WAITING_KEY, "no event times")
        return times

    @property
    def deletes(self) -> Mapping[str, int]:
        """The number of deletes in each left-over file, by path; without the files of which the commit has no number."""
        counts = self._object(_DELETES_KEY)
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            raise self._corrupt(_DELETES_KEY, "no counts")
        return counts

    def _number(self, key: str) -> int | None:
        text = self.texts.get(key)
        if text is None:
            return None
        if not text.removeprefix("-").isdecimal():
            raise self._corrupt(key, "no number")
        return int(text)

    def _object(self, key: str) -> dict[str, Any]:
        try:
            return {str(name): value for name, value in json.loads(self.texts.get(key) or "{}").items()}
        except (ValueError, AttributeError, RecursionError):
            raise self._corrupt(key, "no object") from None

    def _corrupt(self, key: str, what: str) -> CorruptTimelineError:
        return CorruptTimelineError(
            f"the compaction at {self.instant} has {key}={self.texts[key][:80]!r}, {what}; roll it back and "
            "compact again"
        )


NO_CUT_YET: Final = CompactionExtraMetadata("", {})


def publications_of(commits: Mapping[str, CommitMetadata]) -> dict[str, CompactionExtraMetadata]:
    """What the compactions of eventide among these commits published, by requested time."""
    published = ((time, CompactionExtraMetadata.of(time, commit)) for time, commit in commits.items())
    return {time: publication for time, publication in published if publication is not None}


def ends_of_logs(commits: Mapping[str, CommitMetadata]) -> dict[str, int]:
    """How many bytes each log file had after the last of these commits that wrote to it, by path."""
    ends: dict[str, int] = {}
    for commit in commits.values():
        for stat in commit.stats:
            if stat.log_version is not None:
                ends[stat.path] = max(ends.get(stat.path, 0), stat.file_size_bytes)
    return ends


def writers_of_logs(commits: Mapping[str, CommitMetadata]) -> dict[str, Mapping[str, int]]:
    """The writes that put records into each log file, by path: how many blocks at least. `commits` are by requested time.

    A left-over that eventide copied or linked has the writers of its original log file.
    """
    writers: dict[str, Mapping[str, int]] = {}
    origins: dict[str, str] = {}
    for time, commit in commits.items():
        published = CompactionExtraMetadata.of(time, commit)
        if published is not None:
            origins.update(published.origins)
            continue
        # Only of its own writes does eventide know that records and deletes have separate blocks.
        both = 2 if WRITER_KEY in commit.extra_metadata else 1
        alone: list[Mapping[str, int]] = [{}, {time: 1}, {time: both}]  # shared: most log files have one writer
        for stat in commit.stats:
            own = alone[(stat.num_writes > 0) + (stat.num_deletes > 0)]
            if own and stat.log_version is not None:
                path = stat.path
                writers[path] = {**writers[path], **own} if path in writers else own
    for path, source in origins.items():
        if source in writers:
            writers[path] = {**writers.get(path, {}), **writers[source]}
    return writers

"""One cut of several tables: each as of the same event time, or none of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from eventide.table.open_table import OpenTable
from eventide.table.table import Table
from eventide_core.errors import ConfigError, TagNotFoundError, WatermarkNotFoundError, format_timestamp
from eventide_core.service.common.facts.watermark_views import view_as_of_watermark
from eventide_core.table.records.event_time import Moment, parse_threshold

if TYPE_CHECKING:
    from eventide.rows.reader import Rows
    from eventide_core.action.freshness.freshness import Freshness
    from eventide_core.service.rollback.savepoint import Tag


@dataclass(frozen=True, slots=True)
class Cut:
    """`tables` as of one T, `threshold_ms`, which each of them has reached by its files and its sources.

    `cut[table]` are the rows of the newest read-optimized view of T: everything before T that had come when its compaction
    was planned, and with an exact cut at T nothing else. Each view is found when the cut is made and stays what it was,
    whatever is written or compacted since. A clean may remove its files, and then reading it fails; `tag` keeps them.
    """

    threshold_ms: int
    tables: tuple[Table, ...]
    _rows: Mapping[str, "Rows"]
    _compactions: Mapping[str, str]

    def __getitem__(self, table: Table | str) -> "Rows":
        """The rows of one of the tables, which is given itself or by its URI. Raises ConfigError for another one."""
        uri = table.uri if isinstance(table, OpenTable) else table
        if uri not in self._rows:
            raise ConfigError(f"the cut has no table {uri!r}; it has {', '.join(self._rows)}")
        return self._rows[uri]

    def __repr__(self) -> str:
        return f"<Cut before {format_timestamp(self.threshold_ms)} of {', '.join(self._rows)}>"

    def tag(self, name: str) -> "tuple[Tag, ...]":
        """Keeps the view of each table under a name, or of none: what fails takes back the tags of this cut.

        A run that was killed leaves some of the tags; the same call keeps the others. Raises as `Table.tag`.
        """
        about = self._about
        earlier = [_tagged(table, name, about) for table in self.tables]
        try:
            kept = [tag or self._keep(table, name, about) for table, tag in zip(self.tables, earlier, strict=True)]
        except BaseException:  # also Ctrl-C
            for table, tag in zip(self.tables, earlier, strict=True):
                if tag is None and _tagged(table, name, about) is not None:
                    table.delete_tag(name)
            raise
        return tuple(kept)

    @property
    def _about(self) -> str:
        return f"cut before {format_timestamp(self.threshold_ms)} of {', '.join(sorted(self._rows))}"

    def _keep(self, table: Table, name: str, about: str) -> "Tag":
        return table._application.savepoints.save_tag(
            name, instant=None, threshold_ms=self.threshold_ms, comments=about, compaction=self._compactions[table.uri]
        )


def at(moment: Moment, tables: Iterable[Table]) -> Cut:
    """One cut of several tables before T: ISO-8601 with a zone, a datetime with a zone, or epoch milliseconds.

    The tables may be on different stores. Raises WatermarkNotFoundError, which names each table that is behind and what
    holds it back; CleanedHistoryError if the files of a view are gone; InvalidThresholdError for a T that cannot be read.
    """
    threshold_ms = parse_threshold(moment)
    chosen = _checked(tables)
    behind = [one for table in chosen if (one := _behind(table, threshold_ms)) is not None]
    if behind:
        raise WatermarkNotFoundError(
            f"no cut before {format_timestamp(threshold_ms)}: {'; '.join(behind)}; compact up to T, or use an earlier T"
        )
    compactions = {t.uri: _view_of(t, threshold_ms) for t in chosen}
    # Planned once: a plan made later could find another view.
    plans = {t.uri: partial(t._application.queries.as_of_watermark, threshold_ms, compactions[t.uri]) for t in chosen}
    rows = {t.uri: replace(t._rows(plans[t.uri]), plan_again=None) for t in chosen}
    return Cut(threshold_ms, chosen, rows, compactions)


def _checked(tables: Iterable[Table]) -> tuple[Table, ...]:
    chosen = tuple(tables)
    for table in chosen:
        if not isinstance(table, OpenTable):
            raise ConfigError(f"{table!r} is not a table: pass what `Table.open` returns")
    uris: Sequence[str] = [table.uri for table in chosen]
    if not uris or len(set(uris)) < len(uris):
        raise ConfigError(f"a cut is of one or more different tables, not of {uris}")
    return chosen


def _view_of(table: Table, threshold_ms: int) -> str:
    """The compaction that left the newest view of T. Raises WatermarkNotFoundError if the sources came to T after it."""
    state = table.state()
    view = view_as_of_watermark(state, threshold_ms, is_newest=True)
    if not table._application.arrival.had_come(state, view, threshold_ms):
        raise WatermarkNotFoundError(
            f"no cut before {format_timestamp(threshold_ms)}: the view of {table.uri} at that time is of the compaction at "
            f"{view.compaction.requested_time}, before its sources had come so far; compact up to T again, or use a later T"
        )
    return view.compaction.requested_time


def _behind(table: Table, threshold_ms: int) -> str | None:
    """Why a table has not reached T; None if it has."""
    fresh = table.freshness(is_exact=False)
    return None if fresh.has_reached(threshold_ms) else f"{table.uri} is behind, at {reached(fresh)}"


def reached(fresh: "Freshness") -> str:
    """How far a table is, and what holds it back."""
    at_ms = format_timestamp(fresh.watermark_ms)
    holder = next((one for one in fresh.sources if one.name == fresh.held_back_by), None)
    return at_ms if holder is None else f"{at_ms}, held back by its source {holder.name} ({holder.evidence})"


def _tagged(table: Table, name: str, about: str) -> "Tag | None":
    """The tag of that name that an earlier run of the same cut has made."""
    try:
        tag = next(one for one in table.tags() if one.name == name)
    except (StopIteration, TagNotFoundError):
        return None
    return tag if about in tag.savepoint.remarks.splitlines() else None

"""Looks up the slices of record keys in the record index of Hudi's metadata table, instead of in every base file's footer.

Reads only. The slices and the index must be of one state of the table:

1. The timeline is listed. If it has other completed actions than when the slices were planned, files decide.
2. The index must have followed each of these actions, and none may be being built. It is read as of then: an action that
   completes meanwhile may already be in it.
3. The timeline is listed again. If an action has completed since, the index may name a place that the planned slices don't
   have, such as after a clustering, and files decide.

`action/query/key_places.py` decides what follows. A damaged index decides nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from eventide_core.action.query.key_places import is_looked_up, slices_by_places
from eventide_core.action.write.index import may_leave_keys
from eventide_core.config import INDEX_TYPE, Options
from eventide_core.ports import KeyIndex
from eventide_core.service.common.metadata_table.upkeep import complete_record_index
from eventide_core.service.common.state.table_files import UNREADABLE_METADATA_TABLE, TableFiles
from eventide_core.table.files.slice_read import KeyForms, QueryPlan, SliceRead
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.timeline import Timeline


@dataclass(frozen=True, slots=True)
class RecordIndexLookup:
    files: TableFiles
    options: Options

    def may_leave_keys(self, config: TableConfig) -> bool:
        """Whether a row may be in another partition than the one that its fields name."""
        return may_leave_keys(config, self.options)

    def kept(
        self,
        config: TableConfig,
        plan: QueryPlan,
        slices: tuple[SliceRead, ...],
        named: Sequence[KeyForms] | None,
    ) -> tuple[SliceRead, ...]:
        """Of these slices of the plan those that hold the keys, or all of them if the index doesn't decide.

        Each of `named` has the forms of one key; None: the filter names no keys. Raises what listing the timeline raises.
        """
        if not is_looked_up(config, self.options.text(INDEX_TYPE), plan, slices, named):
            return slices
        try:
            kept = self._by_index(config, plan, slices, named or ())
        except UNREADABLE_METADATA_TABLE:
            return slices
        return slices if kept is None else kept

    def _by_index(
        self, config: TableConfig, plan: QueryPlan, slices: tuple[SliceRead, ...], named: Sequence[KeyForms]
    ) -> tuple[SliceRead, ...] | None:
        timeline = self.files.timeline(config)
        if _completed(timeline) != plan.completed:
            return None
        files = self.files
        index = complete_record_index(files.storage, files.metadata_table, files.codec, config, timeline)
        if index is None:
            return None
        places = self._places(index, named)
        if _completed(self.files.timeline(config)) != plan.completed:
            return None
        groups = {(one.partition, one.file_id) for one in plan.slices}
        return slices_by_places(config, slices, groups, named, places)

    def _places(self, index: KeyIndex, named: Sequence[KeyForms]) -> dict[str, tuple[str, str]]:
        asked: dict[int, list[str]] = {}
        for key in (key for forms in named for key in forms):
            asked.setdefault(index.number_of(key), []).append(key)
        located = self.files.requests.each(lambda number: index.locate(number, asked[number]), tuple(asked))
        return {key: place for places in located for key, place in places.items()}


def _completed(timeline: Timeline) -> frozenset[str]:
    return frozenset(instant.requested_time for instant in timeline.completed)

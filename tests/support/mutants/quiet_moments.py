"""The instants that a compaction may have: conditions Q5a and Q7 to Q10 of docs/invariants.md, each broken separately.

tests/core/action/compaction/test_quiet_moment.py breaks Q6, which eventide's own archival never reaches.
"""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from eventide.rows.writer import arrow_records
from eventide.testing.crash_enumeration import Moment
from eventide.testing.histories import Commit, put, records
from eventide.testing.living_table.table import LivingTable
from eventide_core.action.compaction import link_choice, quiet_moment
from eventide_core.action.compaction.quiet_moment import BackdatingFacts
from eventide_core.config import SCHEMA_MODE, SchemaMode
from eventide_core.ports import NoProgress
from eventide_core.service.common.state import table as state_table
from eventide_core.service.common.state.table_files import TableFiles
from eventide_core.service.compaction.run import CompactionRunner
from eventide_core.service.compaction.scheduling.replan import Replanner
from eventide_core.table.settings.write_shape import WriteOperation
from eventide_core.table.timeline.outcome_file import RecordedEnds
from support.mutants.mutant import (
    AFTER_T,
    BASE,
    BEFORE_T,
    Mutant,
    begin,
    history,
    living,
    writer_unchecked,
    writes,
)

_ELSEWHERE: Commit = (put("k0", 9, "open", partition="b"),)
_UNAWARE: Commit = (put("k1", 9, "unaware"),)


def _writer_sleeps_and_is_rolled_back(table: LivingTable) -> None:
    """Its instant is the first one in the gap below the write that is open when the next compaction is planned."""
    table.bench.clock.sleep(-9)
    table.begin_write((put("k0", 6, "asleep"),))
    ((asleep, _),) = table.open_writes
    table.expire_heartbeats()
    table.begin_write(_ELSEWHERE)
    table.schedule(7)
    assert table.account.plan is not None
    assert table.account.plan.instant != asleep.instant, "Q5a, a write that was rolled back had the instant"
    table.end_write()
    table.execute()
    table.end_write()


def _compacts_under_a_reader(table: LivingTable) -> None:
    """A query is planned; a compaction and the next clean run; then the query reads its files."""
    table.begin_write(_ELSEWHERE)
    for number in range(5):
        table.write((put("k1", 10 + number, f"word {number}"),))
    before = table.bench.process().queries.snapshot()
    table.schedule(3)
    table.execute()
    table.end_write()
    table.clean(2)
    for part in before.slices:
        for path in (part.base_path, *(log for log, _ in part.log_paths)):
            assert path is None or path in table.files, f"Q7, {path} is gone while a reader is in its slice"


def _compacts_across_a_change_of_the_schema(table: LivingTable) -> None:
    table.begin_write(_ELSEWHERE)
    then = table.bench.process().state().schema
    upserts, _ = records((put("k1", 12, "wider"),))
    assert upserts is not None
    wider = upserts.append_column("more", pa.array(["new"]))
    process = table.bench.process()
    append = process.append.having(SCHEMA_MODE, SchemaMode.MERGE)
    append.write(WriteOperation.UPSERT, arrow_records(process, wider, None), NoProgress())
    table.record_others((put("k1", 12, "wider"),))
    assert table.bench.process().state().schema != then, "the history does not get there"
    table.schedule(3)
    table.execute()
    for compaction in (event for event in table.account.completed if event.merged is not None):
        seen = table.bench.process().state().schema_as_of(compaction.instant)
        assert seen == then, f"Q8, as of the compaction at {compaction.instant} the table has columns that came later"
    table.end_write()


def _begins_before_the_plan_is_visible(table: LivingTable) -> None:
    """On version 6, a writer that loaded the timeline without the plan appends to the old slice after the run began."""
    before = table.bench.moment().later(25)
    table.schedule(3)
    plan = table.account.plan
    assert plan is not None
    planned = table.bench.moment().later(1000)
    table.bench.load(before)
    unaware = begin(table.bench.process(), _UNAWARE)
    table.bench.load(Moment({**table.files, **planned.files}, planned.time_ms))
    table.record_others(())
    table.execute()
    table.bench.process().append.complete(unaware)
    table.record_others(_UNAWARE)
    table.execute()
    table.inspect(whole=True)
    seen = table.observer.look(table.bench.process(), (plan.instant,)).as_of[plan.instant]
    assert not [row for row in seen if row[3] == _UNAWARE[0].word], f"Q10, as of {plan.instant} a later write is seen"


def _without(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The facts without the input of one of the conditions."""

    def is_wrong(patch: pytest.MonkeyPatch) -> None:
        real = quiet_moment.why_not_back_to

        def why_not(instant: str, facts: BackdatingFacts) -> str:
            match name:
                case "earliest_retained":
                    facts = replace(facts, earliest_retained=None)
                case _:
                    facts = replace(facts, schema_since="")
            return real(instant, facts)

        for module in (quiet_moment, link_choice):
            patch.setattr(module, "why_not_back_to", why_not)

    return is_wrong


def _rolled_back_instants_are_free(patch: pytest.MonkeyPatch) -> None:
    """Both the rollbacks on the timeline and the records of what was undone state them."""
    patch.setattr(TableFiles, "rolled_back", lambda *_: frozenset())
    patch.setattr(state_table, "recorded_ends", lambda _: RecordedEnds(frozenset(), frozenset()))


def _unaware_writes_are_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(CompactionRunner, "wait_for_unaware_writes", lambda *_: None)
    writer_unchecked(patch)


def _what_unaware_writes_added_is_merged(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replanner, "grown", lambda *_: None)


MUTANTS = (
    Mutant(
        "Q5a",
        "a compaction uses the instant of a write that was rolled back and whose writer wakes up (version 9)",
        _rolled_back_instants_are_free,
        history(writes(BASE, BEFORE_T), _writer_sleeps_and_is_rolled_back, of=lambda: living(9)),
    ),
    Mutant(
        "Q7",
        "a compaction lies before the earliest commit that cleaning retains (version 9)",
        _without("earliest_retained"),
        history(writes(BASE, BEFORE_T, AFTER_T), _compacts_under_a_reader, of=lambda: living(9)),
    ),
    Mutant(
        "Q8",
        "a compaction lies before the last change of the schema (version 9)",
        _without("schema_since"),
        history(writes(BASE, BEFORE_T, AFTER_T), _compacts_across_a_change_of_the_schema, of=lambda: living(9)),
    ),
    Mutant(
        "Q9",
        "a plan does not wait for writes that may not have seen it (version 6)",
        _unaware_writes_are_not_waited_for,
        history(writes(BASE, BEFORE_T, AFTER_T), _begins_before_the_plan_is_visible, of=lambda: living(6)),
    ),
    Mutant(
        "Q10",
        "records of a write that had not seen the plan are merged (version 6)",
        _what_unaware_writes_added_is_merged,
        history(writes(BASE, BEFORE_T, AFTER_T), _begins_before_the_plan_is_visible, of=lambda: living(6)),
    ),
)

"""What docs/reference/steps.md says of each file that an action puts.

Words: *undone*, others have rolled the instant back; *executed*, they have completed it; *archived*, they have also
archived it. The rules named S1 to S3 are in table/timeline/strays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from eventide_core.service.common.transaction.steps import Kind
from eventide_core.table.timeline.instant import State


@dataclass(frozen=True, slots=True)
class Step:
    """One file that an action puts, if absent.

    `file`: its name. `lock`: who may put it. `late`: what a late put that isn't withdrawn, because its process died, would
    do to readers of eventide and of stock Hudi. `ended_by`: what removes it, or makes it harmless. `crash`: what a crash
    after the step leaves.
    """

    file: str
    lock: str
    late: str
    ended_by: str
    crash: str


_LOCK, _OWNER = "table lock", "owner, by its heartbeat"
_S1 = "a stray of rule 1 or 2; stock: what was archived since is missing"
_NEXT_ACTION = "the next action under the lock"
_NOTHING = "nothing: no reader counts it"
_CHANGED = (
    "replaced, on S3, Google Cloud Storage and Azure on the condition that nobody has changed it since it was read; the "
    "lock is checked before and after"
)
_TAKES_BACK = (
    "On a disk and HDFS, it also takes back what others have changed meanwhile, such as declared sources, which have to be "
    "declared again"
)

STEPS: Final[Mapping[tuple[Kind, State], Step]] = {
    (Kind.WRITE, State.REQUESTED): Step(
        "W.deltacommit.requested", _LOCK, _S1, _NEXT_ACTION, "a pending write, rolled back once it is dead"
    ),
    (Kind.WRITE, State.INFLIGHT): Step(
        "W.deltacommit.inflight", _LOCK, _S1, _NEXT_ACTION, "a pending write, rolled back once it is dead"
    ),
    (Kind.WRITE, State.COMPLETED): Step(
        "W.deltacommit",
        _LOCK,
        "undone: a stray of rule 1; stock: a commit whose files are gone. Archived: a duplicate; stock: what was archived "
        "since is missing",
        "the outcome, which a write whose lock was lost claims after the put: undone, it withdraws the file; else "
        + _NEXT_ACTION,
        "the write is committed",
    ),
    (Kind.COMPACTION, State.REQUESTED): Step(
        "C.compaction.requested",
        _LOCK,
        _S1 + ". On version 6 it isn't withdrawn unless it was undone or archived: writers that saw it may follow it",
        _NEXT_ACTION,
        "a plan, which any engine may run",
    ),
    (Kind.COMPACTION, State.INFLIGHT): Step(
        "C.compaction.inflight", _LOCK, _S1, _NEXT_ACTION, "a plan, which the next run continues"
    ),
    (Kind.COMPACTION, State.COMPLETED): Step(
        "C.commit",
        _LOCK,
        "undone: cannot be, the outcome was claimed. Archived: a duplicate; stock: what was archived since is missing",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.PLAN_OF_HUDI, State.INFLIGHT): Step(
        "C.compaction.inflight",
        _LOCK,
        _S1,
        _NEXT_ACTION,
        "eventide's attempt, which the next run continues; Hudi begins again",
    ),
    (Kind.PLAN_OF_HUDI, State.COMPLETED): Step(
        "C.commit",
        _LOCK,
        "archived: a duplicate; stock: what was archived since is missing",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.CLEAN, State.REQUESTED): Step(
        "c.clean.requested",
        _LOCK,
        "nothing: no reader counts it, and what the table needs by then stays; stock: its cleaner completes it, and "
        "finds no file to delete",
        "the next clean, which ends it",
        "a clean, which the next one ends",
    ),
    (Kind.CLEAN, State.INFLIGHT): Step(
        "c.clean.inflight",
        _OWNER,
        "a stray of rule 3 if the requested file is gone; stock: it can't complete the clean",
        "the next action under the lock if the requested file is gone, else the next clean, which ends it",
        "a clean, which the next one ends",
    ),
    (Kind.CLEAN, State.COMPLETED): Step("c.clean", _LOCK, _NOTHING, "the next archival", "the clean is complete"),
    (Kind.ROLLBACK, State.REQUESTED): Step(
        "r.rollback.requested",
        _LOCK,
        "nothing: what it undoes has an outcome, which decides",
        "the next write, clean or rollback, which ends it, or finds it void",
        "a rollback that others end",
    ),
    (Kind.ROLLBACK, State.INFLIGHT): Step(
        "r.rollback.inflight",
        _LOCK,
        "a stray of rule 3 if the requested file is gone; stock: it can't complete the rollback",
        "the next write, clean or rollback, which removes or ends it, or finds it void",
        "a rollback that others end",
    ),
    (Kind.ROLLBACK, State.COMPLETED): Step(
        "r.rollback", _LOCK, _NOTHING, "the next archival", "the rollback is complete"
    ),
    (Kind.RESTORE, State.REQUESTED): Step(
        "s.restore.requested",
        _LOCK,
        "a stray of rule 3; stock: no effect",
        _NEXT_ACTION,
        "nothing is undone yet: another run of the restore continues it, or the next action removes it",
    ),
    (Kind.RESTORE, State.INFLIGHT): Step(
        "s.restore.inflight", _LOCK, _NOTHING, "another run of the restore", "another run completes it"
    ),
    (Kind.RESTORE, State.COMPLETED): Step(
        "s.restore", _LOCK, _NOTHING, "stays on the timeline", "the restore is complete"
    ),
    (Kind.SAVEPOINT, State.INFLIGHT): Step(
        "W.savepoint.inflight",
        _LOCK,
        "it pins files that may be gone, or has the tag of another commit: nothing relies on it",
        "the next action that keeps or deletes savepoints, cleans or archives: it completes or removes it",
        "a pin, with the list of files, which the next such action completes",
    ),
    (Kind.SAVEPOINT, State.COMPLETED): Step(
        "W.savepoint",
        _LOCK,
        "none is late while its pin is there, for its files are; without the pin, others have deleted the savepoint: a "
        "stray of rule 4; stock: archival and cleaning stop there",
        _NEXT_ACTION,
        "the savepoint is complete",
    ),
    (Kind.METADATA_UPDATE, State.REQUESTED): Step(
        "W.deltacommit.requested, of the metadata table",
        _LOCK,
        _NOTHING,
        "the rollback of W",
        "nobody sees it",
    ),
    (Kind.METADATA_UPDATE, State.INFLIGHT): Step(
        "W.deltacommit.inflight, of the metadata table",
        _LOCK,
        _NOTHING,
        "the rollback of W",
        "nobody sees it",
    ),
    (Kind.METADATA_UPDATE, State.COMPLETED): Step(
        "W.deltacommit, of the metadata table",
        _LOCK,
        "a stray of rule 1; stock: names files that are gone, if a restore undid W while it was pending",
        _NEXT_ACTION,
        "nobody sees it before the table's own commit",
    ),
    (Kind.METADATA_COMPACTION, State.REQUESTED): Step(
        "M.compaction.requested, of the metadata table",
        _LOCK,
        _S1,
        _NEXT_ACTION,
        "a plan, which the next action of any engine runs",
    ),
    (Kind.METADATA_COMPACTION, State.INFLIGHT): Step(
        "M.compaction.inflight, of the metadata table",
        _LOCK,
        _S1,
        _NEXT_ACTION,
        "a plan, which is run again",
    ),
    (Kind.METADATA_COMPACTION, State.COMPLETED): Step(
        "M.commit, of the metadata table",
        _LOCK,
        "archived: a duplicate; stock lists what was archived since as uncommitted",
        _NEXT_ACTION,
        "the compaction is committed",
    ),
    (Kind.METADATA_TABLE, State.REQUESTED): Step(
        "0.deltacommit.requested, of a new metadata table",
        _LOCK,
        _NOTHING,
        "the next rebuild",
        "nobody reads it",
    ),
    (Kind.METADATA_TABLE, State.INFLIGHT): Step(
        "0.deltacommit.inflight, of a new metadata table",
        _LOCK,
        _NOTHING,
        "the next rebuild",
        "nobody reads it",
    ),
    (Kind.METADATA_TABLE, State.COMPLETED): Step(
        "0.deltacommit, of a new metadata table",
        _LOCK,
        "nothing: the table's settings don't name it",
        "the next rebuild",
        "nobody reads it before the table's settings name it",
    ),
}


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A `file` that an action puts beside the timelines, in `module` of the core's `service` room, or in an adapter.

    `put`: how. `late`: what a late put does, and what makes it harmless.
    """

    file: str
    module: str
    put: str
    late: str


OTHER_FILES: Final = (
    OtherFile(
        "base file, log file, marker of a write",
        "adapters: format/write",
        "if absent, under names of its own instant",
        "undone: nothing, the record of the undoing shows that the file doesn't count; the next clean removes a base file "
        "and, from version 8 on, a log file. On version 6, stock Hudi shows the rows of a log file once it is archived",
    ),
    OtherFile(
        "base file, left-over, marker of a compaction",
        "compaction/compact_slice",
        "if absent, under the names in the plan",
        "executed: the same content as the file of the other process. Cleaned since: a file of an old slice, removed by the "
        "process itself where the metadata table shows it, else by the next clean",
    ),
    OtherFile(
        "attempt at a plan of another engine",
        "compaction/foreign_plan",
        "if absent, under the table lock",
        "nothing: a number that nobody uses. So two attempts never share the name of a base file",
    ),
    OtherFile(
        "outcome of an instant",
        "common/transaction/outcome",
        "if absent, never replaced; a plan's rollback removes its outcome if writers have followed the plan (version 6)",
        "the first claim decides; a late one finds it, and its process ends what the first one decided",
    ),
    OtherFile(
        "command block of a rollback (version 6)",
        "rollback/run",
        "if absent",
        "nothing: it names an instant that is undone",
    ),
    OtherFile("partition mark", "write/append", "if absent", "nothing: every writer of the partition puts the same"),
    OtherFile(
        "history of Hudi's internal schemas",
        "write/table_schema",
        "if absent, under the instant of the write",
        "nothing: one whose write has not completed doesn't count",
    ),
    OtherFile(
        "hoodie.properties of a new table",
        "common/state/table_files",
        "if absent, in the step before the first commit",
        "a table without a write, which the next writer finds",
    ),
    OtherFile(
        "hoodie.properties without a metadata table, or with a new one",
        "common/metadata_table/drop, common/metadata_table/rebuild, common/transaction/settings_file",
        _CHANGED,
        "the metadata table is taken out of use: readers list the directories. If the process dies, the settings name one "
        "that others have removed before they wrote without it, or an index that theirs lacks: `verify` names the first, "
        "the next action takes either out of use. " + _TAKES_BACK,
    ),
    OtherFile(
        "mark of a metadata table that is being made",
        "common/metadata_table/rebuild",
        "if absent, before its first file; removed after the settings name it",
        "nothing: the next action that changes files while the settings name no metadata table removes it",
    ),
    OtherFile(
        "hoodie.properties with other declared sources",
        "common/transaction/settings_file",
        _CHANGED,
        "the metadata table is taken out of use: readers list the directories. " + _TAKES_BACK,
    ),
    OtherFile(
        "partition marks, settings and index definitions of a new metadata table",
        "common/metadata_table/initialization",
        "replaced",
        "nothing: the table's settings don't name it, or another rebuild has put the same",
    ),
    OtherFile(
        "empty log files and base files of a new metadata table",
        "common/metadata_table/initialization",
        "if absent, under names with the time of the rebuild",
        "nothing: no commit of another rebuild names it. Nor does a late delete of the old metadata table meet the files of "
        "another one. Stock: of two base files of one file group, the one that is listed last",
    ),
    OtherFile(
        "marker of a table that is derived from others",
        "common/facts/arrival",
        "if absent",
        "nothing: it says only that a commit may name sources",
    ),
    OtherFile(
        "view and state of a consumer of windows",
        "common/state/window_consumers",
        "if absent, under the next number",
        "a later state shows that the step didn't count: the process removes its own",
    ),
    OtherFile(
        "marker of a done window",
        "adapters: markers",
        "if absent, after the state that has its event; deleted in the same way",
        "the process itself, or the next round, compares it with the later state, which names the window as doubtful",
    ),
    OtherFile(
        "backup of a repair, and what it changes",
        "repair/backup",
        "the step into the backup first, under the table lock",
        "the step is in the backup, and undoing the repair restores it",
    ),
    OtherFile(
        "archived timeline: file, manifest, `_version_`",
        "adapters: format/timeline",
        "if absent, under the next number; `_version_` is replaced",
        "another archival has the number: it is refused. The last manifest counts, whatever `_version_` says",
    ),
)
"""Held against the code by tests/architecture/test_one_way_to_act.py."""

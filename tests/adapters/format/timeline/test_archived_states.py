"""Whatever an action's files hold, version 6's archive takes the action, or names the completed file that it can't read."""

import json
from itertools import chain, combinations
from pathlib import Path

import pytest

from eventide.testing.histories import NoLock
from eventide_adapters.format.timeline.archived_lsm import open_archived_timeline
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_adapters.storage.local import LocalStorage
from eventide_core.errors import CorruptTimelineError
from eventide_core.ports import ArchivedAction, ArchivedFile
from eventide_core.table.settings.properties import PROPERTIES_PATH
from eventide_core.table.settings.table_config import TableConfig
from eventide_core.table.timeline.contents.clean_metadata import CleaningPolicy, CleanPlan
from eventide_core.table.timeline.contents.commit_metadata import CommitMetadata, WriteStat
from eventide_core.table.timeline.contents.rollback_metadata import RollbackPlan, RollbackTarget
from eventide_core.table.timeline.instant import WRITE_ACTIONS, Action, Instant, State
from support.pasts import golden

CODEC = HudiMetadataCodec()
TIME = "20301121000000001"
STAT = WriteStat("f-0", "p=1/f-0_0-1-0_20301121000000000.parquet", "p=1", "null", num_writes=3, file_size_bytes=9)
COMMIT = CODEC.encode_commit(CommitMetadata({"p=1": (STAT,)}, {"schema": '"string"'}, "UPSERT"), 6)
CONTENTS = {
    "empty": b"",
    "a commit": COMMIT,
    "a plan of a clean": CODEC.encode_clean_plan(CleanPlan(TIME, CleaningPolicy.COMMITS, None, "", {}), ""),
    "a clean": CODEC.encode_clean(CleanPlan(TIME, CleaningPolicy.COMMITS, None, "", {})),
    "a plan of a rollback": CODEC.encode_rollback_plan(
        RollbackPlan(TIME, RollbackTarget("20200101000000000", Action.DELTA_COMMIT), ()), ""
    ),
    "another type": json.dumps({"partitionToWriteStats": {"p=1": [{"numWrites": "three"}]}}).encode(),
    "a number": b"3",
    "torn": COMMIT[:20],
    "no text": b"\xff\xfe\x00",
}
# The action in pending files and in the completed one.
ACTIONS = {
    Action.DELTA_COMMIT: Action.DELTA_COMMIT,
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.REPLACE_COMMIT: Action.REPLACE_COMMIT,
    Action.CLEAN: Action.CLEAN,
    Action.ROLLBACK: Action.ROLLBACK,
}
PENDING = (State.REQUESTED, State.INFLIGHT)


@pytest.mark.parametrize("pending", ACTIONS)
def test_pending_files_of_any_form_or_none_do_not_stop_archival(pending: Action, tmp_path: Path) -> None:
    completed = Instant(TIME, ACTIONS[pending], State.COMPLETED)
    table = golden.unpack("v6_archived", tmp_path)
    config = TableConfig.parse((table / PROPERTIES_PATH).read_text(), str(table))
    archive = open_archived_timeline(LocalStorage(table), config)
    proper = {Action.CLEAN: "a clean", Action.ROLLBACK: "empty"}.get(completed.action, "a commit")
    logs = {path.name for path in (table / config.archive_path).iterdir()}
    for states in chain.from_iterable(combinations(PENDING, count) for count in range(3)):
        for content in CONTENTS.values():
            files = [ArchivedFile(Instant(TIME, pending, state), content, 0) for state in states]
            archive.append([ArchivedAction(completed, (*files, _completed(completed, proper)))], NoLock())
            archive.refresh()
            is_write = completed.action in WRITE_ACTIONS
            assert (archive.find(TIME) is not None) == is_write
            assert not is_write or archive.commit(TIME) is not None
            (log,) = {path.name for path in (table / config.archive_path).iterdir()} - logs
            (table / config.archive_path / log).unlink()


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("action", sorted({*ACTIONS.values()}))
def test_a_completed_file_is_archived_or_named(action: Action, content: str) -> None:
    """One that states something else would be lost with its file."""
    completed = Instant(TIME, action, State.COMPLETED)
    proper = {Action.CLEAN: ("a clean",), Action.ROLLBACK: ()}.get(action, ("a commit",))
    archive = open_archived_timeline(LocalStorage("unused"), _VERSION_6)
    action_of = ArchivedAction(completed, (_completed(completed, content),))
    if content in ("empty", *proper):
        assert archive.encode([action_of])
    elif action not in WRITE_ACTIONS or content in ("another type", "a number", "torn", "no text"):
        with pytest.raises(CorruptTimelineError, match=completed.file_name):
            archive.encode([action_of])


_VERSION_6 = TableConfig.parse("hoodie.table.name=t\nhoodie.table.version=6\nhoodie.table.type=MERGE_ON_READ\n", "t")


def _completed(instant: Instant, content: str) -> ArchivedFile:
    return ArchivedFile(instant, CONTENTS[content], 0)

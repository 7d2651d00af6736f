"""An inflight file without its plan: `verify` names it, and after its cure every service goes on."""

import os
import time
from pathlib import Path

import pytest

from eventide import Table
from eventide.testing.histories import Layout
from eventide_core.errors import BusyError, EventideError
from eventide_core.ports import NoProgress
from support.pasts import golden
from support.pasts.served import LAYOUTS, begin_past, clean
from support.pauses.standstill import Others, verified

TIME = "20991121000000000"
PLANNED = ("compaction", "logcompaction", "replacecommit")
SERVICES = {"hoodie.keep.min.commits": 1, "hoodie.keep.max.commits": 2, "hoodie.cleaner.commits.retained": 1}


def remarks_and_findings(table: Table) -> tuple[list[str], list[tuple[str, str, str]]]:
    check = next(check for check in table.verify().checks if check.name == "timeline")
    return [str(remark) for remark in check.remarks], [(f.path, f.problem, f.cure) for f in check.findings]


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
@pytest.mark.parametrize("action", PLANNED)
def test_an_inflight_action_without_its_plan_is_named_with_its_cure(action: str, name: str, tmp_path: Path) -> None:
    """The file of a process that slept before it put it: others have ended the action, or undone it, and archived it."""
    path = golden.unpack(name, tmp_path)
    timeline = ".hoodie" if name.startswith("v6") else ".hoodie/timeline"
    late = path / timeline / f"{TIME}.{action}.inflight"
    late.write_bytes(b"")
    table = Table.open(str(path), SERVICES)
    _, ((place, problem, cure),) = remarks_and_findings(table)
    assert (place, problem) == (f"{timeline}/{late.name}", f"is an inflight {action} without a plan")
    if action == "compaction":
        with pytest.raises(EventideError):
            table.clean(1)
        assert cure.startswith("remove the file, which loses nothing")
        late.unlink()
    else:
        assert cure == f'run `table.rollback("{TIME}", force=True)`'
        table.rollback(TIME, force=True)
    assert remarks_and_findings(table) == ([], [])
    table.clean(1)
    table.archive()


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
@pytest.mark.parametrize("action", ["clean", "rollback"])
@pytest.mark.parametrize("verb", ["clean", "archive", "save", "rollback"])
def test_a_late_inflight_file_of_a_service_stops_nobody(verb: str, action: str, name: str, tmp_path: Path) -> None:
    """Its process died right after it had put it: others had ended the action meanwhile, and archived it."""
    path = golden.unpack(name, tmp_path)
    late = path / (".hoodie" if name.startswith("v6") else ".hoodie/timeline") / f"{TIME}.{action}.inflight"
    late.write_bytes(b"")
    table = Table.open(str(path), SERVICES)
    _, ((place, problem, _),) = remarks_and_findings(table)
    assert place == str(late.relative_to(path))
    assert problem.startswith("doesn't count")
    match verb:
        case "clean":
            table.clean(1)
        case "archive":
            table.archive()
        case "save":
            table.savepoint(table.state().timeline.writes[-1].requested_time)
        case _:
            table.rollback(TIME)
    assert not late.exists()
    assert remarks_and_findings(table) == ([], [])


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_restore_that_began_without_its_plan_is_run_again(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), SERVICES)
    saved = table.state().timeline.writes[-1].requested_time
    table.savepoint(saved)
    late = path / (".hoodie" if name.startswith("v6") else ".hoodie/timeline") / f"{TIME}.restore.inflight"
    late.write_bytes(b"")
    with pytest.raises(BusyError, match="run the restore again"):
        table.clean(1)
    with pytest.raises(BusyError, match=r"After 3600 s .*, it counts as abandoned"):
        table.restore(saved)
    long_ago = time.time() - 7_200
    os.utime(late, (long_ago, long_ago))
    table.restore(saved)
    assert remarks_and_findings(table) == ([], [])
    table.clean(1)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout.version))
def test_what_has_completed_without_a_plan_is_remarked_on_and_archived(layout: Layout) -> None:
    """Version 6 has the plan in a field of its own in the archive: there is none for an inflight file alone."""
    past = begin_past(clean, layout)
    past.bench.load(past.start)
    others = Others(past.bench)
    others.go_on(1)
    (requested,) = (path for path in past.bench.storage.dump() if path.endswith(".clean.requested"))
    past.bench.storage.delete(requested)
    found = past.bench.process().verifier.verify(is_deep=True, progress=NoProgress())
    assert not found.failed
    (remark,) = next(check for check in found.checks if check.name == "timeline").remarks
    inflight = requested.replace("requested", "inflight")
    assert str(remark).startswith(f"{inflight} has no plan beside it")
    others.go_on(3)
    assert inflight not in past.bench.storage.dump()
    assert verified(past.bench.process()) == ""

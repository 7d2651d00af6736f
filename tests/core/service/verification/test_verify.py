"""`eventide verify` on tables that Hudi wrote: no false alarm through a table's whole life, and what the user is told."""

import pickle
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.parquet as pq
import pytest

from eventide import Table
from eventide_adapters.format.slice.comparison.content_audit import ArrowContentAudit
from eventide_core.errors import NotAHudiTableError, UnsupportedTableError
from eventide_core.table.files.slice_audit import SliceAudit
from eventide_core.table.files.slice_read import SliceRead
from support.pasts import golden
from support.run.command_line import content_of, run, run_json
from support.tables.small import HOUR_MS, SOON, make, rows

pytestmark = pytest.mark.slow

BEFORE = 1_700_001_500_000

T = TypeVar("T")
R = TypeVar("R")


@pytest.mark.parametrize("name", golden.names())
def test_a_table_that_hudi_wrote_is_sound(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    before = content_of(path)
    verification = Table.open(str(path)).verify(deep=True)
    assert verification.ok, verification.failed
    assert content_of(path) == before


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("v6_no_deletes", "copy"),
        ("v6_no_deletes", "symlink"),
        ("v9_log_only", "auto"),
        ("v9_no_deletes", "symlink"),
        ("v6_mdt", "copy"),
        ("v9_mdt", "copy"),
    ],
)
def test_a_table_stays_sound_through_all_that_eventide_does_to_it(name: str, mode: str, tmp_path: Path) -> None:
    """Compacted in part, saved, compacted in full, cleaned, restored, and compacted and rolled back."""
    path = golden.unpack(name, tmp_path)
    table = Table.open(str(path), {"eventide.table.exclusive": "true"})
    saved = table.state().timeline.writes[-1].requested_time
    table.savepoint(saved)
    table.compact(table.plan_compaction(BEFORE, link_mode=mode))
    check_sound(table)
    table.compact(table.plan_compaction("2026-01-01T00:00Z"))
    table.clean(1)
    check_sound(table)
    table.restore(saved)
    check_sound(table)
    table.rollback(table.compact(table.plan_compaction(BEFORE, link_mode=mode)).instant)
    check_sound(table)


def test_a_compaction_of_which_no_old_slice_is_left_is_not_checked(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    for hours in (0, 1):
        table.upsert(rows(("k0", hours, "written")))
    table.compact(before=int(time.time() * 1000) + 2 * HOUR_MS)
    compared = {check.name: check for check in table.verify(deep=True).checks}["compacted-rows"]
    assert (compared.status, compared.remarks) == ("passed", ())
    table.upsert(rows(("k0", 3, "later")))
    assert table.clean(1).deleted
    compared = {check.name: check for check in table.verify(deep=True).checks}["compacted-rows"]
    assert compared.status == "not checked"
    assert compared.remarks == ("1 compacted slice left out: files of the old slice are gone",)


def test_a_log_that_is_older_than_the_archived_timeline_is_no_orphan(tmp_path: Path) -> None:
    """A downgrade of Hudi to version 6 leaves the archived timeline behind."""
    path = golden.unpack("v6_archived", tmp_path)
    archived = list(path.glob(".hoodie/archived/.commits_*"))
    assert archived
    for file in archived:
        file.unlink()
    verification = Table.open(str(path)).verify(deep=True)
    assert verification.ok, verification.failed
    (orphans,) = [check for check in verification.checks if check.name == "orphan-files"]
    assert any("older than the archived timeline" in remark for remark in orphans.remarks)


@pytest.mark.parametrize("is_archive_left_behind", [False, True])
def test_a_left_over_older_than_a_downgrade_is_sound_once_its_compaction_is_archived(
    is_archive_left_behind: bool, tmp_path: Path
) -> None:
    """Version 8 names left-overs as any log file of the slice, and their blocks are older than the slice."""
    path = tmp_path / "t"
    table = make(path, 6)
    for hours in (0, 1, 3):
        table.upsert(rows(("k0", hours, "written")))
    instant = table.compact(before=int(time.time() * 1000) + 2 * HOUR_MS, link_mode="copy").instant
    (left_over,) = path.glob(f"part=*/.*_{instant}.log.0_*")
    later = left_over.name.replace(".log.0_", ".log.1_")
    left_over.rename(left_over.with_name(later))
    for file in path.glob(f".hoodie/{instant}.*"):
        file.write_bytes(file.read_bytes().replace(left_over.name.encode(), later.encode()))
    table = Table.open(str(path), SOON)
    for hours in range(4, 9):
        table.upsert(rows(("k0", hours, "later")))
    assert instant in table.archive()
    if is_archive_left_behind:
        for file in path.glob(".hoodie/archived/.commits_*"):
            file.unlink()
    verification = table.verify(deep=True)
    assert verification.ok, verification.failed


def test_a_link_that_leads_out_of_the_table_is_reported_and_not_followed(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    table = Table.open(str(path), {"eventide.table.exclusive": "true"})
    plan = table.plan_compaction(BEFORE, link_mode="symlink")
    table.compact(plan)
    op = next(op for op in plan.operations if op.left_overs)
    outside = tmp_path / "outside.log"
    outside.write_bytes((path / op.left_overs[0].log_file.path).read_bytes())
    link = next(p for p in path.glob("part=*/.*") if p.is_symlink())
    link.unlink()
    link.symlink_to(outside)
    answer = run("verify", path, "--deep", "--output", "json")
    assert answer.exit_code == 1, answer.stderr
    failed = [check for check in answer.document["checks"] if check["status"] == "failed"]
    assert [check["name"] for check in failed] == ["links"]
    (finding,) = failed[0]["findings"]
    assert finding["path"] == str(link.relative_to(path))
    assert "outside the table" in finding["problem"]


def test_a_link_to_a_directory_leads_nobody_round_in_a_circle(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    before = Table.open(str(path)).snapshot().to_arrow().num_rows
    (path / "part=a" / "round").symlink_to(path)
    table = Table.open(str(path))
    assert table.snapshot().to_arrow().num_rows == before
    assert [check.name for check in table.verify().failed] == ["links"]


def test_the_text_output_lists_damages_with_cures_and_what_was_not_checked(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    sound = run("verify", path, "--verbose")
    assert sound.exit_code == 0
    assert "records were not read: `eventide verify TABLE --deep` reads them" in sound.stdout
    assert len(run("verify", path, "--deep").stdout.splitlines()) <= 3
    log = max(path.glob("part=a/.*.log.*[0-9]"))
    log.unlink()
    answer = run("verify", path)
    assert answer.exit_code == 1
    assert f"committed-files: part=a/{log.name} is missing" in answer.stdout
    assert "cure: " in answer.stdout
    assert "1 failed" in answer.stdout


@pytest.mark.parametrize(("name", "directory"), [("v9_no_deletes", "timeline/"), ("v6_no_deletes", "")])
def test_a_timeline_file_that_hudi_is_about_to_rename_is_no_damage(name: str, directory: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    completed = max((path / ".hoodie" / directory).glob("*.deltacommit"))
    temporary = completed.with_name(f"{completed.name}.fd51b752-5ba2-42d9-9393-0c0688120a7f")
    temporary.write_bytes(b"")
    assert run("verify", path).exit_code == 0
    temporary.rename(completed.with_name(f"{completed.name}.bak"))
    assert "is not an instant that Hudi knows" in run("verify", path).stdout


def test_json_describes_each_check(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    document = run_json("verify", path)
    assert (document["ok"], document["deep"]) == (True, False)
    assert all(check["invariant"] and check["promise"] for check in document["checks"])
    assert {check["status"] for check in document["checks"]} == {"passed", "not checked"}
    names = [check["name"] for check in document["checks"]]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["v9_no_deletes", "v6_compacted"])
def test_an_event_time_field_that_the_table_does_not_have_is_wrong_input(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    refused = run("verify", path, "--event-time", "nope")
    assert refused.exit_code == 2
    assert "hoodie.payload.event.time.field='nope': the table has no such field; its fields are" in refused.stderr


def test_a_partition_that_the_table_does_not_have_is_wrong_usage(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    refused = run("verify", path, "--partition", "nope")
    assert refused.exit_code == 2
    assert f"no partition 'nope' in {path}: give the name of its directory" in refused.stderr
    partition = next(file.parent.name for file in path.rglob(".hoodie_partition_metadata"))
    assert run("verify", path, "--partition", partition).exit_code == 0


@pytest.mark.parametrize("name", ["v6_no_deletes", "v9_no_deletes"])
def test_a_lost_file_is_told_with_its_records_and_commits(name: str, tmp_path: Path) -> None:
    path = golden.unpack(name, tmp_path)
    table = Table.open(path)
    rows = set(table.snapshot().to_arrow()["_hoodie_commit_time"].to_pylist())
    lost = [p for p in path.rglob("*.parquet") if ".hoodie" not in p.parts]
    counts = {str(p.relative_to(path)): pq.read_metadata(p).num_rows for p in lost}
    lost += [p for p in path.rglob(".*.log.*[0-9]") if ".hoodie" not in p.parts]
    for file in lost:
        file.unlink()
    findings = next(c["findings"] for c in run("verify", path, "--output", "json").document["checks"] if c["findings"])
    told = {one["path"]: one["problem"].partition("lost with it: ")[2] for one in findings}
    for file in told:
        if file in counts:
            assert told[file].startswith(f"{counts[file]} record")
    assert {time for time in rows if any(time in text for text in told.values())} == rows


def test_the_cure_of_a_lost_file_says_what_each_way_costs(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9)
    table.upsert(rows(("k0", -9, "base")))
    saved = table.history()[-1].instant
    table.savepoint(saved)
    for number in range(1, 6):
        table.upsert(rows(("k0", number - 9, "later")))
    later = sorted(one.instant for one in table.history() if one.instant > saved)
    logs = sorted((tmp_path / "t").glob("part=a/.*.log.*"))
    logs[-1].unlink()
    (cure,) = cures_of(table)
    assert cure.startswith("restore the file from a copy, which loses nothing; or the table to the savepoint ")
    assert f"{saved}, which loses 5 commits: {', '.join(later[:3])}, ... {later[-1]};" in cure
    table.delete_savepoint(saved)
    (cure,) = cures_of(table)
    assert "no savepoint is older than the file; `table.lost_keys()` lists the keys" in cure


def cures_of(table: Table) -> list[str]:
    failed = {check.name: check for check in table.verify().failed}
    return [finding.cure for finding in failed["committed-files"].findings]


def test_what_a_deep_check_had_to_leave_out_is_not_passed(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    whole = run_json("verify", path, "--deep")
    assert "record-versions" not in whole["not_checked"]
    max(p for p in path.rglob(".*.log.*") if ".hoodie" not in p.parts).unlink()
    document = run("verify", path, "--deep", "--output", "json").document
    of_slices = {"records-readable", "record-counts", "record-versions", "key-indexes", "event-times", "record-keys"}
    statuses = {check["name"]: check["status"] for check in document["checks"]}
    assert {name: statuses[name] for name in of_slices} == dict.fromkeys(of_slices, "not checked")
    assert of_slices <= set(document["not_checked"])
    (reason,) = next(check["remarks"] for check in document["checks"] if check["name"] == "key-indexes")
    assert reason == "left out 1 file slice with missing or damaged files"


def test_an_unsupported_slice_is_left_out_and_the_others_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    assert "records-readable" not in run_json("verify", path, "--deep")["not_checked"]
    audit, seen = ArrowContentAudit.audit, list[str]()

    def refuse_the_first(self: ArrowContentAudit, read: SliceRead, **terms: Any) -> SliceAudit:
        seen.append(read.file_id)
        if len(seen) == 1:
            raise UnsupportedTableError("a column of another type")
        return audit(self, read, **terms)

    monkeypatch.setattr(ArrowContentAudit, "audit", refuse_the_first)
    answer = run("verify", path, "--deep", "--output", "json")
    assert answer.exit_code == 3
    assert len(seen) > 1
    by_name = {check["name"]: check for check in answer.document["checks"]}
    assert {"records-readable", "read-optimized", "record-versions"} <= set(answer.document["not_supported"])
    (reason,) = by_name["records-readable"]["remarks"]
    assert reason.startswith("left out 1 place with what eventide does not support: ")
    assert reason.endswith("a column of another type")


def test_a_path_without_a_table_is_an_error_and_no_finding(tmp_path: Path) -> None:
    assert run("verify", tmp_path).exit_code == 2
    with pytest.raises(NotAHudiTableError):
        Table.open(str(tmp_path)).verify()


class ElsewhereEngine:
    """ports.Engine as a cluster is one: what is to be done goes there, and comes back, as bytes."""

    def map(
        self,
        function: Callable[[T], R],
        items: Sequence[T],
        *,
        sizes: Sequence[int] | None = None,  # noqa: ARG002 - all items are one task
        on_done: Callable[[], None] | None = None,
    ) -> list[R]:
        def run(item: T) -> R:
            there, received = pickle.loads(pickle.dumps((function, item)))
            answer: R = pickle.loads(pickle.dumps(there(received)))
            if on_done is not None:
                on_done()
            return answer

        return [run(item) for item in items]


def test_all_that_is_read_may_be_read_on_a_cluster(tmp_path: Path) -> None:
    path = golden.unpack("v9_no_deletes", tmp_path)
    table = Table.open(str(path))
    table.compact(table.plan_compaction(BEFORE, link_mode="copy"))
    here, elsewhere = table.verify(deep=True), table.verify(deep=True, engine=ElsewhereEngine())
    assert elsewhere == here
    assert here.ok


def check_sound(table: Table) -> None:
    verification = table.verify(deep=True)
    assert verification.ok, verification.failed

"""Damaged or foreign tables: each is answered with its typed error and exit code, and nothing is written."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from eventide import Table
from eventide_adapters.format.timeline.codec import HudiMetadataCodec
from eventide_core.table.timeline.contents.plans import PlannedLog, require_ours
from support.pasts import golden
from support.run.command_line import content_of, run

T = "2023-11-15T00:00Z"


def _set(table: Path, key: str, value: str) -> None:
    path = table / ".hoodie" / "hoodie.properties"
    text = re.sub(rf"^{re.escape(key)}=.*$", f"{key}={value}", path.read_text(), flags=re.MULTILINE)
    path.write_text(text)


def _log(table: Path) -> Path:
    return max(table.glob("part=a/.*.log.*[0-9]"))


def unknown_version(table: Path) -> None:
    _set(table, "hoodie.table.version", "7")


def copy_on_write(table: Path) -> None:
    _set(table, "hoodie.table.type", "COPY_ON_WRITE")


def unknown_merge_mode(table: Path) -> None:
    _set(table, "hoodie.record.merge.mode", "CUSTOM")


def torn_log(table: Path) -> None:
    log = _log(table)
    log.write_bytes(log.read_bytes()[:-20])


def corrupt_log(table: Path) -> None:
    log = _log(table)
    data = bytearray(log.read_bytes())
    data[8:14] = b"\x7f\xff\xff\xff\xff\xff"  # the block's size
    log.write_bytes(data)


def corrupt_records(table: Path) -> None:
    log = _log(table)
    data = bytearray(log.read_bytes())
    data[-140:-40] = b"\xff" * 100
    log.write_bytes(data)


def missing_log(table: Path) -> None:
    _log(table).unlink()


def missing_base(table: Path) -> None:
    min(table.glob("part=a/*.parquet")).unlink()


def torn_base(table: Path) -> None:
    base = min(table.glob("part=a/*.parquet"))
    base.write_bytes(base.read_bytes()[:-200])


def torn_commit(table: Path) -> None:
    commit = max(table.glob(".hoodie/timeline/*_*.deltacommit"))
    commit.write_bytes(commit.read_bytes()[:100])


def not_a_table(table: Path) -> None:
    (table / ".hoodie" / "hoodie.properties").unlink()


def torn_settings(table: Path) -> None:
    path = table / ".hoodie" / "hoodie.properties"
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "checksum" not in line))


@pytest.mark.parametrize(
    ("damage", "exit_code", "kind"),
    [
        (not_a_table, 2, "NotAHudiTableError"),
        (torn_settings, 2, "NotAHudiTableError"),
        (unknown_version, 3, "UnsupportedTableError"),
        (copy_on_write, 3, "UnsupportedTableError"),
        (unknown_merge_mode, 3, "UnsupportedTableError"),
        (torn_log, 2, "CorruptLogBlockError"),
        (corrupt_log, 2, "CorruptLogBlockError"),
        (corrupt_records, 2, "RecordDecodeError"),
        (missing_log, 2, "MissingFileError"),
        (missing_base, 2, "MissingFileError"),
        (torn_commit, 2, "CorruptTimelineError"),
    ],
)
def test_a_compaction_of_a_damaged_table_is_refused_before_anything_is_written(
    damage: Callable[[Path], None], exit_code: int, kind: str, tmp_path: Path
) -> None:
    table = golden.unpack("v9_no_deletes", tmp_path)
    damage(table)
    before = content_of(table)
    answer = run("compact", table, "--before", T, "--engine", "local", "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (exit_code, kind), answer.stderr
    assert content_of(table) == before


def test_a_table_without_meta_fields_has_no_increments(tmp_path: Path) -> None:
    path = golden.unpack("v9_virtual_keys", tmp_path)
    answer = run("read", path, "--query", "incremental", "--begin", "earliest")
    assert (answer.exit_code, answer.stdout) == (3, "")
    assert "hoodie.populate.meta.fields=true" in answer.stderr


def test_a_torn_base_file_is_reported_and_nothing_is_committed(tmp_path: Path) -> None:
    """Base files are first opened by the tasks: the plan stays pending, and can be rolled back."""
    table = golden.unpack("v9_no_deletes", tmp_path)
    torn_base(table)
    answer = run("compact", table, "--before", T, "--engine", "local", "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (2, "CorruptBaseFileError")
    assert not list(table.glob(".hoodie/timeline/*_*.commit"))[1:]
    (requested,) = table.glob(".hoodie/timeline/*.compaction.requested")
    assert run("rollback", table, requested.name[:17]).exit_code == 0
    assert not list(table.glob(".hoodie/timeline/*.compaction.*"))


@pytest.mark.parametrize("side", ["compacted", "remaining"])
def test_a_plan_that_names_files_which_the_table_has_not_is_never_run(side: str, tmp_path: Path) -> None:
    """The plan was inflight, so it may not be planned again in place."""
    path = golden.unpack("v9_no_deletes", tmp_path)
    table = Table.open(str(path))
    scheduled = table.schedule(table.plan_compaction(1_700_001_500_000, link_mode="copy"))
    requested = path / ".hoodie" / "timeline" / f"{scheduled.instant}.compaction.requested"
    codec = HudiMetadataCodec()
    plan = require_ours(codec.decode_plan(requested.read_bytes(), requested.name, scheduled.instant))
    operation = next(op for op in plan.operations if op.left_overs)

    def foreign(log: PlannedLog) -> PlannedLog:
        return replace(log, path=log.path.replace(".log.1_", ".log.7_"))

    if side == "compacted":
        changed = replace(operation, compacted=(*operation.compacted[:-1], foreign(operation.compacted[-1])))
    else:
        left = operation.left_overs[-1]
        changed = replace(
            operation, left_overs=(*operation.left_overs[:-1], replace(left, log_file=foreign(left.log_file)))
        )
    operations = tuple(changed if op is operation else op for op in plan.operations)
    requested.write_bytes(codec.encode_plan(replace(plan, operations=operations)))
    requested.with_name(requested.name.replace("requested", "inflight")).write_bytes(b"")
    before = content_of(path)
    answer = run("compact", path, "--execute", scheduled.instant, "--engine", "local", "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (2, "PlanMismatchError")
    assert content_of(path) == before


VERBS = (
    ("show",),
    ("plan", "--before", T),
    ("read", "--query", "snapshot"),
    ("compact", "--before", T, "--engine", "local"),
    ("verify",),
    ("freshness",),
    ("clean", "--dry-run"),
)


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("v9_no_deletes", "hoodie.datasource.write.drop.partition.columns", "true"),
        ("v9_no_deletes", "hoodie.bootstrap.base.path", "/old"),
        ("v9_copy_on_write", "hoodie.bootstrap.base.path", "/old"),
        ("v6_no_deletes", "hoodie.table.precombine.field", "a.b"),
    ],
)
def test_every_verb_refuses_an_unsupported_table_with_the_same_error(
    name: str, key: str, value: str, verb: tuple[str, ...], tmp_path: Path
) -> None:
    table = golden.unpack(name, tmp_path)
    properties = table / ".hoodie" / "hoodie.properties"
    lines = [line for line in properties.read_text().splitlines() if not line.startswith(f"{key}=")]
    properties.write_text("\n".join([*lines, f"{key}={value}", ""]))
    before = content_of(table)
    answer = run(verb[0], table, *verb[1:], "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (3, "UnsupportedTableError"), answer.stderr
    assert value in answer.document["error"]["message"]
    assert content_of(table) == before

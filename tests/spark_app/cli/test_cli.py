"""The command line: the output of each verb, the end of each failure, and what is never shown or written."""

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from eventide import Table
from eventide_adapters.storage.secret_texts import HIDDEN
from eventide_core.config import CUT
from support.pasts import golden
from support.run.child_processes import environment
from support.run.command_line import content_of, run, run_json

pytestmark = pytest.mark.slow

# In both tables the logs on either side of it differ by slice: some are merged, some are left over.
T = "2023-11-14T22:50Z"
T_MS = 1_700_002_200_000


@pytest.fixture(params=["v6_no_deletes", "v9_no_deletes"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return golden.unpack(request.param, tmp_path)


@pytest.fixture
def table_9(tmp_path: Path) -> Path:
    return golden.unpack("v9_no_deletes", tmp_path)


def _snapshot(table: Path) -> list[list[Any]]:
    rows = run_json("read", table, "--all", "--columns", "id,part,event_ts,val,amount")["data"]
    return sorted(list(row.values()) for row in rows)


def test_an_argument_wins_over_the_option_that_it_stands_for(table_9: Path) -> None:
    plan = ("plan", table_9, "--before", T, "--option", f"{CUT}=exact")
    assert run_json(*plan)["cut"] == "exact"
    assert run_json(*plan, "--cut", "file")["cut"] == "file"


def test_show_prints_the_timeline_the_slices_and_the_event_times_of_each_log_file(table: Path) -> None:
    told = golden.expected(table.name)
    document = run_json("show", table)
    assert set(document) == {"table", "timeline", "file_slices", "pending", "single_writers", "notes"}
    about = document["table"]
    assert (about["version"], about["merge_mode"]) == (int(table.name[1]), "EVENT_TIME_ORDERING")
    assert (about["record_key_fields"], about["event_time_field"], about["cut_ms"]) == (["id"], "event_ts", None)
    assert [entry["requested_time"] for entry in document["timeline"]] == [i["requested_time"] for i in told.instants]
    assert [entry["completion_time"] for entry in document["timeline"]] == [
        i["completion_time"] if about["version"] >= 8 else None for i in told.instants
    ]
    logs = [log for found in document["file_slices"] for log in found["log_files"]]
    assert {log["path"] for log in logs} == {str(p.relative_to(table)) for p in table.glob("part=*/.*.log.*[0-9]")}
    written = [row[told.row_columns.index("event_ts")] for step in told.steps[1:] for row in step.rows]
    assert min(log["min_event_time_ms"] for log in logs) == min(written)
    assert max(log["max_event_time_ms"] for log in logs) == max(written)
    assert document["pending"] == []


def test_show_reports_an_unreadable_log_file_instead_of_failing(table_9: Path) -> None:
    torn = min(table_9.glob("part=*/.*.log.*[0-9]"))
    torn.write_bytes(b"\0" * torn.stat().st_size)
    document = run_json("show", table_9)
    problems = {
        log["path"]: log["problem"] for found in document["file_slices"] for log in found["log_files"] if log["problem"]
    }
    assert list(problems) == [str(torn.relative_to(table_9))]


def test_plan_explains_what_is_merged_and_what_is_left_and_writes_nothing(table: Path) -> None:
    before = content_of(table)
    document = run_json("plan", table, "--before", T)
    assert (document["cut_ms"], document["cut"], document["predicted_watermark_ms"]) == (T_MS, "file", T_MS)
    assert {"operations", "fallbacks", "bytes"} <= set(document)
    assert all({"link_mode", "compacted", "remaining", "reason"} <= set(op) for op in document["operations"])
    assert any(op["remaining"] for op in document["operations"])
    answer = run("plan", table, "--before", T, "--verbose")
    for op in document["operations"]:
        for name in [*op["compacted"], *(left["target"] for left in op["remaining"])]:
            assert name in answer.stdout
    assert content_of(table) == before


def test_data_latency_counts_back_from_now(table_9: Path) -> None:
    near = run_json("plan", table_9, "--data-latency", "1h")["cut_ms"]
    far = run_json("plan", table_9, "--data-latency", "1d1h")["cut_ms"]
    assert 0 <= near - far - 86_400_000 + 600_000 < 1_200_000


def test_compact_makes_the_watermark_true_and_changes_no_row(table: Path) -> None:
    before = _snapshot(table)
    document = run_json("compact", table, "--before", T, "--engine", "local")
    assert (document["watermark_ms"], document["cut_ms"], document["late_records"]) == (T_MS, T_MS, 0)
    assert document["metrics"]["log_files_compacted"] > 0
    assert document["instant"] in [entry["requested_time"] for entry in run_json("show", table)["timeline"]]
    assert _snapshot(table) == before
    fresh = [
        row for row in run_json("read", table, "--all", "--query", "read_optimized")["data"] if row["event_ts"] < T_MS
    ]
    assert {row["id"] for row in fresh} >= {row[0] for row in before if row[2] < T_MS}


def test_a_scheduled_plan_is_executed_by_its_instant(table: Path) -> None:
    before = _snapshot(table)
    scheduled = run_json("compact", table, "--before", T, "--schedule-only")
    assert (scheduled["state"], scheduled["watermark_ms"], scheduled["predicted_watermark_ms"]) == (
        "requested",
        None,
        T_MS,
    )
    pending = run_json("show", table)["pending"]
    assert [(entry["requested_time"], entry["cut_ms"]) for entry in pending] == [(scheduled["instant"], T_MS)]
    document = run_json("compact", table, "--execute", scheduled["instant"], "--engine", "local")
    assert (document["instant"], document["state"], document["watermark_ms"]) == (
        scheduled["instant"],
        "completed",
        T_MS,
    )
    assert _snapshot(table) == before


def test_rollback_removes_exactly_what_the_plan_made(table: Path) -> None:
    before = content_of(table)
    instant = run_json("compact", table, "--before", T, "--schedule-only")["instant"]
    document = run_json("rollback", table, instant)
    assert document["deleted"]
    after = content_of(table)
    # That the instant was rolled back stays said, so that nobody uses it again.
    assert set(after) - set(before) == {f".hoodie/.aux/eventide/{instant}.outcome"}
    assert {path: after[path] for path in before} == before


def test_freshness_is_null_before_the_first_compaction_and_reported_by_partition(table: Path) -> None:
    document = run_json("freshness", table)
    assert (document["watermark_ms"], document["cut_ms"], document["by_partition"]) == (None, None, None)
    assert document["late_records"] == 0
    run_json("compact", table, "--before", T, "--engine", "local")
    document = run_json("freshness", table, "--by", "partition")
    assert document["watermark_ms"] == T_MS
    assert {name: found["watermark_ms"] for name, found in document["by_partition"].items()} == {
        "part=a": T_MS,
        "part=b": T_MS,
        "part=c": T_MS,
    }


def test_freshness_that_is_required_and_not_there_ends_with_1(table_9: Path) -> None:
    assert run("freshness", table_9, "--require", T).exit_code == 1
    run_json("compact", table_9, "--before", T, "--engine", "local")
    assert run("freshness", table_9, "--require", T).exit_code == 0
    later = run("freshness", table_9, "--require", T_MS + 1, "--output", "json")
    assert (later.exit_code, later.document["met"]) == (1, False)


def test_waiting_for_freshness_ends_when_it_is_there(table_9: Path) -> None:
    opened = Table.open(str(table_9))
    compaction = threading.Timer(0.2, lambda: opened.compact(opened.plan_compaction(T)))
    compaction.start()
    answer = run("freshness", table_9, "--require", T, "--wait", "2m", "--output", "json")
    compaction.join()
    assert (answer.exit_code, answer.document["met"]) == (0, True)


def _wrong_uses(table: Path) -> list[tuple[list[object], str]]:
    return [
        (["show", table.parent / "nothing"], "not a Hudi table"),
        (["show"], "TABLE"),
        (["shew", table], "shew"),
        (["show", table, "--engine", "flink"], "flink"),
        (["show", "ftp://somewhere/else"], "ftp"),
        (["show", table, "--option", "no equals sign"], "KEY=VALUE"),
        (["show", table, "--config", table / "missing.toml"], "missing.toml"),
        (["plan", table], "--before"),
        (["plan", table, "--before", "yesterday"], "'yesterday'"),
        (["plan", table, "--before", "2023-11-14T22:50"], "zone"),
        (["plan", table, "--before", T, "--data-latency", "30m"], "not both"),
        (["plan", table, "--data-latency", "30"], "30m"),
        (["plan", table, "--before", T, "--cut", "some"], "some"),
        (["plan", table, "--before", T, "--event-time", "nothing"], "nothing"),
        (["plan", table, "--before", T, "--option", "hoodie.compaction.strategy=Newest"], "Newest"),
        (["compact", table, "--before", "soon"], "'soon'"),
        (["compact", table, "--execute", "20261121000000000", "--before", T], "--execute"),
        (["compact", table, "--execute", "20261121000000000", "--engine", "local"], "20261121000000000"),
        (["rollback", table, "20261121000000000"], "20261121000000000"),
        (["freshness", table, "--wait", "3s"], "--require"),
        (["freshness", table, "--require", "soon"], "'soon'"),
        (["demo", "--days", "1"], "--days"),
    ]


def test_wrong_use_ends_with_2_in_one_sentence_and_writes_nothing(table_9: Path) -> None:
    before = content_of(table_9.parent)
    for words, said in _wrong_uses(table_9):
        answer = run(*words, "--output", "json")
        assert answer.exit_code == 2, words
        assert answer.stderr.startswith("error: "), words
        assert answer.stderr.count("\n") == 1, words
        assert said in answer.stderr, words
        error = answer.document["error"]
        assert error["exit_code"] == 2
        assert answer.stderr == f"error: {error['message']}\n"
    assert content_of(table_9.parent) == before


def test_what_would_not_be_safe_is_refused_with_3_and_writes_nothing(table_9: Path, tmp_path: Path) -> None:
    run_json("compact", table_9, "--before", T, "--engine", "local")
    with_metadata = golden.unpack("v9_mdt", tmp_path)
    before = content_of(tmp_path)
    for words in (
        ["plan", table_9, "--before", T, "--link-mode", "symlink"],
        ["plan", with_metadata, "--before", T, "--option", "eventide.metadata.table=refuse"],
        ["rollback", table_9, run_json("show", table_9)["timeline"][0]["requested_time"]],
    ):
        assert run(*words).exit_code == 3, words
    assert content_of(tmp_path) == before


def test_a_pending_write_is_in_no_plans_way(tmp_path: Path) -> None:
    inflight = golden.unpack("v9_inflight", tmp_path)
    before = content_of(tmp_path)
    planned = run_json("plan", inflight, "--before", T, "--link-mode", "copy")
    assert (planned["waits_for"], len(planned["beside"])) == (None, 1)
    assert planned["instant"] < planned["beside"][0]
    assert "has no heartbeat" in planned["notes"][-1]
    assert content_of(tmp_path) == before


def test_show_names_open_writes_whose_writers_expect_to_be_the_only_one(tmp_path: Path) -> None:
    inflight = golden.unpack("v9_inflight", tmp_path)
    shown = run_json("show", inflight)
    (write,) = (entry["requested_time"] for entry in shown["pending"])
    assert shown["single_writers"] == [write]
    (note,) = shown["notes"]
    assert run("show", inflight).stdout.rstrip().endswith(f"note: {note}")
    heartbeat = inflight / ".hoodie" / ".heartbeat" / write
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    shown = run_json("show", inflight)
    assert (shown["single_writers"], shown["notes"]) == ([], [])
    assert "note:" not in run("show", inflight).stdout


def test_a_table_that_names_another_lock_is_written_to_only_with_the_option(table_9: Path) -> None:
    zookeeper = "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider"
    properties = table_9 / ".hoodie" / "hoodie.properties"
    properties.write_text(f"{properties.read_text()}hoodie.write.lock.provider={zookeeper}\n")
    before = content_of(table_9)
    (note,) = run_json("show", table_9)["notes"]
    assert (
        note
        == f"hoodie.properties names the lock {zookeeper}: writes are refused until hoodie.write.lock.provider is set"
    )
    refused = run("compact", table_9, "--before", T, "--link-mode", "copy")
    assert (refused.exit_code, content_of(table_9)) == (2, before)
    assert f"hoodie.write.lock.provider={zookeeper}" in refused.stderr
    told = ("--option", "hoodie.write.lock.provider=file-system-based")
    assert run_json("show", table_9, *told)["notes"] == []
    assert run("compact", table_9, "--before", T, "--link-mode", "copy", *told).exit_code == 0


def test_a_storage_that_fails_ends_with_5(tmp_path: Path) -> None:
    (settings := tmp_path / "loop" / ".hoodie").mkdir(parents=True)
    (settings / "hoodie.properties").symlink_to("hoodie.properties")
    answer = run("show", tmp_path / "loop", "--output", "json")
    assert (answer.exit_code, answer.document["error"]["type"]) == (5, "StorageError")


def test_what_nobody_foresaw_is_one_sentence_with_5_and_a_stack_for_debug_alone(
    table_9: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(_: Table) -> None:
        raise RuntimeError("the token hush-hush was refused")

    monkeypatch.setattr(Table, "describe", break_down)
    secret = ("--option", "fs.s3a.session.token=hush-hush")
    answer = run("show", table_9, *secret)
    assert answer.exit_code == 5
    assert answer.stderr == f"error: unexpected RuntimeError: the token {HIDDEN} was refused; --debug shows where\n"
    debug = run("show", table_9, *secret, "--debug")
    assert "Traceback" in debug.stderr
    assert "hush-hush" not in debug.stderr


@pytest.mark.parametrize(
    "key", ["fs.s3a.access.key", "fs.s3a.secret.key", "s3.token", "db.password", "fs.azure.sas.x", "http.Authorization"]
)
def test_secrets_among_the_options_are_never_printed(key: str, table_9: Path, tmp_path: Path) -> None:
    config = tmp_path / "secret.toml"
    config.write_text(f'[options]\n{key} = "hush-hush"\n"hoodie.compaction.event.time.cut" = "hush-hush"\n')
    for words in (
        ["--option", f"{key}=hush-hush", "--option", "hoodie.compaction.event.time.cut=hush-hush"],
        ["--config", config],
    ):
        answer = run("plan", table_9, "--before", T, "--debug", "--output", "json", *words)
        assert answer.exit_code == 2
        assert "hush-hush" not in answer.stdout + answer.stderr
        assert HIDDEN in answer.stdout


def test_a_user_in_a_tables_uri_is_never_printed() -> None:
    answer = run("show", "s3://user:hush-hush@bucket/trips")
    assert answer.exit_code == 2
    assert "hush-hush" not in answer.stderr


def test_options_come_from_a_file_and_the_words_win(table_9: Path, tmp_path: Path) -> None:
    nested = tmp_path / "nested.toml"
    nested.write_text(f"[options]\nhoodie.compaction.event.time.threshold = {T_MS}\n[other]\nkey = 1\n")
    flat = tmp_path / "flat.toml"
    flat.write_text(f'"hoodie.compaction.event.time.threshold" = "{T}"\n')
    for config in (nested, flat):
        assert run_json("plan", table_9, "--config", config)["cut_ms"] == T_MS
    later = ("--option", f"hoodie.compaction.event.time.threshold={T_MS + 1000}")
    assert run_json("plan", table_9, "--config", flat, *later)["cut_ms"] == T_MS + 1000


def test_quiet_prints_the_result_and_nothing_else(table_9: Path) -> None:
    answer = run("compact", table_9, "--before", T, "--engine", "local", "--quiet")
    assert answer.exit_code == 0
    assert answer.stderr == ""
    assert answer.stdout.startswith("compacted at ")


def test_every_verb_explains_itself() -> None:
    services = ("clean", "rollback", "savepoint", "restore", "archive")
    for verb in ("demo", "show", "read", "plan", "compact", *services, "freshness"):
        answer = run(verb, "-h")
        assert answer.exit_code == 0
        for option in ("--config", "--option", "--engine", "--master", "--output", "--quiet", "--debug"):
            assert option in answer.stdout
    assert run("--version").stdout.startswith("eventide ")


@pytest.mark.broad
def test_a_process_on_spark_prints_one_document_and_no_noise(table_9: Path) -> None:
    words = ["compact", str(table_9), "--before", T, "--engine", "spark", "--master", "local[1]", "--quiet"]
    answer = _process(*words, "--output", "json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["watermark_ms"] == T_MS
    assert answer.stderr == ""
    rows = _process("read", str(table_9), "--all", "--engine", "spark", "--master", "local[1]", "--output", "json")
    told = golden.expected(table_9.name)
    assert rows.returncode == 0, rows.stderr
    assert sorted(tuple(row[name] for name in told.row_columns) for row in json.loads(rows.stdout)["data"]) == sorted(
        row[1:] for row in told.read()
    )


def test_a_reader_that_has_seen_enough_is_no_failure(table_9: Path) -> None:
    command = [sys.executable, "-m", "eventide", "read", str(table_9), "--output", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def _process(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "eventide", *words], capture_output=True, text=True, check=False, env=environment()
    )

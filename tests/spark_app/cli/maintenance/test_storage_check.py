"""`eventide storage check`: what a store guarantees and costs, without a trace of the check afterwards."""

import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest

from eventide_adapters.storage import built_in
from eventide_adapters.storage.guarantees import GUARANTEES, Guarantee
from eventide_adapters.storage.memory import MemoryStorage
from eventide_adapters.storage.open import open_storage
from eventide_core.config import Options
from eventide_core.ports import Storage
from support.run.command_line import run, run_json
from support.servers.s3_servers import BUCKET, S3Server
from support.tables.backends import backend, files_of


class Kept(MemoryStorage):
    """Keeps a deleted file in its listings, and replaces what is there."""

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self.put(path, data)
        return False

    def delete(self, path: str) -> bool:
        return self.stat(path) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("local", "memory", "moto", "fake_gcs", "azurite"),
        *(pytest.param(name, marks=pytest.mark.broad) for name in ("hdfs", "seaweedfs")),
    ],
)
def test_every_storage_keeps_what_it_guarantees(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    there = backend(name, request, tmp_path)
    there.storage.put("theirs/file", b"theirs")
    document = run_json("storage", "check", there.uri, *there.words())
    assert document["ok"]
    assert [check["name"] for check in document["checks"]] == [guarantee.name for guarantee in GUARANTEES]
    assert {check["status"] for check in document["checks"]} <= {"ok", "not supported"}
    assert "put_if_absent" in document["capabilities"]
    assert (document["clock_offset_ms"] is None) == (name == "memory")
    assert abs(document["clock_offset_ms"] or 0) < 3_600_000
    assert document["modified_step_ms"] in (1, 1000)
    requests = {cost["operation"]: cost["requests"] for cost in document["operations"]}
    assert (requests["read 4 KiB"] is None) == (name in ("local", "memory"))
    if name == "moto":
        assert (requests["create 4 KiB"], requests["read 4 KiB"], requests["copy 4 KiB"]) == (1, 1, 3)
    assert files_of(there.storage) == {"theirs/file": None}
    if name != "seaweedfs":  # which shows a prefix without objects as a directory
        assert [info.path for info in there.storage.list("") if not info.path.startswith(".hoodie")] == ["theirs"]


def test_the_text_shows_checks_costs_and_clock(tmp_path: Path) -> None:
    answer = run("storage", "check", tmp_path)
    assert (answer.exit_code, list(tmp_path.iterdir())) == (0, [])
    for words in ("exclusive create, at once", "not supported", "copy 8 MiB", "supports put if absent", "clock is"):
        assert words in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80


@pytest.mark.parametrize("offset_ms", [-7_200_000, 7_200_000])
def test_a_long_sentence_is_wrapped(offset_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = SimpleNamespace(time_ns=lambda: time.time_ns() - offset_ms * 1_000_000, perf_counter=time.perf_counter)
    monkeypatch.setattr("eventide.storage_check.time", ours)
    broken = ("a create of a taken name succeeded, and " * 5).strip()
    monkeypatch.setattr(Guarantee, "broken_by", lambda *_: broken)
    answer = run("storage", "check", tmp_path)
    assert answer.exit_code == 1
    assert "by NTP" in answer.stdout
    assert max(map(len, answer.stdout.splitlines())) <= 80


def test_a_broken_guarantee_fails_with_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def opened(uri: str, options: Options) -> Storage:
        del options
        return Kept(uri)

    monkeypatch.setattr(built_in, "open_memory", opened)
    answer = run("storage", "check", f"memory://{uuid.uuid4().hex}", "--output", "json")
    assert answer.exit_code == 1
    broken = {check["name"]: check["broken"] for check in answer.document["checks"] if check["status"] == "failed"}
    assert broken["exclusive create"] == "a create of a new name reported that the name is taken"
    assert broken["list after delete"] == "a deleted file is still there"
    assert "ranges" not in broken


def test_a_store_that_ignores_conditions_is_named_with_the_failing_check(rclone: S3Server) -> None:
    uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"
    words = [word for key, value in rclone.options.items() for word in ("--option", f"{key}={value}")]
    answer = run("storage", "check", uri, *words, "--output", "json")
    assert answer.exit_code == 1
    failed = {check["name"]: check["broken"] for check in answer.document["checks"] if check["status"] == "failed"}
    assert "ignores or refuses the condition of a create" in failed["exclusive create"]
    assert "list after write" not in failed
    assert open_storage(uri, Options(rclone.options)).list("") == ()


def test_a_check_refuses_a_place_where_something_is(tmp_path: Path) -> None:
    theirs = tmp_path / ".eventide_storage_check" / "file"
    theirs.parent.mkdir()
    theirs.write_text("theirs")
    answer = run("storage", "check", tmp_path)
    assert (answer.exit_code, theirs.read_text()) == (3, "theirs")
    assert "another check is running there, or was interrupted" in answer.stderr


def test_a_directory_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    answer = run("storage", "check", tmp_path / "typo")
    assert (answer.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "create it first" in answer.stderr

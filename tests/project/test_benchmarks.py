"""The benchmarks run: small, without Java, and nothing is asserted of how long anything took."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import cast
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from benchmarks import changes, large_tables, lookups
from benchmarks.fleet.real_tables import Lags, Member, make, members, serve
from benchmarks.fleet.simulation import Cron, RoundRobin
from benchmarks.growth import Point, grow
from benchmarks.peers import ONE_CORE, Place, contestant, peers_of
from benchmarks.picture import Curve, picture
from benchmarks.process_start import commands, measured
from benchmarks.processes import Cost, CpuMeter
from benchmarks.report import Sample, table_of
from benchmarks.results import BEGIN, END, with_results
from benchmarks.workloads import workloads
from benchmarks.years import CountedStorage, Life, live
from eventide import Table
from eventide_adapters.storage.local import LocalStorage
from eventide_core.ports import Storage

POINT = Point(records=400, slices=2, logs=3, columns=2, share=0.1)


def test_every_workload_is_measured_against_its_peers() -> None:
    for workload in workloads(16_000).values():
        tasks = {peer.task for peer in peers_of(workload)}
        assert workload.is_for_halves or tasks >= {
            "compaction, gzip",
            "compaction, zstd",
            "snapshot to Arrow",
            "read-optimized in Spark",
        }
        assert all("eventide" in {peer.name for peer in peers_of(workload) if peer.task == task} for task in tasks)


def test_a_process_compacts_copies_of_one_table_and_says_what_each_cost(tmp_path: Path) -> None:
    place, table = Place(tmp_path), tmp_path / "grown"
    (tmp_path / "scratch").mkdir()
    grow(table, POINT)
    rows = Table.open(str(table)).snapshot().to_arrow()
    assert rows.num_rows == POINT.records
    with contestant(place) as server:
        costs: list[Cost] = []
        for codec in ("gzip", "zstd"):
            with place.copy_of(table) as copy:
                cost, metrics = server.measure("compact", path=str(copy), codec=codec)
                costs.append(cost)
                assert metrics["log_files_compacted"] == POINT.logs * POINT.slices
                compacted = Table.open(str(copy)).read_optimized().to_arrow()
                columns = [name for name in rows.column_names if name != "_hoodie_file_name"]
                assert _sorted(compacted, columns) == _sorted(rows, columns)
    assert [cost.is_cold for cost in costs] == [True, False]
    assert all(cost.cpu_s >= 0 and cost.peak_mb > 0 for cost in costs)
    assert Table.open(str(table)).snapshot().plan.slices[0].log_paths, "the table itself is as it was"


def test_the_table_of_results_sets_the_median_of_each_beside_the_median_of_ours() -> None:
    def sample(peer: str, cpu_s: float, *, is_cold: bool) -> Sample:
        return Sample("avro-v6", 10, "compaction, gzip", peer, "2026-01-01", 0, Cost(cpu_s, 2.0, 100, is_cold))

    costs = {"eventide": (6.0, 3.0, 2.0), "stock": (12.0, 5.0, 4.0)}
    samples = [
        sample(peer, cpu_s, is_cold=place == 0) for peer, found in costs.items() for place, cpu_s in enumerate(found)
    ]
    assert table_of("avro-v6", samples).splitlines()[-1] == (
        "| compaction, gzip | stock | 4.50 | 4.00-5.00 | 12.00 | 2.0 | 100 | 0.56 | 0.50 |"
    )


def test_the_results_stand_between_their_marks_and_a_missed_goal_in_bold() -> None:
    def sample(workload: str, peer: str, cpu_s: float) -> Sample:
        return Sample(workload, 10, "compaction, gzip", peer, "2026-01-01", 0, Cost(cpu_s, 2.0, 100, is_cold=False))

    samples = [
        sample(workload, peer, cpu_s)
        for workload, limit in (("wide", 30.0), ("nested", 8.0))
        for peer, cpu_s in (("limit", limit), ("eventide", 12.0), ("stock Hudi 1.1.1", 36.0))
    ]
    alone = sample("nested", ONE_CORE, 13.0)
    samples.append(replace(alone, cost=replace(alone.cost, peak_mb=501)))
    samples += [replace(each, cost=replace(each.cost, is_cold=True)) for each in samples]
    begun = f"# Title\n{BEGIN}\nolder\n{END}\nthe end\n"
    written = with_results(begun, samples, {"wide": 10**9})
    assert written.startswith("# Title\n")
    assert written.endswith("\nthe end\n")
    assert "older" not in written
    assert "| compaction, gzip: of the limit | 0.5 | 0.40 | **1.50** |" in written.splitlines()
    assert "| compaction, gzip: of the limit | 0.5 | **1.00** | **1.00** |" in written.splitlines(), (
        "all took as long by the clock"
    )
    for at_most in ("1.15", "1.35"):
        line = f"| compaction, zstd: of the limit | {at_most} |  |  |"
        assert line in written.splitlines(), "what was not measured is empty"
    assert "| peak of one worker, MB | 450 |  | **501** |" in written.splitlines()
    assert "| eventide | 3 |  |" in written.splitlines(), "12 s a gigabyte"
    assert "| stock Hudi 1.1.1 | 10 |  |" in written.splitlines()
    assert "2026-01-01; 1 warm run of each contestant at each task." in written
    assert with_results(written, samples, {"wide": 10**9}) == written


def test_each_command_is_measured_as_a_process_and_one_that_fails_is_no_figure(tmp_path: Path) -> None:
    grow(tmp_path / "grown", POINT)
    processes = commands({"grown": tmp_path / "grown"})
    costs = measured(processes, runs=1)
    assert costs.keys() == processes.keys()
    assert all(len(seconds) == 1 for seconds in costs.values())
    with pytest.raises(subprocess.CalledProcessError):
        measured(commands({"missing": tmp_path / "missing"}), runs=1)


def test_a_picture_is_whole_and_shows_every_value() -> None:
    drawn = ElementTree.fromstring(picture("Cost & more", [0, 2, 50], [Curve("CPU, s", [0.25, 0.5, 12])]))
    texts = {element.text for element in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert texts >= {"Cost & more", "0", "2", "50", "0.25", "0.5", "12"}


def _sorted(rows: pa.Table, columns: list[str]) -> list[dict[str, object]]:
    return rows.select(columns).sort_by("id").to_pylist()


def test_a_life_is_measured_in_stretches(tmp_path: Path) -> None:
    counted = CountedStorage(LocalStorage(tmp_path / "years"))
    life = Life(str(tmp_path / "years"), cast(Storage, counted))
    life.create(9)
    first, second = live(life, counted, tmp_path / "years", commits=12, parts=2)
    assert (first.until, second.until) == (6, 12)
    assert 0 < first.calls < second.calls  # the tenth commit has a compaction
    assert second.files["outcomes"] == 1


def test_a_command_is_measured_on_a_table_that_is_never_archived(tmp_path: Path) -> None:
    with large_tables.made("commits", 30, tmp_path) as (table, before):
        assert len(list(table.glob("*/.*.log.*"))) == 30 * 66
        wall_s, cpu_s, peak_mb = large_tables.run(table, large_tables.commands(before)["plan"])
        assert min(wall_s, cpu_s, peak_mb) > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("policy", [None, RoundRobin, Cron])
def test_a_fleet_of_real_tables_is_served_beside_its_writer(
    policy: type[RoundRobin | Cron] | None, tmp_path: Path
) -> None:
    fleet = members(tmp_path, 2)
    make(fleet)
    found = serve(fleet, 2, policy)
    assert found.rounds >= 1
    assert found.troubles == 0
    assert all(Table.open(one.path).freshness().cut_ms is not None for one in fleet[: found.rounds])


def test_a_table_is_late_from_its_target_after_its_watermark_until_it_is_compacted(tmp_path: Path) -> None:
    one = Member(tmp_path / "t", 30, 1)
    lags = Lags([one], counted_from_ms=100, until_ms=200)
    lags.took("t", 30, 140, watermark_ms=120)  # never compacted before
    lags.took("t", 30, 180, watermark_ms=160)  # late from 150
    lags.end()  # late from 190
    assert lags.late_ms == {"t": 40 + 30 + 10}
    assert lags.shares() == [pytest.approx(0.2)]


_PARENT_THAT_IGNORES_ITS_CHILD = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
end, of_child = os.pipe()
if not os.fork():
    while time.process_time() < 0.3:
        pass
    print("done", flush=True)
    sys.stdin.readline()
    os._exit(0)
os.close(of_child)
os.read(end, 1)  # until the child has ended
print("ended", flush=True)
sys.stdin.readline()
"""


def test_a_process_that_ended_unnoticed_by_its_parent_counts() -> None:
    """As a Python worker of Spark."""
    command = [sys.executable, "-c", _PARENT_THAT_IGNORES_ITS_CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        meter = CpuMeter(parent.pid)
        answers = [parent.stdout.readline()]
        before = meter.seconds()
        print(file=parent.stdin, flush=True)
        answers.append(parent.stdout.readline())
        after = meter.seconds()
        print(file=parent.stdin, flush=True)
        meter.close()
    assert answers == ["done\n", "ended\n"]
    assert after >= before >= 0.2  # of 0.3: the kernel cuts both kinds of time to its ticks


@pytest.mark.parametrize("index", ["BUCKET", "SIMPLE", "RECORD_INDEX"])
def test_filtered_reads_are_measured_beside_a_full_read(index: str, tmp_path: Path) -> None:
    lookups.made(path := tmp_path / "table", 2400, index, 4)
    found = lookups.measured(path, 2400)
    for view in ("snapshot", "read optimized"):
        rows = {
            words: found[view][words]["rows"] for words in ("all", "one key", "a key that is not there", "five keys")
        }
        assert rows == {"all": 2400, "one key": 1, "a key that is not there": 0, "five keys": 5}
        assert 0 < found[view]["one key"]["bytes_read"] <= found[view]["all"]["bytes_read"]


def test_changes_are_measured_beside_what_they_cannot_do_without(capsys: pytest.CaptureFixture[str]) -> None:
    changes.main("--rows", "3000", "--rounds", "1")
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split("|")[1].split()[0] for line in lines] == [
        "insert",
        "insert",
        "update",
        "update",
        "compaction",
        "full",
    ]
    assert all(float(line.split("|")[3]) > 0 for line in lines)
